//! The evaluator against a report with known figures.

use super::*;

fn ask(text: &str) -> Outcome {
    let document = Document::read(samples::json().to_string().as_bytes());
    match (Expectation::parse(text), document) {
        (Ok(expectation), Ok(document)) => expectation.ask(&document),
        (Err(error), _) | (_, Err(error)) => Outcome::Cannot(format!("BROKEN: {error}")),
    }
}

#[test]
fn what_is_so_holds() {
    for text in [
        "sync/commit/fdatasync.flushes_per_op between 0.95 1.15",
        "sync/commit/fdatasync.flushes_per_op = 1",
        "sync/commit/fdatasync.device_kib_per_op = 8",
        "sync/commit/*.status in ok skipped",
        "sync/commit/open_sync.ratio = null",
        "sync/commit/open_sync.reason_code = time",
        "sync/bulk/* absent",
        "sync/commit/* present",
        "recycle/life-cold/recycle+zero.cold = proven",
        "recycle/life-cold/recycle+zero.observations.read_per_wal_byte <= 0.01",
        "durability.verdict = flushes-seen",
        "durability.may_recommend = true",
        "target.bytes_written >= 1",
        "fact fs.type = ext4",
        "fact host.kernel != \"some other\"",
        "ground device-flushes.weight = for",
        "ground fs-in-memory absent",
        "device 1.kind = disk",
        "device 2 absent",
        "finding wal_sync_method.action = keep",
        "finding *.action != change",
        "not_tested wal_init_zero.reason_code = time",
        "on fs.type=ext: durability.verdict = flushes-seen",
        // Asked of another filesystem only.
        "on fs.type=zfs: durability.verdict = no-flush-seen",
        "sync/commit/fdatasync.doubt_codes = \"\"",
    ] {
        assert_eq!(ask(text), Outcome::Holds, "{text}");
    }
}

#[test]
fn what_is_not_so_fails_and_says_what_is() {
    for (text, said) in [
        (
            "sync/commit/fdatasync.flushes_per_op between 1.9 2.1",
            "is 1.0",
        ),
        (
            "sync/commit/fsync.flushes_per_op <= 1.15",
            "doubt: 3% of the flushes",
        ),
        ("sync/commit/fdatasync.flushes_per_op >= 1.01", "is 1.0"),
        (
            "sync/commit/*.status = ok",
            "open_sync is \"skipped\" (skipped, time: not reached)",
        ),
        ("sync/commit/* absent", "there are 3"),
        ("sync/bulk/fsync present", "there is none"),
        ("recycle/life-cold/recycle+zero.cold = not-cold", "proven"),
        ("durability.verdict = not-durable", "flushes-seen"),
        ("ground device-flushes absent", "there are 1"),
    ] {
        match ask(text) {
            Outcome::Fails(why) => assert!(why.contains(said), "{text}: {why}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

/// A line about something that was not measured must not count as a failure that a
/// line turned round is looking for.
#[test]
fn what_is_not_there_cannot_be_asked() {
    for (text, said) in [
        (
            "sync/commit/open_sync.flushes_per_op between 1.9 2.1",
            "not reached",
        ),
        ("sync/commit/open_sync.device_kib_per_op >= 0", "is null"),
        (
            "sync/commit/no-such.flushes_per_op = 1",
            "none in the report",
        ),
        (
            "sync/commit/fdatasync.no_such_key = 1",
            "has no no_such_key",
        ),
        ("sync/commit/fdatasync.observations.nothing = 1", "has no"),
        ("fact fs.subtype = x", "none"),
        ("finding wal_recycle.action = keep", "none"),
    ] {
        match ask(text) {
            Outcome::Cannot(why) => assert!(why.contains(said), "{text}: {why}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn a_line_that_makes_no_sense_is_refused() {
    for text in [
        "",
        "sync/commit/fdatasync.flushes_per_op",
        "sync/commit/fdatasync.flushes_per_op =",
        "sync/commit/fdatasync.flushes_per_op = 1 2",
        "sync/commit/fdatasync.flushes_per_op between 2 1",
        "sync/commit/fdatasync.flushes_per_op between one two",
        "sync/commit/fdatasync.flushes_per_op about 1",
        "sync/commit/fdatasync = 1",
        "sync/commit/fdatasync.ops present",
        "sync/commit.ops = 1",
        "verdict = flushes-seen",
        "fact fs.type = \"ext4",
    ] {
        assert!(Expectation::parse(text).is_err(), "{text:?} was read");
    }
}

#[test]
fn each_line_has_its_trial() -> Result<(), String> {
    for (text, area) in [
        ("sync/commit/fsync.ops >= 1", "sync"),
        ("durability/check/fsync.ops >= 1", "durability"),
        ("durability.verdict = x", "durability"),
        ("ground device-flushes present", "durability"),
        ("device 0.kind = loop", "facts"),
        ("fact fs.type = ext4", "facts"),
        ("finding *.action = keep", "settings"),
        ("target.status = ok", "report"),
    ] {
        assert_eq!(Expectation::parse(text)?.subject.area(), area, "{text}");
    }
    Ok(())
}

#[test]
fn one_of_several_words_and_a_condition_can_fail() {
    for text in [
        "sync/commit/fdatasync.doubt_codes has drift",
        "durability.verdict has flushes",
        "on fs.type=ext4: durability.verdict = not-durable",
    ] {
        assert!(matches!(ask(text), Outcome::Fails(_)), "{text}");
    }
    assert_eq!(ask("durability.verdict has flushes-seen"), Outcome::Holds);
    let unknown = ask("on zfs.version=2: durability.verdict = flushes-seen");
    assert!(matches!(unknown, Outcome::Cannot(_)));
    assert!(Expectation::parse("on zfs.version: target.status = ok").is_err());
}
