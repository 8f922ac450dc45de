//! What a report says of rows, by what was told and how the child ended.

use std::time::Duration;

use walprobe_probes::report::{FaultRecord, RowStatus};

use super::*;

fn draft(cases: &[&str]) -> Draft {
    let head = Head {
        run_id: "01JDW3K9ZQ4T".to_owned(),
        argv: Vec::new(),
        seed: 7,
        profile: "quick",
        time_s: 20.0,
        budget_bytes: 1 << 30,
    };
    let mut draft = Draft::new(head, &["/t".to_owned()]);
    draft.take(0, plan(cases));
    draft
}

fn plan(cases: &[&str]) -> Event {
    let planned = |case: &&str| PlannedCase {
        probe: "sync".to_owned(),
        comparison: "commit".to_owned(),
        case: (*case).to_owned(),
        ..PlannedCase::default()
    };
    Event::Plan {
        cases: cases.iter().map(planned).collect(),
    }
}

fn row(case: &str, ops: u64) -> Row {
    Row {
        probe: "sync".to_owned(),
        comparison: "commit".to_owned(),
        case: case.to_owned(),
        ops,
        ..Row::default()
    }
}

fn rows(case: &str, ops: u64, done: bool) -> Event {
    Event::Rows {
        rows: vec![row(case, ops)],
        done,
    }
}

fn doing(comparison: &str, case: &str) -> Event {
    Event::Doing {
        probe: "sync".to_owned(),
        comparison: comparison.to_owned(),
        case: case.to_owned(),
        round: 0,
    }
}

fn outcome(ending: Ending, asked: Option<Why>) -> Outcome {
    Outcome {
        ending,
        asked,
        gone: true,
        lived: Duration::from_secs(1),
    }
}

fn done(ended_by: Option<&str>, fault: Option<&str>) -> Ending {
    Ending::Done {
        bytes_written: 9,
        left_behind: Vec::new(),
        fault: fault.map(str::to_owned),
        failed: None,
        ended_by: ended_by.map(str::to_owned),
    }
}

fn seen(draft: &Draft) -> Vec<String> {
    let show = |r: &Row| {
        let code = r.reason_code.as_deref().unwrap_or("-");
        format!("{} {} {code} {}", r.case, r.status.as_str(), r.ops)
    };
    draft.report().targets[0].rows.iter().map(show).collect()
}

#[test]
fn every_planned_case_has_a_row_at_once_and_keeps_its_place() {
    let mut draft = draft(&["a", "b", "c"]);
    assert!(
        seen(&draft)
            .iter()
            .all(|r| r.ends_with("skipped interrupted 0"))
    );
    assert!(!draft.take(0, rows("c", 5, false)), "not worth saving yet");
    assert!(draft.take(0, rows("a", 3, true)));
    assert!(
        draft.take(0, rows("x", 1, true)),
        "an unplanned one is kept"
    );
    assert_eq!(
        seen(&draft),
        [
            "a ok - 3",
            "b skipped interrupted 0",
            "c ok - 5",
            "x ok - 1"
        ]
    );
}

#[test]
fn a_plan_told_again_keeps_what_was_told() {
    let mut draft = draft(&["a", "b"]);
    draft.take(0, rows("b", 5, true));
    draft.take(0, plan(&["c", "b"]));
    assert_eq!(seen(&draft), ["c skipped interrupted 0", "b ok - 5"]);
    draft.end(0, &outcome(done(Some("budget"), None), None), Vec::new());
    assert_eq!(seen(&draft), ["c skipped budget 0", "b ok - 5"]);
}

#[test]
fn the_end_says_why_rows_are_missing() {
    for (ending, asked, code, ended_by) in [
        (done(Some("time"), None), None, "time", EndedBy::Time),
        (done(Some("budget"), None), None, "budget", EndedBy::Budget),
        (done(None, None), Some(Why::Time), "time", EndedBy::Time),
        (done(None, Some("EIO")), None, "errno", EndedBy::Done),
        (done(None, None), None, "internal", EndedBy::Error),
        (Ending::Overdue, Some(Why::Time), "time", EndedBy::Time),
        (
            Ending::NoAnswer(Duration::from_secs(60)),
            None,
            "no-answer",
            EndedBy::Done,
        ),
        (
            Ending::NoAnswer(Duration::from_secs(9)),
            Some(Why::Time),
            "no-answer",
            EndedBy::Time,
        ),
        (
            Ending::Died("panicked".to_owned()),
            None,
            "internal",
            EndedBy::Error,
        ),
    ] {
        let mut draft = draft(&["a"]);
        let outcome = outcome(ending, asked);
        draft.end(0, &outcome, Vec::new());
        assert_eq!(seen(&draft), [format!("a skipped {code} 0")], "{outcome:?}");
        assert_eq!(draft.finish(None).ended_by, ended_by, "{outcome:?}");
    }
}

#[test]
fn a_signal_wins_over_every_other_end() {
    for (signal, ended_by) in [
        (2, EndedBy::Sigint),
        (15, EndedBy::Sigterm),
        (1, EndedBy::Sighup),
    ] {
        let mut draft = draft(&["a"]);
        let ended = outcome(done(Some("time"), None), Some(Why::Signal));
        draft.end(0, &ended, Vec::new());
        assert_eq!(seen(&draft), ["a skipped interrupted 0"]);
        assert_eq!(draft.finish(Some(signal)).ended_by, ended_by);
    }
}

#[test]
fn a_final_row_is_never_the_one_in_flight() {
    let mut draft = draft(&["a", "b"]);
    draft.take(0, doing("commit", "a"));
    draft.take(0, rows("a", 3, true));
    let ended = outcome(Ending::NoAnswer(Duration::from_secs(60)), None);
    draft.end(0, &ended, Vec::new());
    assert_eq!(seen(&draft), ["a ok - 3", "b skipped no-answer 0"]);
    let target = &draft.report().targets[0];
    assert_eq!(target.status, TargetStatus::Fault);
    let reason = target.reason.as_deref();
    assert_eq!(
        reason,
        Some("a call did not answer for 60 s, after sync/commit/a, round 1")
    );
}

#[test]
fn the_row_in_flight_is_found_in_another_comparison_of_its_group() {
    let mut draft = draft(&["a", "b"]);
    draft.take(0, doing("of-the-group", "b"));
    draft.take(0, rows("b", 3, false));
    draft.end(
        0,
        &outcome(Ending::Died("panicked".to_owned()), None),
        Vec::new(),
    );
    assert_eq!(seen(&draft), ["a skipped internal 0", "b fault internal 3"]);
    assert!(draft.broken());
}

#[test]
fn a_filesystem_that_is_given_up_is_told_in_the_rows_not_begun() {
    let mut draft = draft(&["a", "b"]);
    draft.take(0, rows("a", 3, true));
    let failed = FaultRecord {
        call: "openat".to_owned(),
        errno: 30,
        ..FaultRecord::default()
    };
    let ending = Ending::Done {
        bytes_written: 9,
        left_behind: Vec::new(),
        fault: Some("it is given up".to_owned()),
        failed: Some(failed.clone()),
        ended_by: None,
    };
    draft.end(0, &outcome(ending, None), vec!["/x".to_owned()]);
    assert_eq!(seen(&draft), ["a ok - 3", "b skipped errno 0"]);
    let target = &draft.report().targets[0];
    assert_eq!(target.rows[0].fault, None);
    assert_eq!(target.rows[1].fault, Some(failed));
    // What is left there is the directory's doing, not walprobe's.
    assert_eq!(target.status, TargetStatus::Fault);
    assert!(!draft.littered() && !draft.broken());
}

#[test]
fn an_internal_row_of_the_child_is_walprobes_failure() {
    let mut draft = draft(&["a"]);
    let row = Row {
        status: RowStatus::Fault,
        reason_code: Some("internal".to_owned()),
        ..row("a", 0)
    };
    draft.take(
        0,
        Event::Rows {
            rows: vec![row],
            done: true,
        },
    );
    draft.end(0, &outcome(done(None, None), None), Vec::new());
    assert!(draft.broken());
    assert_eq!(draft.finish(None).ended_by, EndedBy::Error);
}

#[test]
fn a_row_that_is_the_same_as_another_is_complete_as_planned() {
    let mut cases = Vec::new();
    if let Event::Plan { cases: planned } = plan(&["a", "b"]) {
        cases = planned;
    }
    cases[1].same_as = Some("the same as a: it is".to_owned());
    let mut draft = draft(&[]);
    draft.take(0, Event::Plan { cases });
    let outcome = Outcome {
        ending: Ending::Died("was killed".to_owned()),
        asked: None,
        gone: true,
        lived: Duration::from_secs(1),
    };
    draft.end(0, &outcome, Vec::new());
    let rows = &draft.report().targets[0].rows;
    let told = |at: usize| (rows[at].status, rows[at].reason_code.as_deref());
    assert_eq!(told(0), (RowStatus::Skipped, Some("internal")));
    assert_eq!(told(1), (RowStatus::Skipped, Some("same-as")));
    assert_eq!(rows[1].reason.as_deref(), Some("the same as a: it is"));
}
