//! The measuring commands: look at every directory, measure each, print the report.
//!
//! What was asked becomes a task; `run` does it.

use walprobe_probes::request::{DropCaches, Profile, Request};

use crate::{
    anonymous,
    assemble::{Draft, Head},
    cli::{FIRST_PROBE, Facts, Measure},
    error::{Exit, Failure},
    output::{Outputs, each_once},
    plan,
    progress::Console,
    publish,
    run::{Run, Task},
    signals::Signals,
    stamp, stdout,
};

/// `walprobe all`, `walprobe PROBE`.
///
/// # Errors
/// Nothing was measured.
pub fn measure(probes: Vec<String>, options: Measure) -> Result<Exit, Failure> {
    let profile = options.profile;
    let request = Request {
        dir: String::new(),
        run_id: stamp::run_id(),
        probes,
        only: options.only,
        skip: options.skip,
        profile,
        time_s: options.time.unwrap_or(profile.seconds()),
        budget_bytes: options.write_budget.unwrap_or(profile.budget_bytes()),
        seed: options.seed.unwrap_or_else(|| fastrand::u32(..).into()),
        drop_caches: options.drop_caches,
        beside: options.beside,
        clients: options.clients.map(|clients| clients.0),
        cycles: options.cycles,
        rewrites: options.rewrites,
        segments: options.segments,
        drop_caches_cmd: options.drop_caches_cmd,
        fill: options.fill,
        commit_bytes: options.commit_bytes,
        segment_bytes: options.segment_size,
        syncs: None,
        force: options.force,
        dry_run: options.dry_run,
        op_timeout_s: options.op_timeout,
    };
    run(Task {
        request,
        dirs: options.dirs,
        show: options.show,
        conf: options.conf,
        measures: true,
    })
}

/// `walprobe facts`.
///
/// # Errors
/// Nothing is known.
pub fn facts(options: Facts) -> Result<Exit, Failure> {
    let profile = Profile::Quick;
    let measures = options.syncs.is_some();
    let request = Request {
        dir: String::new(),
        run_id: stamp::run_id(),
        probes: measures
            .then(|| FIRST_PROBE.to_owned())
            .into_iter()
            .collect(),
        only: Vec::new(),
        skip: Vec::new(),
        profile,
        time_s: profile.seconds(),
        budget_bytes: profile.budget_bytes(),
        seed: fastrand::u32(..).into(),
        drop_caches: DropCaches::None,
        commit_bytes: None,
        segment_bytes: 16 << 20,
        syncs: options.syncs,
        force: options.force,
        dry_run: false,
        op_timeout_s: options.op_timeout,
        ..Request::default()
    };
    run(Task {
        request,
        dirs: options.dirs,
        show: options.show,
        conf: None,
        measures,
    })
}

fn run(task: Task) -> Result<Exit, Failure> {
    each_once(&task.dirs)?;
    let outputs = check_outputs(&task)?;
    let signals =
        Signals::catch().map_err(|e| Failure::broken(format!("cannot catch signals: {e}")))?;
    let head = Head {
        run_id: task.request.run_id.clone(),
        argv: std::env::args_os()
            .map(|a| a.to_string_lossy().into_owned())
            .collect(),
        seed: task.request.seed,
        profile: task.request.profile.as_str(),
        time_s: task.request.time_s,
        budget_bytes: task.request.budget_bytes,
    };
    let mut run = Run {
        draft: Draft::new(head, &task.dirs),
        outputs,
        signals,
        console: Console::new(),
        task,
    };
    let usable = run.look()?;
    if run.task.request.dry_run {
        return print_plan(run);
    }
    if run.task.measures {
        run.measure(&usable)?;
    }
    run.console.clear();
    Ok(publish::publish(
        run.draft,
        run.outputs,
        &run.signals,
        &run.task.show,
        &run.task.dirs,
    ))
}

fn check_outputs(task: &Task) -> Result<Outputs, Failure> {
    let asked = [
        ("csv", &task.show.csv),
        ("json", &task.show.json),
        ("conf", &task.conf),
    ];
    let asked: Vec<(&'static str, &str)> = asked
        .into_iter()
        .filter_map(|(format, path)| Some((format, path.as_deref()?)))
        .collect();
    Outputs::check(&asked, task.request.force)
}

/// `--dry-run`: the plans are the document.
fn print_plan(mut run: Run) -> Result<Exit, Failure> {
    run.console.clear();
    if let Some(signal) = run.signals.first() {
        return Ok(Exit::Signal(signal));
    }
    let report = run.draft.report();
    let dirs: Vec<String> = report
        .targets
        .iter()
        .enumerate()
        .map(|(at, target)| match run.task.show.anonymous {
            true => anonymous::directory(at),
            false => target.dir.clone(),
        })
        .collect();
    let plans: Vec<plan::Plan<'_>> = report
        .targets
        .iter()
        .enumerate()
        .map(|(at, _)| plan::Plan {
            dir: &dirs[at],
            cases: run.draft.plan(at),
            time_limit_s: report.time_limit_s,
            write_budget_bytes: report.write_budget_bytes,
            fill: run.task.request.fill,
        })
        .collect();
    let text = plan::print(&plans, &run.task.show.format)
        .map_err(|e| Failure::broken(format!("cannot print the plan: {e:#}")))?;
    run.signals.end_at_once();
    let printed = stdout(&text);
    Ok(if run.draft.broken() {
        Exit::Broken
    } else {
        printed
    })
}
