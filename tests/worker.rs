//! Every odd child: whatever it does, walprobe comes back with a whole report, and nothing
//! of it is left. The children are scripted in `fake-worker.sh`; none of them measures.
//!
//! Limits on time are those of the test, wide, and only there to fail instead of hanging.
//! Only builds with debug assertions let the child be replaced.

#![cfg(debug_assertions)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread::sleep,
    time::{Duration, SystemTime},
};

use rustix::process::{Pid, Signal, kill_process};
use walprobe_probes::report::{EndedBy, Report, Row, RowStatus, TargetStatus};

/// Longer than any limit that the tests set, by far.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory to measure, and a mark to find its processes by.
struct Stage {
    dir: tempfile::TempDir,
    mark: String,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mark = dir.path().file_name().unwrap().to_str().unwrap().to_owned();
        Self { dir, mark }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn str(&self) -> &str {
        self.path().to_str().unwrap()
    }

    fn scratch(&self) -> PathBuf {
        self.path().join(".walprobe-fake")
    }

    fn command(&self, fake: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_walprobe"));
        command.args(arguments);
        self.play(&mut command, fake);
        command
    }

    fn play(&self, command: &mut Command, fake: &str) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake-worker.sh");
        command
            .env("WALPROBE_TEST_WORKER", script)
            .env("FAKE", fake)
            .env("FAKE_MARK", &self.mark)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }

    /// `walprobe all --format json` on the directory.
    fn all(&self, fake: &str, options: &[&str]) -> Ended {
        let mut arguments = vec!["all", "--format", "json", self.str()];
        arguments.extend(options);
        Ended::of(self.command(fake, &arguments))
    }

    /// Waits until the child says that it waits.
    fn ready(&self) {
        wait_for(&self.path().join(".walprobe-fake.ready"));
    }

    /// Processes that carry the mark: their numbers and command lines.
    fn survivors(&self) -> Vec<(i32, String)> {
        let wanted = format!("FAKE_MARK={}", self.mark);
        let of = |process: &Path| {
            let pid = process.file_name()?.to_str()?.parse().ok()?;
            let environment = fs::read(process.join("environ")).ok()?;
            let mut variables = environment.split(|b| *b == 0);
            variables.find(|v| *v == wanted.as_bytes())?;
            let line = fs::read(process.join("cmdline")).ok()?;
            Some((pid, String::from_utf8_lossy(&line).replace('\0', " ")))
        };
        let processes = fs::read_dir("/proc").unwrap();
        processes.filter_map(|p| of(&p.ok()?.path())).collect()
    }

    /// Nothing in the directory, no process; killed ones have a moment to vanish.
    fn is_clean(&self) {
        let left: Vec<_> = fs::read_dir(self.path())
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert!(left.is_empty(), "{left:?}");
        for _ in 0..100 {
            if self.survivors().is_empty() {
                return;
            }
            sleep(Duration::from_millis(50));
        }
        panic!("{:?}", self.survivors());
    }
}

/// Waits until there is such a file.
/// Started under nohup: then so is walprobe, which respects it.
fn hangups_are_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status
        .lines()
        .find_map(|l| l.strip_prefix("SigIgn:"))
        .unwrap();
    let bit = 1 << (Signal::HUP.as_raw() - 1);
    u64::from_str_radix(ignored.trim(), 16).unwrap() & bit != 0
}

fn wait_for(path: &Path) {
    for _ in 0..600 {
        if path.exists() {
            return;
        }
        sleep(Duration::from_millis(50));
    }
    panic!("{} never came", path.display());
}

/// How a run ended.
struct Ended {
    /// Wall time from when it was waited for.
    took: Duration,
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ended {
    fn of(mut command: Command) -> Self {
        Self::wait(command.spawn().unwrap())
    }

    /// Reads both pipes to their end: whoever still holds them keeps this waiting.
    fn wait(child: Child) -> Self {
        let began = SystemTime::now();
        let pid = Pid::from_child(&child);
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(child.wait_with_output()));
        let output: Output = receiver
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|_| {
                let _ = kill_process(pid, Signal::KILL);
                panic!("walprobe did not come back");
            })
            .unwrap();
        Self {
            took: began.elapsed().unwrap_or_default(),
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The one valid document on stdout; every planned case has its row.
    fn report(&self) -> Report {
        let report: Report = serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e}\n{}\n{}", self.stdout, self.stderr));
        for target in &report.targets {
            let ids: Vec<String> = target.rows.iter().map(id).collect();
            if target.rows.is_empty() {
                assert_ne!(target.status, TargetStatus::Ok);
                continue;
            }
            assert_eq!(
                ids,
                [
                    "durability/check/fdatasync",
                    "sync/commit/fdatasync",
                    "sync/commit/fsync",
                    "recycle/life/new+zero"
                ]
            );
            for row in &target.rows {
                assert_eq!(row.status == RowStatus::Ok, row.reason_code.is_none());
            }
        }
        assert!(report.finished_at.is_some());
        report
    }
}

fn id(row: &Row) -> String {
    format!("{}/{}/{}", row.probe, row.comparison, row.case)
}

/// `STATUS REASON_CODE ops` of each row.
fn rows(report: &Report) -> Vec<String> {
    let row = |r: &Row| {
        let code = r.reason_code.as_deref().unwrap_or("-");
        format!("{} {code} {}", r.status.as_str(), r.ops)
    };
    report.targets[0].rows.iter().map(row).collect()
}

#[test]
fn a_good_child_gives_a_whole_report() {
    let stage = Stage::new();
    let ended = stage.all("good", &["--seed", "7"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let report = ended.report();
    assert_eq!(rows(&report), ["ok - 64", "ok - 100", "ok - 101", "ok - 3"]);
    assert_eq!((report.ended_by, report.seed), (EndedBy::Done, 7));
    assert_eq!(report.targets[0].bytes_written, 4096);
    assert_eq!(report.host.facts["host.kernel"].value, "6.1");
    assert!(report.tool.argv.contains(&"--seed".to_owned()));
    assert_eq!(report.run_id.len(), 12);
    assert_eq!(ended.stderr, "");
    stage.is_clean();
}

#[test]
fn pointers_of_grounds_resolve_in_the_whole_document() {
    let stage = Stage::new();
    let other = Stage::new();
    let arguments = ["all", "--format", "json", other.str(), stage.str()];
    let ended = Ended::of(stage.command("good", &arguments));
    let report = ended.report();
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let grounds = &report.targets[1].durability.grounds;
    let pointer = grounds[0].evidence.as_deref().unwrap();
    assert_eq!(pointer, "/targets/1/rows/0/flushes_per_op");
    assert_eq!(document.pointer(pointer), Some(&grounds[0].value));
    assert_eq!(grounds[1].evidence, None, "it led nowhere");
}

#[test]
fn time_over_is_a_result() {
    let stage = Stage::new();
    let ended = stage.all("time", &[]);
    assert_eq!(ended.code, Some(0));
    let report = ended.report();
    assert_eq!(report.ended_by, EndedBy::Time);
    assert_eq!(rows(&report)[3], "skipped time 0");
    stage.is_clean();
}

#[test]
fn silence_is_a_fault_of_the_case_in_flight() {
    let stage = Stage::new();
    let ended = stage.all("never", &["--op-timeout", "2"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let report = ended.report();
    assert_eq!(
        rows(&report),
        [
            "ok - 64",
            "fault no-answer 10",
            "ok - 7",
            "skipped no-answer 0"
        ]
    );
    let target = &report.targets[0];
    assert_eq!(target.status, TargetStatus::Fault);
    assert!(
        target
            .reason
            .as_deref()
            .unwrap()
            .contains("sync/commit/fdatasync, round 3")
    );
    let fault = target.rows[1].fault.as_ref().unwrap();
    assert_eq!((fault.call.as_str(), fault.errno), ("unknown", 0));
    assert_eq!(target.bytes_written, 2048);
    assert!(ended.stderr.contains("did not answer"), "{}", ended.stderr);
    assert!(target.left_behind.is_empty());
    stage.is_clean();
}

#[test]
fn what_could_not_be_cleaned_up_is_named() {
    for (clean, why) in [
        ("hang", "no answer within"),
        ("left", "Permission denied"),
        ("runs", "was left behind"),
        ("dies", "was killed by SIGKILL"),
    ] {
        let stage = Stage::new();
        let mut command = stage.command(
            "never",
            &["all", "--format", "json", "--op-timeout", "2", stage.str()],
        );
        command.env("FAKE_CLEAN", clean);
        let ended = Ended::of(command);
        assert_eq!(ended.code, Some(0), "{clean}: {}", ended.stderr);
        let scratch = stage.scratch().to_str().unwrap().to_owned();
        let report = ended.report();
        assert_eq!(
            report.targets[0].left_behind,
            std::slice::from_ref(&scratch),
            "{clean}"
        );
        assert!(ended.stderr.contains(why), "{clean}: {}", ended.stderr);
        // The promise: ten seconds after the silence was called one.
        assert!(
            ended.took < Duration::from_secs(12),
            "{clean}: {:?}",
            ended.took
        );
        let hint = format!("hint: walprobe clean {}", stage.str());
        assert!(ended.stderr.contains(&hint), "{}", ended.stderr);
        assert!(ended.stderr.contains(&scratch), "{}", ended.stderr);
        fs::remove_dir(&scratch).unwrap();
        stage.is_clean();
    }
}

#[test]
fn what_is_left_where_nothing_is_at_fault_is_the_exit_code() {
    for (fake, options) in [("litters", &[][..]), ("stops-late", &["--time", "1"])] {
        let stage = Stage::new();
        let mut command = stage.command(fake, &["all", "--format", "json", stage.str()]);
        command.args(options).env("FAKE_CLEAN", "left");
        let ended = Ended::of(command);
        assert_eq!(ended.code, Some(3), "{fake}: {}", ended.stderr);
        let target = &ended.report().targets[0];
        assert_eq!(target.status, TargetStatus::Ok, "{fake}");
        assert_eq!(target.left_behind.len(), 1, "{fake}");
        assert!(ended.stderr.contains("hint: walprobe clean"), "{fake}");
    }
}

#[test]
fn a_flood_of_events_ends_with_the_time() {
    let stage = Stage::new();
    let ended = stage.all("floods", &["--time", "1"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let report = ended.report();
    assert_eq!(report.ended_by, EndedBy::Time);
    assert_eq!(
        rows(&report),
        ["ok - 64", "ok - 10", "ok - 7", "skipped time 0"]
    );
    stage.is_clean();
}

#[test]
fn noise_is_no_sign_of_life() {
    for fake in ["babbles", "floods-stderr"] {
        let stage = Stage::new();
        let ended = stage.all(fake, &["--op-timeout", "2"]);
        assert_eq!(ended.code, Some(0), "{fake}");
        assert_eq!(rows(&ended.report())[1], "fault no-answer 10", "{fake}");
        assert!(ended.stderr.lines().count() < 250, "{fake}");
        stage.is_clean();
    }
}

#[test]
fn garbage_between_events_is_passed_over_and_cannot_steer_the_terminal() {
    let stage = Stage::new();
    let ended = stage.all("garbage", &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(rows(&ended.report())[3], "ok - 3");
    assert!(ended.stderr.contains("a line for people \\u{1b}[2J"));
    assert!(!ended.stderr.contains(['\x1b', '\0']), "{:?}", ended.stderr);
    stage.is_clean();
}

#[test]
fn a_child_that_dies_is_walprobes_failure_and_the_report_is_printed() {
    for (fake, how) in [
        ("killed", "was killed by SIGKILL"),
        ("panics", "panicked"),
        ("exits", "exited with code 0"),
        ("mute", "closed its output and went on"),
    ] {
        let stage = Stage::new();
        let ended = stage.all(fake, &[]);
        assert_eq!(ended.code, Some(3), "{fake}: {}", ended.stderr);
        let report = ended.report();
        assert_eq!(report.ended_by, EndedBy::Error, "{fake}");
        assert_eq!(
            rows(&report),
            [
                "ok - 64",
                "fault internal 10",
                "ok - 7",
                "skipped internal 0"
            ],
            "{fake}"
        );
        assert!(ended.stderr.contains(how), "{fake}: {}", ended.stderr);
        stage.is_clean();
    }
    let stage = Stage::new();
    let ended = stage.all("panics", &[]);
    assert!(ended.stderr.contains("panicked at src/nowhere.rs"));
}

#[test]
fn rows_that_were_never_told_are_walprobes_failure() {
    let stage = Stage::new();
    let ended = stage.all("forgets", &[]);
    assert_eq!(ended.code, Some(3));
    assert_eq!(rows(&ended.report())[3], "skipped internal 0");
    stage.is_clean();
}

#[test]
fn a_child_that_goes_on_after_its_last_word_is_ended() {
    let stage = Stage::new();
    let ended = stage.all("lingers", &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(rows(&ended.report())[3], "ok - 3");
    stage.is_clean();
}

#[test]
fn a_process_that_cannot_be_reached_holds_nothing_of_the_shells() {
    for (fake, row) in [
        ("leaves-others", "ok - 3"),
        ("leaves-others-and-hangs", "skipped no-answer 0"),
    ] {
        let stage = Stage::new();
        // A command substitution waits for the end of stdout and so for all who hold it; fd 9
        // is one that the shell left open.
        let script = r#"exec 9>&1; x=$("$0" all --format json --op-timeout 2 "$1"); c=$?; printf '%s' "$x"; exit $c"#;
        let mut command = Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_walprobe"), stage.str()]);
        stage.play(&mut command, fake);
        let ended = Ended::of(command);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!(rows(&ended.report())[3], row, "{fake}");
        let survivors = stage.survivors();
        let alive = |line: &str| survivors.iter().any(|(_, l)| l.starts_with(line));
        assert!(alive("sleep 30"), "the test needs it alive: {survivors:?}");
        for (pid, _) in survivors {
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
        }
        stage.is_clean();
    }
}

#[test]
fn a_signal_prints_what_was_measured() {
    for (signal, code, ended_by) in [
        (Signal::INT, 130, EndedBy::Sigint),
        (Signal::TERM, 143, EndedBy::Sigterm),
        (Signal::HUP, 129, EndedBy::Sighup),
    ] {
        if signal == Signal::HUP && hangups_are_ignored() {
            eprintln!("SIGHUP: skipped, these tests run under nohup");
            continue;
        }
        let stage = Stage::new();
        let saved = tempfile::tempdir().unwrap();
        let json = saved.path().join("r.json");
        let arguments = [
            "all",
            "--format",
            "json",
            "--json",
            json.to_str().unwrap(),
            stage.str(),
        ];
        let child = stage.command("stops", &arguments).spawn().unwrap();
        stage.ready();
        wait_for(&json);
        // Saved after the first comparison: a document already, and not finished.
        let so_far: Report = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
        assert_eq!(
            (so_far.finished_at, so_far.ended_by),
            (None, EndedBy::Error)
        );
        assert_eq!(
            so_far.targets[0].rows[3].reason_code.as_deref(),
            Some("interrupted")
        );
        kill_process(Pid::from_child(&child), signal).unwrap();
        let ended = Ended::wait(child);
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        let report = ended.report();
        assert_eq!(report.ended_by, ended_by);
        assert_eq!(
            rows(&report),
            ["ok - 64", "ok - 10", "ok - 7", "skipped interrupted 0"]
        );
        assert_eq!(fs::read_to_string(&json).unwrap(), ended.stdout);
        stage.is_clean();
    }
}

#[test]
fn a_child_that_does_not_stop_is_killed_after_its_grace_or_a_second_signal() {
    let mut took = Vec::new();
    for signals in [1, 2] {
        let stage = Stage::new();
        let arguments = ["all", "--format", "json", stage.str()];
        let child = stage.command("stops-late", &arguments).spawn().unwrap();
        stage.ready();
        fs::remove_file(stage.path().join(".walprobe-fake.ready")).unwrap();
        for _ in 0..signals {
            kill_process(Pid::from_child(&child), Signal::INT).unwrap();
            sleep(Duration::from_millis(300));
        }
        let ended = Ended::wait(child);
        assert_eq!(ended.code, Some(130), "{}", ended.stderr);
        let report = ended.report();
        assert_eq!(report.ended_by, EndedBy::Sigint);
        assert_eq!(rows(&report)[3], "skipped interrupted 0");
        let said = ["did not stop in time", "stopped at once"];
        for (at, said) in said.iter().enumerate() {
            let wanted = at + 1 == signals;
            assert_eq!(ended.stderr.contains(said), wanted, "{}", ended.stderr);
        }
        stage.is_clean();
        took.push(ended.took);
    }
    assert!(took[1] * 2 < took[0], "the second hurries: {took:?}");
}

#[test]
fn hangup_is_ignored_where_it_was_at_the_start() {
    let stage = Stage::new();
    let mut command = Command::new("nohup");
    command.args([
        env!("CARGO_BIN_EXE_walprobe"),
        "all",
        "--format",
        "json",
        stage.str(),
    ]);
    stage.play(&mut command, "stops");
    let child = command.spawn().unwrap();
    stage.ready();
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::HUP).unwrap();
    sleep(Duration::from_millis(500));
    kill_process(pid, Signal::TERM).unwrap();
    let ended = Ended::wait(child);
    assert_eq!(ended.code, Some(143), "{}", ended.stderr);
    assert_eq!(ended.report().ended_by, EndedBy::Sigterm);
    stage.is_clean();
}

#[test]
fn the_child_of_a_killed_parent_learns_it_by_its_stdin() {
    let stage = Stage::new();
    let mut child = stage
        .command("stop-file", &["all", stage.str()])
        .spawn()
        .unwrap();
    stage.ready();
    child.kill().unwrap();
    child.wait().unwrap();
    let stopped = stage.path().join(".walprobe-fake.stopped");
    wait_for(&stopped);
    fs::remove_file(&stopped).unwrap();
    stage.is_clean();
}

#[test]
fn a_refused_directory_ends_everything_before_it_began() {
    let (a, b) = (tempfile::tempdir().unwrap(), Stage::new());
    let refused = b.path().join("b");
    let json = a.path().join("r.json");
    let mut command = b.command("look-refuses-b", &["all", "--format", "json"]);
    command.args(["--json", json.to_str().unwrap()]);
    command.args([b.path(), &refused]);
    let ended = Ended::of(command);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    assert!(!json.exists());
    b.is_clean();

    let stage = Stage::new();
    let ended = stage.all("look-refuses", &[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    let expected = format!(
        "walprobe: cannot use {}: Read-only file system (os error 30)\nhint: remount it read-write\n",
        stage.str()
    );
    assert_eq!(ended.stderr, expected);
    stage.is_clean();
}

#[test]
fn a_late_refusal_of_the_only_directory_is_a_refusal_too() {
    let stage = Stage::new();
    let ended = stage.all("refuses-late", &[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    assert!(ended.stderr.contains("No space left on device"));
    stage.is_clean();
}

#[test]
fn a_look_that_hangs_or_dies_is_a_fault_of_its_target() {
    for (fake, code, reason) in [
        ("look-hangs", 0, "did not answer"),
        ("look-dies", 3, "was killed by SIGKILL"),
    ] {
        let stage = Stage::new();
        let ended = stage.all(fake, &["--op-timeout", "2"]);
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        let report = ended.report();
        assert_eq!(report.targets[0].status, TargetStatus::Fault);
        assert!(
            report.targets[0]
                .reason
                .as_deref()
                .unwrap()
                .contains(reason)
        );
        stage.is_clean();
    }
}

#[test]
fn only_what_matches_nothing_is_refused() {
    let stage = Stage::new();
    let ended = stage.all("good", &["--only", "nonsense"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    assert!(ended.stderr.contains("no case matches --only nonsense"));
    let ended = stage.all("good", &["--only", "sync/*/fsync"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn a_dry_run_prints_the_plan_and_creates_nothing() {
    let stage = Stage::new();
    let ended = Ended::of(stage.command("good", &["all", "--dry-run", stage.str()]));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let text = ended.stdout.replace(stage.str(), "DIR");
    insta::assert_snapshot!(text, @r"
    DIR
      case                            writes   seconds      space
      durability/check/fdatasync       1 MiB       1.5     16 MiB
      sync/commit/fdatasync*           1 MiB       1.5     16 MiB
      sync/commit/fsync                1 MiB       1.5     16 MiB
      recycle/life/new+zero*           1 MiB       1.5     16 MiB
      in all: at least 4 MiB written (limit 2 GiB), 6 s (limit 90 s),
      at most 32 MiB of space at a time
    ");
    stage.is_clean();
}

#[test]
fn facts_do_not_measure() {
    let stage = Stage::new();
    let ended = Ended::of(stage.command("killed", &["facts", "--format", "json", stage.str()]));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let report: Report = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report.targets[0].facts["fs.type"].value, "ext4");
    stage.is_clean();
}

#[test]
fn outputs_that_cannot_be_written_cost_the_exit_code_and_not_the_report() {
    let stage = Stage::new();
    let ended = stage.all("good", &["--csv", "/dev/full"]);
    assert_eq!(ended.code, Some(3));
    assert!(
        ended
            .stderr
            .contains("cannot write /dev/full: No space left")
    );
    ended.report();

    let mut command = stage.command("good", &["all", "--format", "json", stage.str()]);
    command.stdout(fs::File::options().write(true).open("/dev/full").unwrap());
    let ended = Ended::of(command);
    assert_eq!(ended.code, Some(3));
    assert!(ended.stderr.contains("standard output: No space left"));
    stage.is_clean();
}

#[test]
fn a_foreign_file_is_refused_before_anything_happens() {
    let stage = Stage::new();
    let mine = tempfile::NamedTempFile::new().unwrap();
    fs::write(mine.path(), "{}").unwrap();
    let path = mine.path().to_str().unwrap();
    let ended = stage.all("good", &["--json", path]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    assert!(ended.stderr.contains("hint: --force replaces it"));
    assert_eq!(fs::read_to_string(path).unwrap(), "{}");
    let ended = stage.all("good", &["--json", path, "--force"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(path).unwrap(), ended.stdout);
}

#[test]
fn a_closed_stdout_is_fine() {
    let stage = Stage::new();
    let mut command = Command::new("sh");
    let script = r#"{ "$0" all --format json "$1"; echo "code $?" >&2; } | true"#;
    command.args(["-c", script, env!("CARGO_BIN_EXE_walprobe"), stage.str()]);
    stage.play(&mut command, "good");
    let ended = Ended::of(command);
    assert_eq!(ended.stderr, "code 0\n");
    stage.is_clean();
}

#[test]
fn clean_tells_what_it_did() {
    let stage = Stage::new();
    fs::create_dir(stage.scratch()).unwrap();
    let ended = Ended::of(stage.command("", &["clean", stage.str()]));
    let scratch = stage.scratch();
    assert_eq!(ended.stdout, format!("removed {}\n", scratch.display()));
    assert_eq!(ended.code, Some(0));
    let ended = Ended::of(stage.command("", &["clean", stage.str()]));
    assert!(ended.stdout.starts_with("nothing of walprobe's is left"));
    assert_eq!(ended.code, Some(0));
    for (fake, code, printed, said) in [
        ("left", 3, "could not remove", ""),
        ("runs", 3, "a process still uses it", ""),
        ("refuses", 2, "", "hint: give a directory"),
        ("dies", 3, "", "cannot clean"),
    ] {
        let mut command = stage.command("", &["clean", stage.str()]);
        command.env("FAKE_CLEAN", fake);
        let ended = Ended::of(command);
        assert_eq!(ended.code, Some(code), "{fake}");
        assert_eq!(ended.stdout.is_empty(), printed.is_empty(), "{fake}");
        assert!(ended.stdout.contains(printed), "{fake}: {}", ended.stdout);
        assert!(ended.stderr.contains(said), "{fake}: {}", ended.stderr);
    }
    stage.is_clean();
}
