//! A scripted target: its clock advances by what the script says, its counters count what the
//! script does, and a log tells what was driven in which order.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use walprobe_probes::{
    contract::{
        Card, Case, Clock, Comparison, Counters, Counts, Fault, Group, Hooks, Lab, Noise,
        Observations, Probe, Pulse, Quiet, Run, Series, Settled, Stop, Trial,
    },
    engine::{lap::Lap, rounds},
    facts::Facts,
    report::{ColdProof, Margins, Row},
    request::{DropCaches, Profile, Request},
};

/// Shared state of a fake target.
#[derive(Default)]
pub(crate) struct Fake {
    now_ns: AtomicU64,
    counts: Mutex<Counts>,
    /// What was driven: `case@round`, `prepare:case`, `settle`.
    pub(crate) log: Mutex<Vec<String>>,
    /// Time that each settle takes.
    pub(crate) settle_ns: AtomicU64,
    /// Device bytes that each settle writes.
    pub(crate) settle_bytes: AtomicU64,
    /// Write budget.
    pub(crate) budget: AtomicU64,
    /// The pulse.
    pub(crate) pulse: Pulse,
}

impl Fake {
    /// A target with a large budget.
    pub(crate) fn new() -> Arc<Self> {
        let fake = Self::default();
        fake.budget.store(u64::MAX / 2, Ordering::Relaxed);
        Arc::new(fake)
    }

    /// Time passes.
    pub(crate) fn pass(&self, ns: u64) {
        self.now_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// The device does something.
    pub(crate) fn count(&self, f: impl FnOnce(&mut Counts)) {
        f(&mut self.counts.lock().unwrap());
    }

    /// Adds a line to the log.
    pub(crate) fn note(&self, line: String) {
        self.log.lock().unwrap().push(line);
    }
}

impl Clock for Fake {
    fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }
}

impl Counters for Fake {
    fn read(&self) -> Counts {
        *self.counts.lock().unwrap()
    }
    fn flushes_by_device(&self) -> Vec<(String, u64)> {
        vec![("fake0".into(), self.read().flushes)]
    }
    fn noise(&self) -> Noise {
        Noise::default()
    }
    fn has_device(&self) -> bool {
        true
    }
}

struct FakeHooks(Arc<Fake>, u64);

impl Hooks for FakeHooks {
    fn charge(&mut self, bytes: u64) -> Result<(), Stop> {
        self.1 += bytes;
        if self.1 > self.0.budget.load(Ordering::Relaxed) {
            return Err(Stop::Skip("budget", "spent".into()));
        }
        Ok(())
    }
    fn settle(&mut self) -> Result<Settled, Stop> {
        self.0.note("settle".into());
        let ns = self.0.settle_ns.load(Ordering::Relaxed);
        let device_bytes = self.0.settle_bytes.load(Ordering::Relaxed);
        self.0.pass(ns);
        self.0.count(|c| c.device_bytes_written += device_bytes);
        Ok(Settled {
            ns,
            device_bytes,
            idle: true,
            busy: Quiet::default(),
        })
    }
    fn doing(&mut self, _probe: &str, _comparison: &str, case: &str, round: u64) {
        self.0.note(format!("{case}@{round}"));
    }
}

/// What one operation of a case does, given its number from 1.
pub(crate) type Script = Arc<dyn Fn(u64, &Fake, &mut Lap<'_>) -> Result<(), Fault> + Send + Sync>;

/// A probe whose cases are scripts.
pub(crate) struct FakeProbe {
    /// The target.
    pub(crate) fake: Arc<Fake>,
    /// Script of each case.
    pub(crate) scripts: BTreeMap<String, Script>,
    /// Proof that each preparation gives.
    pub(crate) proof: Option<ColdProof>,
    /// Case that cannot be opened, and why.
    pub(crate) refuse: Option<(String, Stop)>,
}

static CARD: Card = Card {
    id: "fake",
    question: "",
    needs: &[],
    page: "",
};

impl Probe for FakeProbe {
    fn card(&self) -> &'static Card {
        &CARD
    }
    fn plan(&self, _request: &Request, _facts: &Facts) -> Vec<Group> {
        Vec::new()
    }
    fn open(&self, case: &Case, _lab: &mut Lab<'_>) -> Result<Run, Stop> {
        if let Some((name, stop)) = &self.refuse
            && *name == case.name
        {
            return Err(stop.clone());
        }
        Ok(Run::Alone(Box::new(FakeTrial {
            fake: Arc::clone(&self.fake),
            name: case.name.clone(),
            script: Arc::clone(&self.scripts[&case.name]),
            proof: self.proof.clone(),
            n: 0,
        })))
    }
}

struct FakeTrial {
    fake: Arc<Fake>,
    name: String,
    script: Script,
    proof: Option<ColdProof>,
    n: u64,
}

impl Trial for FakeTrial {
    fn prepare(&mut self, _lab: &mut Lab<'_>) -> Result<Option<ColdProof>, Stop> {
        self.fake.note(format!("prepare:{}", self.name));
        // Preparation takes time and reads; none of it may show in the figures.
        self.fake.pass(7_000_000);
        self.fake.count(|c| c.own_bytes_read += 1 << 20);
        Ok(self.proof.clone())
    }
    fn op(&mut self, lap: &mut Lap<'_>) -> Result<(), Fault> {
        self.n += 1;
        (self.script)(self.n, &self.fake, lap)
    }
    fn observe(
        &mut self,
        _lab: &mut Lab<'_>,
        seen: &mut BTreeMap<Series, Observations>,
    ) -> Result<(), Stop> {
        seen.entry("")
            .or_default()
            .insert("ops_seen".into(), self.n.into());
        Ok(())
    }
    fn close(&mut self, _lab: &mut Lab<'_>) -> Result<(), Stop> {
        self.fake.note(format!("close:{}", self.name));
        Ok(())
    }
}

/// A commit that takes `ns` and one flush.
pub(crate) fn commit(ns: impl Fn(u64) -> u64 + Send + Sync + 'static) -> Script {
    Arc::new(move |n, fake, lap| {
        lap.leg("commit", 1.0);
        lap.start();
        fake.pass(ns(n) / 4);
        lap.mark("write");
        fake.pass(ns(n) - ns(n) / 4);
        fake.count(|c| {
            c.flushes += 1;
            c.device_bytes_written += 8192;
        });
        lap.mark("sync");
        lap.done();
        lap.wal(512);
        lap.wrote(8192);
        lap.synced(1);
        // What happens between operations is nobody's.
        fake.pass(1_000);
        Ok(())
    })
}

/// A request with a seed.
pub(crate) fn request(seed: u64) -> Request {
    Request {
        dir: "/fake".into(),
        run_id: "0123456789AB".into(),
        probes: vec!["fake".into()],
        only: Vec::new(),
        skip: Vec::new(),
        profile: Profile::Normal,
        time_s: 10.0,
        budget_bytes: 1 << 40,
        seed,
        drop_caches: DropCaches::Auto,
        commit_bytes: None,
        segment_bytes: 16 << 20,
        syncs: None,
        force: false,
        dry_run: false,
        op_timeout_s: 60.0,
        ..Request::default()
    }
}

/// A group of `cases`, the first the baseline of one judged comparison on `commit`.
pub(crate) fn group(cases: &[&str]) -> Group {
    Group {
        probe: "fake",
        weight: 1.0,
        cases: cases
            .iter()
            .map(|name| Case {
                name: (*name).to_owned(),
                op_bytes: 8192,
                ..Case::default()
            })
            .collect(),
        compare: vec![Comparison::judged("commit", "commit", cases[0])],
    }
}

/// Runs a group; all rows told, the final ones last.
pub(crate) fn run(
    probe: &FakeProbe,
    group: &Group,
    seconds: f64,
    bytes: u64,
    seed: u64,
) -> Vec<(Vec<Row>, bool)> {
    let fake = &probe.fake;
    let facts = Facts::default();
    let request = request(seed);
    let mut hooks = FakeHooks(Arc::clone(fake), 0);
    let mut lab = Lab {
        facts: &facts,
        request: &request,
        scratch: None,
        hooks: &mut hooks,
        counters: fake.as_ref(),
        clock: fake.as_ref(),
        pulse: &fake.pulse,
        quiet: Quiet::default(),
        rng: fastrand::Rng::with_seed(seed),
    };
    let limits = rounds::Limits {
        deadline_ns: fake.now_ns() + (seconds * 1e9) as u64,
        hard_deadline_ns: fake.now_ns() + (seconds * 1e9) as u64,
        bytes,
        hard_bytes: bytes,
        margins: Margins::default(),
        tell_every_ns: 500_000_000,
    };
    let mut told = Vec::new();
    rounds::run_group(probe, group, &mut lab, &limits, &mut |rows, last| {
        told.push((rows, last))
    });
    told
}

/// A probe of `scripts`.
pub(crate) fn probe(fake: &Arc<Fake>, scripts: &[(&str, Script)]) -> FakeProbe {
    FakeProbe {
        fake: Arc::clone(fake),
        scripts: scripts
            .iter()
            .map(|(n, s)| ((*n).to_owned(), Arc::clone(s)))
            .collect(),
        proof: None,
        refuse: None,
    }
}
