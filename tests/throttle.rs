//! A slow device: what must be read first is seen in the time, and nothing else is.
//!
//! The block-I/O controller (cgroup v1) lets the measuring process read its loop device no
//! more than 100 times a second; writes and flushes go on as they are. Walreceiver's unaligned
//! chunks into a cold segment then wait for their reads; into a warm one they do not, nor do
//! whole pages into a cold one. The image lies in memory, so that nobody else's disk traffic
//! stands beside the throttle. Times are compared within the run, never with a clock.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::time::Duration;

use libtest_mimic::Arguments;
use walprobe_probes::report::{Cold, Row, Verdict};
use walprobe_test_support::document::Document;
use walprobe_test_support::mounts::Mounted;
use walprobe_test_support::process::{Invocation, binary};
use walprobe_test_support::recipe::{Base, Kind, Recipe};
use walprobe_test_support::stopwatch::poll;
use walprobe_test_support::{Checked, Problem, stale, trial, work};

const TMP: &str = env!("CARGO_TARGET_TMPDIR");
const CONTROLLER: &str = "/sys/fs/cgroup/blkio";
const READS_PER_S: u32 = 100;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    if let Err(error) = stale::sweep(&work::base(TMP)) {
        eprintln!("an earlier test run could not be undone: {error}");
    }
    let trials = vec![trial(
        "cold_chunks_wait_for_reads",
        cold_chunks_wait_for_reads,
    )];
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn cold_chunks_wait_for_reads() -> Checked {
    let limit = Path::new(CONTROLLER).join("blkio.throttle.read_iops_device");
    if !limit.exists() {
        let why = format!("no block-I/O controller of cgroup v1 at {CONTROLLER}");
        return Err(Problem::missing("blkio", why));
    }
    let mounted = Mounted::new(&work::base(TMP), &recipe())?;
    let slow = Slow::new(mounted.device().ok_or("no loop device")?)?;
    // The shell joins the group, then becomes walprobe; its worker inherits the group.
    let finished = Invocation::new("/bin/sh")
        .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
        .arg(slow.group.join("cgroup.procs"))
        .arg(binary(env!("CARGO_BIN_EXE_walprobe")))
        .args([
            "recycle",
            "--only",
            "recycle/standby",
            "--only",
            "recycle/overwrite",
        ])
        .args(["--time", "45", "--seed", "7", "--format", "json"])
        .arg(mounted.point())
        .run(Duration::from_secs(90))?;
    finished.expect_code(0)?;
    slow.undo()?;
    let document = Document::read(&finished.stdout)?;
    mounted.undo()?;

    let row = |comparison: &str, case: &str| -> Result<&Row, String> {
        document.report.targets[0]
            .rows
            .iter()
            .find(|row| row.comparison == comparison && row.case == case)
            .ok_or_else(|| format!("no row {comparison}/{case}"))
    };
    let cold = row("standby", "cold")?;
    let told = |row: &Row| {
        let Row {
            comparison,
            case,
            ratio_low,
            ratio_high,
            own_bytes_read,
            verdict,
            ..
        } = row;
        format!(
            "{comparison}/{case}: {ratio_low:?} to {ratio_high:?}, {verdict:?}, read {own_bytes_read:?}"
        )
    };
    if cold.cold != Some(Cold::Proven) || cold.own_bytes_read == Some(0) {
        return Err(Problem::Failed(told(cold)));
    }
    if cold.ratio_low.is_none_or(|low| low <= 1.5) {
        return Err(Problem::Failed(told(cold)));
    }
    for (comparison, case) in [
        ("standby", "warm"),
        ("overwrite", "warm"),
        ("overwrite", "cold"),
    ] {
        let row = row(comparison, case)?;
        // Not slower is said of something that was measured. The image lies in memory, where a sync
        // costs so little that finding a page for a cold write may show; a read would be ten times it.
        let judged = row.verdict.is_some() && row.ratio.is_some();
        let clearly_slower =
            row.verdict == Some(Verdict::Slower) && row.ratio_low.is_none_or(|low| low > 1.1);
        if !judged || clearly_slower || row.own_bytes_read != Some(0) {
            return Err(Problem::Failed(told(row)));
        }
    }
    Ok(())
}

fn recipe() -> Recipe {
    Recipe {
        on: Base::Tmpfs,
        ..Recipe::new(Kind::Ext4).sized(512 << 20)
    }
}

/// A control group whose members read one device slowly; removed when dropped.
struct Slow {
    group: PathBuf,
}

impl Slow {
    fn new(device: &str) -> Checked<Self> {
        let name = device.trim_start_matches("/dev/");
        let number = fs::read_to_string(format!("/sys/block/{name}/dev"))?;
        let group = Path::new(CONTROLLER).join(format!("walprobe-test-{}", process::id()));
        fs::create_dir(&group)
            .map_err(|error| Problem::missing("blkio", format!("{}: {error}", group.display())))?;
        let slow = Self { group };
        fs::write(
            slow.group.join("blkio.throttle.read_iops_device"),
            format!("{} {READS_PER_S}", number.trim()),
        )?;
        Ok(slow)
    }

    /// Removes the group. A process that has just ended may still be counted in it.
    fn undo(&self) -> Result<(), String> {
        let mut last = String::new();
        poll(Duration::from_secs(5), || {
            fs::remove_dir(&self.group)
                .map_err(|error| last = error.to_string())
                .ok()
        })
        .ok_or_else(|| format!("cannot remove {}: {last}", self.group.display()))
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        if self.group.exists()
            && let Err(error) = self.undo()
        {
            eprintln!("left behind: {error}");
        }
    }
}
