//! When it is over with a child, by what is known of it.

use super::*;

const LIMITS: Limits = Limits {
    silence: secs(60),
    time: secs(90),
    grace: secs(4),
    signal_grace: secs(5),
};

const fn secs(s: u64) -> Duration {
    Duration::from_secs(s)
}

fn at(state: &State, s: u64) -> Option<Verdict> {
    state.verdict(&LIMITS, secs(s), 0)
}

#[test]
fn silence_is_no_answer() {
    let state = State {
        heard_at: secs(10),
        ..State::default()
    };
    assert_eq!(at(&state, 70), None);
    assert_eq!(at(&state, 71), Some(Verdict::NoAnswer));
}

#[test]
fn calls_on_a_full_disk_may_take_longer() {
    let mut state = State::default();
    let doing = |probe: &str| Event::Doing {
        probe: probe.to_owned(),
        comparison: String::new(),
        case: String::new(),
        round: 0,
    };
    state.take(&doing("enospc"), secs(10));
    assert_eq!(at(&state, 71), None);
    assert_eq!(at(&state, 191), Some(Verdict::NoAnswer));
    state.take(&doing("sync"), secs(10));
    assert_eq!(at(&state, 71), Some(Verdict::NoAnswer));
}

#[test]
fn a_call_that_outlasts_the_grace_is_no_answer_and_a_talker_is_overdue() {
    let mut state = State {
        heard_at: secs(80),
        asked: Some((Why::Time, secs(90))),
        ..State::default()
    };
    assert_eq!(at(&state, 94), None);
    assert_eq!(at(&state, 95), Some(Verdict::NoAnswer));
    state.heard_at = secs(94);
    assert_eq!(at(&state, 95), Some(Verdict::Overdue));
}

#[test]
fn a_second_signal_does_not_wait() {
    let state = State {
        heard_at: secs(10),
        asked: Some((Why::Signal, secs(11))),
        ..State::default()
    };
    assert_eq!(state.verdict(&LIMITS, secs(11), 1), None);
    assert_eq!(state.verdict(&LIMITS, secs(11), 2), Some(Verdict::Overdue));
}

#[test]
fn others_holding_its_pipe_do_not_keep_us() {
    let mut state = State {
        ended_at: Some(secs(5)),
        idle: true,
        ..State::default()
    };
    assert_eq!(at(&state, 7), None);
    assert_eq!(at(&state, 8), Some(Verdict::Ended));
    // Its last words, late on a busy machine, are heard; those of others end some time.
    state.said_at = secs(8);
    assert_eq!(at(&state, 10), None);
    assert_eq!(at(&state, 11), Some(Verdict::Ended));
    state.idle = false;
    state.said_at = secs(66);
    state.heard_at = secs(60);
    assert_eq!(at(&state, 65), None);
    assert_eq!(at(&state, 66), Some(Verdict::Ended));
    state.said_at = secs(5);
    state.closed_at = Some(secs(5));
    assert_eq!(at(&state, 5), None);
    state.stderr_closed = true;
    assert_eq!(at(&state, 5), Some(Verdict::Ended));
}

#[test]
fn what_a_dead_child_told_is_heard_to_its_end() {
    let state = State {
        ended_at: Some(secs(5)),
        heard_at: secs(9),
        ..State::default()
    };
    assert_eq!(at(&state, 9), None);
}

#[test]
fn after_the_last_word_only_its_end_matters() {
    let state = State {
        last_word: Some(Ending::Overdue),
        last_word_at: secs(7),
        asked: Some((Why::Time, secs(1))),
        ..State::default()
    };
    assert_eq!(at(&state, 9), None);
    assert_eq!(at(&state, 10), Some(Verdict::Ended));
}

#[test]
fn a_mute_child_is_not_waited_for() {
    let state = State {
        closed_at: Some(secs(5)),
        ..State::default()
    };
    assert_eq!(at(&state, 7), None);
    assert_eq!(at(&state, 8), Some(Verdict::Mute));
}
