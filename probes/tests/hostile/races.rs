//! Several walprobes and several cleans in one directory at the same time.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use walprobe_probes::clean::clean;

use crate::{RUN, cleaned, create, fill, leftover, place, run_id, shown, tree};

#[test]
fn a_live_run_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let scratch = create(dir.path(), RUN);
    fill(&scratch);
    let before = tree::of(dir.path());
    let report = cleaned(dir.path());
    assert_eq!(report.running, [shown(&place(dir.path(), RUN))]);
    assert!(
        report.removed.is_empty() && report.left.is_empty(),
        "{report:?}"
    );
    tree::of(dir.path()).assert_same(&before, "beside a clean");
    assert!(scratch.remove().is_empty());
    assert!(tree::of(dir.path()).top().is_empty());
}

#[test]
fn two_cleans_share_the_work() {
    for _ in 0..5 {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let folders: BTreeSet<_> = (0..6).map(|n| shown(&leftover(dir, &run_id(n)))).collect();
        let reports: Vec<_> = thread::scope(|scope| {
            let cleans: Vec<_> = (0..4).map(|_| scope.spawn(|| cleaned(dir))).collect();
            cleans.into_iter().map(|c| c.join().unwrap()).collect()
        });
        assert!(tree::of(dir).top().is_empty(), "{reports:?}");
        for report in &reports {
            assert!(
                report.left.is_empty() && report.running.is_empty(),
                "{reports:?}"
            );
        }
        let removed: BTreeSet<_> = reports.into_iter().flat_map(|r| r.removed).collect();
        assert_eq!(removed, folders, "each is told by one that removed it");
    }
}

/// The hard case is a run between making its folder and locking its undo file.
#[test]
fn runs_start_and_end_under_constant_cleaning() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let cleans: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut removed = 0;
                    while !done.load(Ordering::Relaxed) {
                        let report = clean(dir).expect("cleaned");
                        assert!(report.left.is_empty(), "{report:?}");
                        removed += report.removed.len();
                    }
                    removed
                })
            })
            .collect();
        let runs: Vec<_> = (0..3)
            .map(|run| {
                scope.spawn(move || {
                    for n in 0..60 {
                        let id = run_id(run * 1000 + n);
                        let scratch = create(dir, &id);
                        fill(&scratch);
                        let folder = place(dir, &id);
                        assert_eq!(tree::of(&folder).top().len(), 6, "run {run}, {n}");
                        assert!(scratch.remove().is_empty(), "run {run}, {n}");
                        assert!(!folder.exists(), "run {run}, {n}");
                    }
                })
            })
            .collect();
        let runs: Vec<_> = runs
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect();
        done.store(true, Ordering::Relaxed);
        for clean in cleans {
            clean.join().expect("a clean");
        }
        for run in runs {
            run.expect("a run");
        }
    });
    assert!(tree::of(dir).top().is_empty());
}
