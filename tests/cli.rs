//! The command line from outside: help, usage errors, and that stdout stays empty on them.

use assert_cmd::Command;
use walprobe_probes::PROBES;

struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn walprobe(arguments: &[&str]) -> Ended {
    let output = Command::new(env!("CARGO_BIN_EXE_walprobe"))
        .args(arguments)
        .env_remove("COLUMNS")
        .output()
        .unwrap();
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn help_of_a_measuring_command() {
    let ended = walprobe(&["all", "--help"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!("all-help", ended.stdout);
}

#[test]
fn help_of_facts() {
    insta::assert_snapshot!("facts-help", walprobe(&["facts", "-h"]).stdout);
}

#[test]
fn help_names_every_probe_and_every_exit_code() {
    let ended = walprobe(&["--help"]);
    assert_eq!(ended.code, Some(0));
    // The text is wrapped.
    let words: Vec<&str> = ended.stdout.split_whitespace().collect();
    let flowing = words.join(" ");
    for probe in PROBES {
        let card = probe.card();
        assert!(flowing.contains(card.question), "{}", card.id);
        let own = walprobe(&[card.id, "--help"]);
        assert_eq!(own.code, Some(0), "{}", own.stderr);
    }
    for (code, _) in walprobe::error::TABLE {
        assert!(ended.stdout.contains(&format!("\n  {code} ")), "{code}");
    }
    assert!(!ended.stdout.contains("worker"), "it is hidden");
}

#[test]
fn version_is_on_stdout() {
    let ended = walprobe(&["--version"]);
    assert_eq!(ended.code, Some(0));
    let expected = format!("walprobe {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(ended.stdout, expected);
}

#[test]
fn wrong_usage_is_2_with_an_empty_stdout() {
    for arguments in [
        &[][..],
        &["nonsense"],
        &["all"],
        &["all", "--nonsense", "/tmp"],
        &["all", "--only", "a[", "/tmp"],
        &["all", "--skip", "", "/tmp"],
        &["all", "--segment-size", "16MB", "/tmp"],
        &["all", "--write-budget", "0", "/tmp"],
        &["all", "--time", "inf", "/tmp"],
        &["all", "--format", "conf", "/tmp"],
        &["all", "--json", "/nowhere/r.json", "/tmp"],
        &["all", "--json", "/tmp", "/tmp"],
        &["all", "/nowhere/at/all"],
        &["facts", "/nowhere/at/all"],
        &["facts", "--syncs", "0", "/tmp"],
        &["facts", "--format", "csv", "/tmp"],
        &["all", "--rewrites", "2", "/tmp"],
        &["all", "--cycles", "0", "/tmp"],
        &["facts", "--fail-on", "info", "/tmp"],
        &["explain", "no-such-name"],
        &["clean"],
        &["clean", "/a", "/b"],
    ] {
        let ended = walprobe(arguments);
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{arguments:?}");
        assert!(!ended.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn messages_say_what_is_wrong_and_what_to_do() {
    for (arguments, parts) in [
        (
            &["all", "--only", "a[", "/tmp"][..],
            &["--only", "unclosed character class"][..],
        ),
        (
            &["all", "--segment-size", "16MB", "/tmp"],
            &["power of two", "16MiB"],
        ),
        (
            &["all", "--write-budget", "1Gig", "/tmp"],
            &["'Gig' is not a unit", "GiB"],
        ),
        (
            &["all", "--json", "/nowhere/r.json", "/tmp"],
            &["walprobe: cannot write /nowhere/r.json: No such file or directory"],
        ),
    ] {
        let ended = walprobe(arguments);
        for part in parts {
            assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
        }
    }
}

#[test]
fn a_name_that_is_not_utf_8_is_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let output = Command::new(env!("CARGO_BIN_EXE_walprobe"))
        .arg("all")
        .arg(std::ffi::OsStr::from_bytes(b"/tmp/\xff"))
        .output()
        .unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
}

#[test]
fn the_list_shows_the_catalogue() {
    let ended = walprobe(&["list"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    for probe in PROBES {
        assert!(ended.stdout.contains(probe.card().question));
    }
    assert!(ended.stdout.contains("--only"));
}

#[test]
fn names_are_explained() {
    let all = walprobe(&["explain"]);
    assert_eq!((all.code, all.stderr.as_str()), (Some(0), ""));
    for name in [
        "recycle/life",
        "wal_recycle",
        "not-durable",
        "steal",
        "p99_us",
    ] {
        let ended = walprobe(&["explain", name]);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{name}");
        assert!(ended.stdout.ends_with('\n'), "{name}");
    }
    for name in ["recycle/life", "wal_recycle", "not-durable", "steal"] {
        assert!(all.stdout.contains(name), "{name}");
    }
    let ended = walprobe(&["explain", "wal_recicle"]);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended.stderr.contains("near it are wal_recycle"),
        "{}",
        ended.stderr
    );
}

/// The program where the machine has this name; none where that needs more rights.
fn on_host(name: &str, arguments: &[&str]) -> Option<Ended> {
    let script = format!("echo {name} >/proc/sys/kernel/hostname && exec \"$0\" \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["--uts", "sh", "-c", &script]);
    command.arg(env!("CARGO_BIN_EXE_walprobe")).args(arguments);
    let output = command.env_remove("COLUMNS").output().ok()?;
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let stderr = text(output.stderr);
    if stderr.contains("unshare") || stderr.contains("hostname") {
        return None;
    }
    Some(Ended {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr,
    })
}

#[test]
fn an_anonymous_report_has_no_names_in_any_format() {
    let dir = tempfile::Builder::new()
        .prefix("quaint-place-")
        .tempdir()
        .unwrap();
    let inner = dir.path().join("of bob's");
    std::fs::create_dir(&inner).unwrap();
    let path = inner.to_str().unwrap();
    let saved = dir.path().join("saved-by-bob.json");
    let saved = saved.to_str().unwrap();
    let mut texts = Vec::new();
    for format in ["table", "markdown", "json", "csv"] {
        let arguments = [
            "facts", "--syncs", "3", "--json", saved, "--format", format, path,
        ];
        let Some(open) = on_host("quaint-host", &arguments) else {
            eprintln!("skipped: a host name of its own needs root and unshare");
            return;
        };
        assert_eq!(open.code, Some(0), "{}", open.stderr);
        assert!(open.stdout.contains("quaint-host"), "{format}");
        assert!(
            open.stdout.contains("quaint-place-"),
            "{format}: nothing to hide"
        );
        let arguments = [&arguments[..], &["--anonymous"]].concat();
        let hidden = on_host("quaint-host", &arguments).unwrap();
        assert_eq!(hidden.code, Some(0), "{}", hidden.stderr);
        assert!(hidden.stdout.contains("DIR-1"), "{format}");
        texts.push(hidden.stdout);
        texts.push(std::fs::read_to_string(saved).unwrap());
    }
    let plan = walprobe(&["all", "--dry-run", "--anonymous", path]);
    assert_eq!(plan.code, Some(0), "{}", plan.stderr);
    texts.push(plan.stdout);
    for text in texts {
        for name in ["quaint", "bob"] {
            assert!(!text.contains(name), "{name}:\n{text}");
        }
    }
}

#[test]
fn fail_on_goes_by_findings_and_by_durability() {
    // A directory in memory is not durable wherever this runs.
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = memory.path().to_str().unwrap();
    for (options, code) in [
        (&["--syncs", "2"][..], 0),
        (&["--syncs", "2", "--fail-on", "warning"], 1),
        (&["--syncs", "2", "--fail-on", "critical"], 1),
    ] {
        let ended = walprobe(&[&["facts", path], options].concat());
        assert_eq!(ended.code, Some(code), "{options:?}: {}", ended.stderr);
        assert!(ended.stdout.contains("NOT DURABLE"), "{}", ended.stdout);
        let said = "critical: not-durable";
        assert_eq!(ended.stderr.contains(said), code == 1, "{}", ended.stderr);
    }
}
