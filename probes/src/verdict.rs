//! Whether a sync reaches the device: a pure function of facts and the durability rows.
//!
//! Each layer of the stack gives a verdict, and the worst one is the target's. Some facts
//! decide alone (`known`): memory, an overlay that swallows syncs, a preloaded library,
//! a network or user-space filesystem, barriers off. The rest is counting (`layers`):
//! flushes of each device over the measured syncs, minus the quiet rate.
//!
//! What is only plausible never decides. A medium that is faster than it can be limits
//! the verdict. A sync that costs no more than a plain write speaks against a device that
//! merely claims write-through and showed no writes; where flushes or writes were counted
//! it only limits, since a protected cache answers that fast too.

use serde_json::{Value, json};

use crate::{
    facts::Facts,
    report::{
        Durability,
        DurabilityVerdict::{self, NotTested},
        Ground, Row, RowStatus, Us, Weight,
    },
};

mod elsewhere;
mod grounds;
mod journal;
mod known;
mod layers;
mod pool;
mod remote;
mod stack;
#[cfg(test)]
mod tests;

/// Flushes a sync, above which each sync is taken to have sent one.
const FLUSHED: f64 = 0.9;
/// Flushes a sync, up to which none is taken to have been sent.
const UNFLUSHED: f64 = 0.1;
/// Share of the flushes of the device above, below which a device drops them.
const DROPPED: f64 = 0.5;
/// A rotating medium cannot do more commits a second than this without a cache.
const MEDIUM_COMMITS_PER_S: f64 = 500.0;

/// The verdict on a target. `asked` is whether the durability check was to run; facts that
/// decide alone need no check.
#[must_use]
pub fn verdict(facts: &Facts, rows: &[Row], asked: bool) -> Durability {
    let mut case = Judged::default();
    known::judge(facts, &mut case);
    match Check::of(rows) {
        Ok(check) => {
            layers::judge(facts, &check, &mut case);
            remote::judge(&check, &mut case);
            elsewhere::wrote_there(facts, &check, &mut case);
            cheapness(&check, &mut case);
            medium(facts, &check, &mut case);
        }
        Err(why) if case.worst.is_none() => {
            let (value, text) = if asked {
                (
                    why.clone(),
                    format!("the durability check gave no answer: {why}"),
                )
            } else {
                (
                    "not asked".to_owned(),
                    "nobody asked whether a sync reaches the device".to_owned(),
                )
            };
            case.ground(
                "not-asked",
                Weight::Limits,
                json!(value),
                None,
                "durability/check",
                None,
            );
            case.say(NotTested, text);
        }
        Err(_) => {}
    }
    known::limits(facts, &mut case);
    case.finish()
}

/// What a sync depends on and the administrator may change under way.
const CHANGEABLE: [&str; 6] = [
    "fs.type",
    "fs.barrier",
    "fs.journal_mode",
    "overlay.volatile",
    "cifs.strict_sync",
    "zfs.sync",
];

/// The verdict where the mount did not stay as it was measured: of the two states the
/// worse, and never one that recommends. None where nothing of that changed.
#[must_use]
pub fn changed(before: &Facts, after: &Facts, rows: &[Row], asked: bool) -> Option<Durability> {
    let value = |facts: &Facts, name: &str| {
        let fact = facts.get(name).filter(|fact| !fact.value.is_null());
        fact.map(|fact| fact.value.clone())
    };
    // What could not be read the second time tells of no change.
    let name = CHANGEABLE.into_iter().find(|name| {
        let (was, is) = (value(before, name), value(after, name));
        was.is_some() && is.is_some() && was != is
    })?;
    let text = |facts: &Facts| value(facts, name).unwrap_or_default().to_string();
    let [was, is] = [before, after].map(|facts| verdict(facts, rows, asked));
    let mut worse = if badness(is.verdict) > badness(was.verdict) {
        is
    } else {
        was
    };
    let said = format!(
        "{name} changed during the run from {} to {}",
        text(before),
        text(after)
    );
    if badness(worse.verdict) < badness(DurabilityVerdict::NotProvable) {
        worse.verdict = DurabilityVerdict::NotProvable;
        worse.text = format!("{said}: what was measured is of neither");
    } else {
        worse.text = format!("{}; {said}", worse.text);
    }
    worse.may_recommend = false;
    let source = after.get(name).map(|fact| fact.source.clone());
    worse.grounds.push(Ground {
        id: "mount-changed".to_owned(),
        weight: Weight::Limits,
        value: json!(name),
        unit: None,
        source: source.unwrap_or_default(),
        evidence: None,
    });
    Some(worse)
}

/// What has been said so far.
#[derive(Debug, Default)]
struct Judged {
    worst: Option<(DurabilityVerdict, String)>,
    /// Appended to the sentence.
    besides: Vec<String>,
    grounds: Vec<Ground>,
    /// Flushes of the filesystem's own devices were counted for each sync.
    flushed: bool,
    /// No flush is needed, and device writes were counted for each sync.
    wrote: bool,
}

impl Judged {
    /// A layer's verdict; the worst stays, of equals the first.
    fn say(&mut self, verdict: DurabilityVerdict, text: impl Into<String>) {
        let worse = self
            .worst
            .as_ref()
            .is_none_or(|(worst, _)| badness(verdict) > badness(*worst));
        if worse {
            self.worst = Some((verdict, text.into()));
        }
    }

    fn ground(
        &mut self,
        id: &str,
        weight: Weight,
        value: Value,
        unit: Option<&str>,
        source: impl Into<String>,
        evidence: Option<String>,
    ) {
        self.grounds.push(Ground {
            id: id.to_owned(),
            weight,
            value,
            unit: unit.map(str::to_owned),
            source: source.into(),
            evidence,
        });
    }

    fn finish(self) -> Durability {
        let (verdict, mut text) = self
            .worst
            .unwrap_or((NotTested, "nothing is known".to_owned()));
        // What cannot be seen matters only to what was looked at.
        if !matches!(verdict, NotTested | DurabilityVerdict::NotDurable) {
            for more in self.besides {
                text.push_str("; ");
                text.push_str(&more);
            }
        }
        Durability {
            verdict,
            may_recommend: verdict.may_recommend(),
            text,
            grounds: self.grounds,
        }
    }
}

const fn badness(verdict: DurabilityVerdict) -> u8 {
    match verdict {
        DurabilityVerdict::NotDurable => 5,
        DurabilityVerdict::NoFlushSeen => 4,
        DurabilityVerdict::NotProvable => 3,
        NotTested => 2,
        // Where some devices need flushes and got them, that is what was seen.
        DurabilityVerdict::FlushesSeen => 1,
        DurabilityVerdict::NoFlushNeeded => 0,
    }
}

/// A row of the check and where it stands.
#[derive(Clone, Copy, Debug)]
struct Found<'a> {
    index: usize,
    row: &'a Row,
}

impl Found<'_> {
    /// A pointer into the row, relative to the target.
    fn pointer(&self, of: &str) -> String {
        format!("/rows/{}/{of}", self.index)
    }

    /// A pointer to one of its observations (RFC 6901 escapes).
    fn observation(&self, name: &str) -> String {
        let name = name.replace('~', "~0").replace('/', "~1");
        self.pointer(&format!("observations/{name}"))
    }

    fn number(&self, observation: &str) -> Option<f64> {
        self.row.observations.get(observation)?.as_f64()
    }

    fn syncs(&self) -> f64 {
        self.row.syncs.unwrap_or(self.row.ops) as f64
    }

    fn phase(&self, name: &str) -> Option<Us> {
        Some(self.row.phases.get(name)?.p50_us)
    }
}

/// The rows of `durability/check` that can be used.
#[derive(Clone, Copy, Debug)]
struct Check<'a> {
    fdatasync: Found<'a>,
    extending: Option<Found<'a>>,
    write_only: Option<Found<'a>>,
}

impl<'a> Check<'a> {
    /// Why not, where there is no usable fdatasync row.
    fn of(rows: &'a [Row]) -> Result<Self, String> {
        let find = |case: &str| {
            let (index, row) = rows.iter().enumerate().find(|(_, row)| {
                row.probe == "durability" && row.comparison == "check" && row.case == case
            })?;
            Some(Found { index, row })
        };
        let usable = |found: &Found<'_>| found.row.status == RowStatus::Ok && found.row.ops > 0;
        let fdatasync = find("fdatasync").ok_or("it was not run")?;
        if !usable(&fdatasync) || fdatasync.syncs() == 0.0 {
            let row = fdatasync.row;
            return Err(row
                .reason
                .clone()
                .or_else(|| row.reason_code.clone())
                .unwrap_or_else(|| "no sync was measured".to_owned()));
        }
        Ok(Self {
            fdatasync,
            extending: find("fsync-extending")
                .filter(usable)
                .filter(|f| f.syncs() > 0.0),
            write_only: find("write-only").filter(usable),
        })
    }
}

/// A sync that takes no longer than a plain write did no work that can be timed.
fn cheapness(check: &Check<'_>, case: &mut Judged) {
    let sync = check.fdatasync.phase("sync");
    let write = check
        .write_only
        .and_then(|w| w.row.p50_us.or_else(|| w.phase("write")));
    let (Some(sync), Some(write)) = (sync, write) else {
        return;
    };
    // Both 0: the clock is too coarse to say.
    if sync > write || write.0 == 0 {
        return;
    }
    let counted = case.flushed || case.wrote;
    let weight = if counted {
        Weight::Limits
    } else {
        Weight::Against
    };
    case.ground(
        "sync-as-cheap-as-write",
        weight,
        json!(sync.as_us()),
        Some("us"),
        "durability/check/fdatasync",
        Some(check.fdatasync.pointer("phases/sync/p50_us")),
    );
    if !counted {
        case.say(
            DurabilityVerdict::NotProvable,
            "a sync costs no more than a plain write, and nothing shows that it did anything",
        );
    }
}

/// More commits than the medium's rotation allows: some cache answers for it.
fn medium(facts: &Facts, check: &Check<'_>, case: &mut Judged) {
    let physical = stack::is_physical_rotating(facts);
    let Some(mean) = check.fdatasync.row.mean_us.filter(|mean| mean.0 > 0) else {
        return;
    };
    if !physical || 1_000_000.0 / mean.as_us() <= MEDIUM_COMMITS_PER_S {
        return;
    }
    case.ground(
        "faster-than-medium",
        Weight::Limits,
        json!(mean.as_us()),
        Some("us_per_sync"),
        "durability/check/fdatasync",
        Some(check.fdatasync.pointer("mean_us")),
    );
    case.besides.push(
        "that is faster than a rotating disk can write, so a cache answers, protected or not"
            .to_owned(),
    );
}
