//! The measuring flow of one directory, in the worker process: target -> facts -> plan -> engine
//! -> events. It ends by itself when the pulse says stop, and its scratch folder with it.

use std::{
    os::fd::AsFd as _,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use serde_json::json;

use crate::{
    contract::{Clock, Counters, Fault, Lab, Probe, Pulse, Quiet},
    engine::{
        clock::{Monotonic, cost_ns},
        counters::SysCounters,
        rounds::{self, Limits},
        rows,
        schedule::{self, Share},
        settle::WriteOut,
        world::{World, quiet_window},
    },
    event::Event,
    facts::{self, Facts, Roots},
    files::{PAGE_BYTES, WalFile},
    paths,
    plan::{self, Planned, Prices},
    report::{Fact, FactMap, FaultRecord, Margins, Row, RowStatus},
    request::{Request, Selection},
    scratch::Scratch,
    standing,
    target::{self, Refused},
    verdict,
};

/// How often a living worker says so.
const ALIVE: Duration = Duration::from_millis(500);
/// How long the devices are watched before the run.
const QUIET_NS: u64 = 250_000_000;
/// How often rows so far are told.
const TELL_NS: u64 = 1_000_000_000;
/// Largest file that is written for its facts alone.
const MOST_FILE_BYTES: u64 = 2 << 20;
/// Time kept for removing the scratch folder.
const REMOVAL_S: f64 = 0.5;

/// Measures one directory with the probes of `catalogue`. Everything there is to know comes
/// through `tell`.
pub fn run(
    catalogue: &[&'static dyn Probe],
    request: &Request,
    pulse: &Pulse,
    tell: &(dyn Fn(&Event) + Sync),
) {
    let clock = Monotonic::new();
    if let Err(refused) = measure(catalogue, request, pulse, tell, &clock) {
        tell(&Event::Refused {
            message: refused.message,
            hint: refused.hint,
        });
    }
}

fn measure(
    catalogue: &[&'static dyn Probe],
    request: &Request,
    pulse: &Pulse,
    tell: &(dyn Fn(&Event) + Sync),
    clock: &Monotonic,
) -> Result<(), Refused> {
    let selection = Selection::new(&request.only, &request.skip).map_err(|e| Refused {
        message: format!("cannot use the pattern {e}"),
        hint: None,
    })?;
    // Where nothing will be written, a read-only directory does.
    let target = if request.probes.is_empty() {
        target::hold(&paths::from_request(&request.dir))?
    } else {
        target::open(request)?
    };
    let dir = target.path_text();
    let mut facts = facts::read(target.dir.as_fd(), &dir, &Roots::default());
    facts.host.insert(
        "host.timer_ns".to_owned(),
        Fact {
            value: json!((cost_ns(clock) * 10.0).round() / 10.0),
            source: "measured".to_owned(),
            why: None,
        },
    );
    let planned = plan::groups(catalogue, request, &facts, &selection);
    tell_facts(&dir, &facts, tell);
    tell(&Event::Plan {
        cases: plan::rows(&planned, &selection),
    });
    if planned.is_empty() {
        tell(&Event::Durability {
            durability: verdict::verdict(&facts, &[], false),
        });
        tell(&done(0, Vec::new(), Ended::default()));
        return Ok(());
    }
    target.check_space(plan::space_bytes(&planned))?;
    if request.dry_run {
        tell(&done(0, Vec::new(), Ended::default()));
        return Ok(());
    }
    let scratch = Scratch::create(&target, &request.run_id)?;
    // A hook may have to unmount: nothing but the scratch folder's own descriptors is kept.
    drop(target);
    tell(&Event::Scratch {
        path: scratch.path.clone(),
    });
    // What only a regular file tells; a fault in it will stand in the rows that come.
    if let Ok(of_file) = scratch_file(&scratch, &facts) {
        facts.target.extend(of_file);
        tell_facts(&dir, &facts, tell);
    }
    let written = AtomicU64::new(0);
    let finished = AtomicBool::new(false);
    let (bytes, mut ended, left_behind) = std::thread::scope(|scope| {
        scope.spawn(|| keep_alive(pulse, &written, &finished, tell));
        let (bytes, ended) = groups(
            request, pulse, tell, clock, &facts, &scratch, &selection, &planned, &written,
        );
        let left_behind = scratch.remove();
        finished.store(true, Ordering::Relaxed);
        (bytes, ended, left_behind)
    });
    if !left_behind.is_empty() && ended.fault.is_none() {
        ended.fault = standing::given_up_at(&paths::from_request(&request.dir));
    }
    tell(&done(bytes, left_behind, ended));
    Ok(())
}

fn tell_facts(dir: &str, facts: &Facts, tell: &(dyn Fn(&Event) + Sync)) {
    tell(&Event::Facts {
        dir: dir.to_owned(),
        host: facts.host.clone(),
        target: facts.target.clone(),
        devices: facts.devices.clone(),
    });
}

/// Facts of a file of several blocks. It is gone before anything had to write it out, so no
/// budget is charged.
fn scratch_file(scratch: &Scratch, facts: &Facts) -> Result<FactMap, Fault> {
    let name = "file-facts";
    let folder = scratch.folder()?;
    let file = WalFile::create(&folder, name)?;
    // ZFS shows a file's own block size, which grows with the file up to the record size.
    let record = facts.number("zfs.recordsize_bytes").unwrap_or(0);
    let bytes = (record + 1)
        .next_multiple_of(PAGE_BYTES)
        .min(MOST_FILE_BYTES);
    let filled = file.pwrite_all(&vec![1; bytes as usize], 0);
    let told = facts::of_file(file.fd());
    let filled = filled.and_then(|()| file.close());
    folder.unlink(name)?;
    filled.map(|()| told)
}

/// Why it ended before its plan.
#[derive(Default)]
struct Ended {
    /// `time` or `budget`.
    by: Option<&'static str>,
    /// The filesystem is given up.
    fault: Option<String>,
    /// The call that told so.
    failed: Option<FaultRecord>,
}

fn done(bytes_written: u64, left_behind: Vec<String>, ended: Ended) -> Event {
    Event::Done {
        bytes_written,
        left_behind,
        fault: ended.fault,
        failed: ended.failed,
        ended_by: ended.by.map(str::to_owned),
    }
}

/// Says that calls return: nothing is said while none does.
fn keep_alive(
    pulse: &Pulse,
    written: &AtomicU64,
    finished: &AtomicBool,
    tell: &(dyn Fn(&Event) + Sync),
) {
    let mut last = u64::MAX;
    while !finished.load(Ordering::Relaxed) {
        let beats = pulse.beats();
        if beats != last {
            tell(&Event::Alive {
                bytes_written: written.load(Ordering::Relaxed),
            });
            last = beats;
        }
        // In small steps, so that the end of the run does not wait for it.
        for _ in 0..10 {
            if finished.load(Ordering::Relaxed) {
                return;
            }
            std::thread::sleep(ALIVE / 10);
        }
    }
}

#[expect(
    clippy::too_many_arguments,
    reason = "one call; each is a separate thing"
)]
fn groups(
    request: &Request,
    pulse: &Pulse,
    tell: &(dyn Fn(&Event) + Sync),
    clock: &Monotonic,
    facts: &Facts,
    scratch: &Scratch,
    selection: &Selection,
    planned: &[Planned],
    written: &AtomicU64,
) -> (u64, Ended) {
    let counters = SysCounters::open(facts, Path::new("/sys"), Path::new("/proc"));
    let quiet = if counters.has_device() {
        quiet_window(&counters, clock, QUIET_NS)
    } else {
        Quiet::default()
    };
    let mut world = World::new(
        scratch,
        &counters,
        clock,
        pulse,
        quiet,
        request.budget_bytes,
        tell,
    )
    .writing_out(WriteOut::of(facts));
    let mut prices = Prices::default();
    let mut known: Vec<Row> = Vec::new();
    let mut given_up = None;
    let asked = planned.iter().any(|p| p.group.probe == "durability");
    for (at, Planned { probe, group }) in planned.iter().enumerate() {
        let needs: Vec<_> = planned[at..]
            .iter()
            .map(|p| plan::need(&p.group, &prices))
            .collect();
        let now_s = clock.now_ns() as f64 / 1e9;
        let share = schedule::share(
            &needs,
            Share {
                seconds: request.time_s - REMOVAL_S - now_s,
                bytes: world.left() as f64,
            },
        );
        let limits = Limits {
            deadline_ns: ((now_s + share.seconds.max(0.0)) * 1e9) as u64,
            hard_deadline_ns: ((request.time_s - REMOVAL_S).max(0.0) * 1e9) as u64,
            bytes: share.bytes as u64,
            hard_bytes: world.left(),
            margins: Margins::default(),
            tell_every_ns: TELL_NS,
        };
        let mut lab = Lab {
            facts,
            request,
            scratch: Some(scratch),
            hooks: &mut world,
            counters: &counters,
            clock,
            pulse,
            quiet,
            rng: fastrand::Rng::with_seed(request.seed.wrapping_add(at as u64)),
        };
        let mut failed = false;
        rounds::run_group(*probe, group, &mut lab, &limits, &mut |rows, last| {
            let rows: Vec<Row> = rows
                .into_iter()
                .filter(|r| plan::wanted(selection, &r.probe, &r.comparison, &r.case))
                .map(|row| without_unknown(row, selection))
                .collect();
            if last {
                failed = rows.iter().any(|r| r.status == RowStatus::Fault);
                known.extend(rows.iter().cloned());
            }
            tell(&Event::Rows { rows, done: last });
        });
        written.store(world.spent(), Ordering::Relaxed);
        if group.probe == "durability" {
            prices = measured_prices(&known).unwrap_or(prices);
            tell(&Event::Durability {
                durability: verdict::verdict(facts, &known, true),
            });
        }
        if failed && let Some(why) = standing::given_up(scratch) {
            given_up = Some(why);
            break;
        }
    }
    if !asked {
        tell(&Event::Durability {
            durability: verdict::verdict(facts, &known, false),
        });
    }
    // An administrator may have mounted it anew under way.
    if let Ok(dir) = scratch.folder().and_then(|folder| folder.fd()) {
        let after = facts::read(dir.as_fd(), &scratch.path, &Roots::default());
        if let Some(durability) = verdict::changed(facts, &after, &known, asked) {
            tell(&Event::Durability { durability });
        }
    }
    let by = ended_by(&known).filter(|_| given_up.is_none());
    let fault = given_up
        .as_ref()
        .map(|why| format!("the filesystem takes no more files, nothing more is measured: {why}"));
    let failed = given_up.map(|why| why.record(0));
    (world.spent(), Ended { by, fault, failed })
}

/// No row is named that is not told.
fn without_unknown(mut row: Row, selection: &Selection) -> Row {
    let told = |id: &str| {
        let mut parts = id.splitn(3, '/');
        let (probe, comparison, case) = (parts.next()?, parts.next()?, parts.next()?);
        Some(plan::wanted(selection, probe, comparison, case))
    };
    let other = row.observations.get(rows::SAME_OPERATIONS);
    if other.is_some_and(|id| id.as_str().and_then(told) != Some(true)) {
        row.observations.remove(rows::SAME_OPERATIONS);
    }
    row
}

/// The run ended by time or budget if a planned case was not reached for that reason.
fn ended_by(rows: &[Row]) -> Option<&'static str> {
    ["time", "budget"].into_iter().find(|code| {
        rows.iter()
            .any(|r| r.status == RowStatus::Skipped && r.reason_code.as_deref() == Some(*code))
    })
}

/// What a sync costs here, from the durability rows.
fn measured_prices(rows: &[Row]) -> Option<Prices> {
    let row = rows
        .iter()
        .find(|r| r.probe == "durability" && r.case == "fdatasync")?;
    let ops = row.ops.max(1) as f64;
    let sync_bytes = match (row.device_bytes_written, row.bytes_written) {
        (Some(device), Some(own)) => (device.saturating_sub(own)) as f64 / ops,
        _ => 0.0,
    };
    Some(Prices {
        sync_s: row.mean_us?.as_us() / 1e6,
        sync_bytes,
    })
}
