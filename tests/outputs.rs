//! Output files from outside: what is refused, what is never written over, what cannot hang.
//!
//! The measuring child is played by `fake-worker.sh`. Only builds with debug assertions let
//! it be replaced. Limits on time are wide, and only there to fail instead of hanging.

#![cfg(debug_assertions)]

use std::{
    fs,
    io::Read as _,
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

const PATIENCE: Duration = Duration::from_secs(60);

/// A directory to measure, and one for outputs.
struct Stage {
    dir: tempfile::TempDir,
    out: tempfile::TempDir,
}

struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Stage {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            out: tempfile::tempdir().unwrap(),
        }
    }

    fn dir(&self) -> &str {
        self.dir.path().to_str().unwrap()
    }

    fn out(&self, name: &str) -> PathBuf {
        self.out.path().join(name)
    }

    fn play(command: &mut Command, fake: &str) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake-worker.sh");
        command
            .env("WALPROBE_TEST_WORKER", script)
            .env("FAKE", fake)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }

    fn start(&self, fake: &str, options: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_walprobe"));
        command.args(["all", "--format", "json", self.dir()]);
        command.args(options).current_dir(self.out.path());
        Self::play(&mut command, fake);
        command.spawn().unwrap()
    }

    fn all(&self, fake: &str, options: &[&str]) -> Ended {
        finish(self.start(fake, options))
    }

    /// By a shell in the output directory: `$0` is walprobe, `$1` the directory.
    fn shell(&self, script: &str) -> Ended {
        let mut command = Command::new("bash");
        command.args(["-c", script, env!("CARGO_BIN_EXE_walprobe"), self.dir()]);
        command.current_dir(self.out.path());
        Self::play(&mut command, "good");
        finish(command.spawn().unwrap())
    }

    /// Starts a run, waits until it is under way; nothing is saved after that but the end.
    fn under_way(&self, options: &[&str]) -> Child {
        let child = self.start("stops", options);
        wait_for(&self.dir.path().join(".walprobe-fake.ready"));
        child
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.out.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn finish(child: Child) -> Ended {
    let pid = Pid::from_child(&child);
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let output = receiver
        .recv_timeout(PATIENCE)
        .unwrap_or_else(|_| {
            let _ = kill_process(pid, Signal::KILL);
            panic!("walprobe did not come back");
        })
        .unwrap();
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
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

fn fifo(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

#[test]
fn a_file_is_a_file_by_whatever_name() {
    let stage = Stage::new();
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let out = stage.out.path().to_str().unwrap();
    for (name, file) in [
        (format!("/dev/..{out}/mine"), stage.out("mine")),
        (format!("/proc/self/root{out}/mine"), stage.out("mine")),
        ("/proc/self/cwd/mine".to_owned(), stage.out("mine")),
        (
            memory.path().join("mine").to_str().unwrap().to_owned(),
            memory.path().join("mine"),
        ),
    ] {
        fs::write(&file, "mine").unwrap();
        let ended = stage.all("good", &["--json", &name]);
        assert_eq!(ended.code, Some(2), "{name}: {}", ended.stderr);
        let why = "it is not a JSON report of walprobe";
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");

        // The name that is not there yet, and the report that is: both are replaced.
        fs::remove_file(&file).unwrap();
        for _ in 0..2 {
            let ended = stage.all("good", &["--json", &name]);
            assert_eq!(ended.code, Some(0), "{name}: {}", ended.stderr);
            assert_eq!(fs::read_to_string(&file).unwrap(), ended.stdout);
        }
        fs::remove_file(&file).unwrap();
    }
    assert!(stage.names().is_empty());
}

#[test]
fn a_report_in_another_format_is_not_replaced() {
    let stage = Stage::new();
    assert_eq!(stage.all("good", &["--json", "r.json"]).code, Some(0));
    let ended = stage.all("good", &["--csv", "r.json"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    let why = "cannot write r.json: it is not a CSV report of walprobe";
    assert!(ended.stderr.contains(why), "{}", ended.stderr);
}

#[test]
fn an_empty_file_and_one_with_other_names_are_the_users() {
    let stage = Stage::new();
    fs::write(stage.out("empty"), "").unwrap();
    assert_eq!(stage.all("good", &["--json", "empty"]).code, Some(2));
    assert_eq!(stage.all("good", &["--json", "r.json"]).code, Some(0));
    fs::hard_link(stage.out("r.json"), stage.out("kept")).unwrap();
    let ended = stage.all("good", &["--json", "r.json"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("hard links"), "{}", ended.stderr);
    for name in ["empty", "r.json"] {
        let ended = stage.all("good", &["--json", name, "--force"]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert_eq!(fs::read_to_string(stage.out(name)).unwrap(), ended.stdout);
    }
    assert_eq!(stage.names(), ["empty", "kept", "r.json"]);
}

#[test]
fn no_two_documents_go_to_one_place() {
    let stage = Stage::new();
    fifo(&stage.out("fifo"));
    symlink("r", stage.out("link")).unwrap();
    assert_eq!(stage.all("good", &["--json", "r"]).code, Some(0));
    for (options, why) in [
        (&["--json", "-"][..], "use --format json for stdout"),
        (&["--csv", "/dev/stdout"], "use --format csv for stdout"),
        (&["--conf", "/dev/fd/1"], "give --conf a file"),
        (&["--json", "/proc/self/fd/1"], "standard output gets"),
        (&["--json", "x", "--csv", "x"], "x is asked for twice"),
        (
            &["--json", "x", "--csv", "./x"],
            "./x and x are the same file",
        ),
        (
            &["--json", "r", "--csv", "link", "--force"],
            "are the same file",
        ),
        (&["--json", "fifo", "--csv", "./fifo"], "are the same file"),
    ] {
        let ended = stage.all("good", options);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
        assert!(ended.stderr.contains(why), "{options:?}: {}", ended.stderr);
    }
    for script in [
        r#""$0" all "$1" --force --json new >new"#,
        r#""$0" all "$1" --json /dev/fd/3 3>&1 | cat"#,
    ] {
        let ended = stage.shell(&format!("set -o pipefail; {script}"));
        assert_eq!(ended.code, Some(2), "{script}: {}", ended.stderr);
        assert!(ended.stderr.contains("standard output gets"), "{script}");
    }
    // A device takes any number.
    let ended = stage.all("good", &["--json", "/dev/null", "--csv", "/dev/null"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn descriptors_are_written_as_the_shell_opened_them() {
    let stage = Stage::new();
    let script = r#"echo before >f; exec 3>>f; "$0" all "$1" --csv /dev/fd/3 >/dev/null; c=$?
        echo after >&3; exit $c"#;
    let ended = stage.shell(script);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let text = fs::read_to_string(stage.out("f")).unwrap();
    assert!(text.starts_with("before\nschema,run_id,"), "{text}");
    assert!(text.ends_with("\nafter\n"), "{text}");

    let script = r#""$0" all "$1" --csv >(cat >g) >/dev/null; c=$?; wait $!; exit $c"#;
    let ended = stage.shell(script);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let text = fs::read_to_string(stage.out("g")).unwrap();
    assert!(text.starts_with("schema,run_id,"), "{text}");

    fs::write(stage.out("input"), "mine").unwrap();
    let ended = stage.shell(r#""$0" all "$1" --csv /dev/fd/3 3<input"#);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("not open for writing"));
    assert_eq!(fs::read_to_string(stage.out("input")).unwrap(), "mine");
}

#[test]
fn what_appears_or_changes_during_the_run_is_kept() {
    for replaced in [false, true] {
        let stage = Stage::new();
        let (json, csv) = (stage.out("r.json"), stage.out("r.csv"));
        let child = stage.under_way(&["--json", "r.json", "--csv", "r.csv"]);
        wait_for(&json);
        let mine = if replaced { &json } else { &csv };
        fs::write(stage.out("mine"), "mine").unwrap();
        fs::rename(stage.out("mine"), mine).unwrap();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let ended = finish(child);
        assert_eq!(ended.code, Some(130));
        assert!(!ended.stdout.is_empty());
        let why = ["it appeared during", "it was changed by others during"];
        let why = why[usize::from(replaced)];
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
        assert_eq!(fs::read_to_string(mine).unwrap(), "mine");
        assert_eq!(stage.names(), ["r.csv", "r.json"]);
    }
}

#[test]
fn the_loss_of_an_output_is_the_exit_code() {
    let stage = Stage::new();
    fifo(&stage.out("fifo"));
    let ended = stage.all("good", &["--json", "fifo"]);
    assert_eq!(ended.code, Some(3), "without a reader: {}", ended.stderr);
    assert!(ended.stderr.contains("cannot write fifo: No such device"));
    assert!(!ended.stdout.is_empty());
}

#[test]
fn a_fifo_that_nobody_reads_holds_nobody() {
    for signal in [None, Some(Signal::TERM)] {
        let stage = Stage::new();
        fifo(&stage.out("fifo"));
        let mut reader = fs::File::options()
            .read(true)
            .custom_flags(i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap())
            .open(stage.out("fifo"))
            .unwrap();
        assert!(reader.metadata().unwrap().file_type().is_fifo());
        // A page: the smallest that a pipe can be, less than a report.
        rustix::pipe::fcntl_setpipe_size(&reader, 4096).unwrap();
        let child = stage.start("good", &["--json", "fifo"]);
        if let Some(signal) = signal {
            // Only now it writes, so only this is what the signal meets.
            let mut some = [0; 1];
            while reader.read(&mut some).unwrap_or(0) == 0 {
                sleep(Duration::from_millis(20));
            }
            sleep(Duration::from_millis(300));
            kill_process(Pid::from_child(&child), signal).unwrap();
        }
        let ended = finish(child);
        let code = if signal.is_some() { 143 } else { 3 };
        assert_eq!(ended.code, Some(code), "{}", ended.stderr);
        assert!(ended.stderr.contains("cannot write fifo"));
        assert!(ended.stderr.contains("nobody read"), "{}", ended.stderr);
        let _: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    }
}

#[test]
fn a_directory_is_measured_once() {
    let stage = Stage::new();
    symlink(stage.dir(), stage.out("link")).unwrap();
    for again in [stage.dir(), "link", "./link/."] {
        let ended = stage.all("good", &[again]);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
        let both = ended.stderr.contains("is given twice")
            || ended.stderr.contains("are the same directory");
        assert!(both, "{}", ended.stderr);
    }
}
