//! Filesystems that fail under way, without help of any program: what walprobe says of them.
//!
//! - `thin::*`: the image lies on a filesystem that is nearly full, as on a thinly provisioned
//!   disk. Writing goes well, writeback does not, and a sync tells so once.
//! - `given_up::*`: the filesystem shuts down or becomes read-only in the middle of a run. Nothing
//!   can be removed then; `walprobe clean` does it once the filesystem is mounted anew.
//!
//! A fault of the target is a result: exit code 0, the call and its errno in the row.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use libtest_mimic::Arguments;
use walprobe_probes::report::{RowStatus, Target, TargetStatus};
use walprobe_test_support::bystanders::Bystanders;
use walprobe_test_support::command::run;
use walprobe_test_support::document::{Document, id};
use walprobe_test_support::mounts::Mounted;
use walprobe_test_support::process::{Invocation, binary};
use walprobe_test_support::recipe::{Base, Kind, Recipe};
use walprobe_test_support::stopwatch::poll;
use walprobe_test_support::work::{self, WorkFolder};
use walprobe_test_support::{Checked, guards, means, stale, trial};

const TMP: &str = env!("CARGO_TARGET_TMPDIR");
const LIMIT: Duration = Duration::from_secs(120);

/// What the image may still grow by: less than one segment.
const LEFT_MIB: u64 = 10;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(1);
    if let Err(error) = stale::sweep(&work::base(TMP)) {
        eprintln!("an earlier test run could not be undone: {error}");
    }
    let trials = vec![
        trial("thin::ext4", || thin(Kind::Ext4)),
        trial("thin::xfs", || thin(Kind::Xfs)),
        trial("given_up::xfs-shut-down", || {
            given_up(Kind::Xfs, None, shut_down)
        }),
        trial("given_up::ext4-shut-down", || {
            given_up(Kind::Ext4, None, shut_down)
        }),
        trial("given_up::ext4-read-only", || {
            given_up(Kind::Ext4, Some("errors=remount-ro"), become_read_only)
        }),
    ];
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn walprobe() -> Invocation {
    Invocation::new(binary(env!("CARGO_BIN_EXE_walprobe")))
}

/// A directory of the user's on the filesystem, with files that are on its device.
fn plant(mounted: &Mounted) -> Checked<Bystanders> {
    let dir = mounted.point().join("wal");
    fs::create_dir(&dir)?;
    let elsewhere = mounted.work().join("elsewhere");
    fs::create_dir(&elsewhere)?;
    let planted = Bystanders::plant(&dir, &elsewhere)?;
    sync(mounted.point())?;
    Ok(planted)
}

fn sync(point: &Path) -> Checked {
    rustix::fs::syncfs(File::open(point)?)?;
    Ok(())
}

fn thin(kind: Kind) -> Checked {
    let mut recipe = Recipe::new(kind).sized(512 << 20);
    let below = match kind {
        Kind::Xfs => 128 << 20,
        _ => {
            recipe.mkfs = ["-J", "size=4"].map(str::to_owned).to_vec();
            64 << 20
        }
    };
    let mounted = Mounted::new(&work::base(TMP), &recipe.on(Base::Small(below)))?;
    let planted = plant(&mounted)?;
    fill_but(&mounted.work().join("small"), LEFT_MIB << 20)?;

    let finished = walprobe()
        .args(["prealloc", "--profile", "quick", "--seed", "7"])
        .args(["--format", "json"])
        .arg(planted.dir())
        .run(LIMIT)?;
    finished.expect_code(0)?;
    let document = Document::read(&finished.stdout)?;
    document.check()?;
    guards::check(&document.report)?;
    planted.untouched()?;

    // Flushes were seen: that nothing is recommended is not the verdict's doing.
    let target = &document.report.targets[0];
    if !target.durability.may_recommend {
        return Err(target.durability.text.clone().into());
    }
    // A segment of zeros is more than there is room for; the sync says so, not the write.
    for row in ["prealloc/create/zero-fill", "prealloc/life/zero-fill"] {
        let row = document.row(row).ok_or_else(|| format!("no {row}"))?;
        let told = format!("{}: {:?} {:?}", id(row), row.status, row.fault);
        let Some(fault) = row
            .fault
            .as_ref()
            .filter(|_| row.status == RowStatus::Fault)
        else {
            return Err(told.into());
        };
        // Kernels before 6.9 call it an I/O error.
        let full = ["ENOSPC", "EIO"].contains(&fault.errno_name.as_str());
        if !full || fault.call != "fsync" || fault.operation != 1 || row.ops > 0 {
            return Err(told.into());
        }
    }
    rests_on_nothing_failed(target)?;
    let why = target
        .not_tested
        .iter()
        .find(|one| one.setting.starts_with("wal_init_zero") && one.reason_code == "errno");
    if why.is_none() {
        return Err(format!("wal_init_zero: {:?}", target.not_tested).into());
    }
    walprobe()
        .arg("clean")
        .arg(planted.dir())
        .run(LIMIT)?
        .expect_code(0)?;
    planted.untouched()?;
    Ok(mounted.undo()?)
}

/// Fills the filesystem that the image lies on, but for some bytes.
fn fill_but(folder: &Path, left: u64) -> Checked {
    let stat = rustix::fs::statvfs(folder)?;
    let free = stat.f_bavail * stat.f_frsize;
    if free < left {
        return Err(format!("{free} bytes are free, {left} were to be left").into());
    }
    let mut file = File::create_new(folder.join("ballast"))?;
    let piece = vec![1; 1 << 20];
    for _ in 0..(free - left) >> 20 {
        file.write_all(&piece)?;
    }
    Ok(file.sync_all()?)
}

/// Nothing is to be changed because of a row that failed, nor where any method failed.
fn rests_on_nothing_failed(target: &Target) -> Result<(), String> {
    match target.findings.iter().find(|one| one.action == "change") {
        Some(finding) => Err(format!("recommended: {}", finding.id)),
        None => Ok(()),
    }
}

fn given_up(kind: Kind, options: Option<&str>, end: fn(&Mounted) -> Checked) -> Checked {
    means::tool("xfs_io")?;
    let mut recipe = Recipe::new(kind).sized(512 << 20);
    recipe.mount = options.map(str::to_owned);
    let mounted = Mounted::new(&work::base(TMP), &recipe)?;
    let output = WorkFolder::new(&work::base(TMP))?;
    let planted = plant(&mounted)?;

    let json = output.path().join("report.json");
    let mut running = walprobe()
        .args(["all", "--profile", "quick", "--time", "60", "--seed", "7"])
        .args(["--format", "json"])
        .args(["--json".as_ref(), json.as_os_str()])
        .arg(planted.dir())
        .start()?;
    // The report is saved after each comparison: durability is known, and the rest is under way.
    poll(LIMIT, || {
        let saved = fs::read_to_string(&json).unwrap_or_default();
        (saved.contains("\"flushes-seen\"") || running.ended()).then_some(())
    })
    .ok_or("the durability check is never over")?;
    thread::sleep(Duration::from_millis(fastrand::u64(..1_500)));
    let scratch = planted.scratch_folders();
    if running.ended() || scratch.len() != 1 {
        return Err(format!("too late; stderr: {}", running.stderr()).into());
    }
    end(&mounted)?;

    let finished = running.finish(LIMIT)?;
    finished.expect_code(0)?;
    let document = Document::read(&finished.stdout)?;
    document.check()?;
    guards::check(&document.report)?;
    let saved = Document::read(&fs::read(&json)?)?;
    if saved.json != document.json {
        return Err("stdout and --json are not the same document".into());
    }
    let target = &document.report.targets[0];
    says_so(target, &scratch[0])?;
    rests_on_nothing_failed(target)?;
    for wanted in ["takes no more files", "left behind", "walprobe clean"] {
        if !finished.stderr.contains(wanted) {
            return Err(format!("no {wanted:?} on stderr: {}", finished.stderr).into());
        }
    }

    // Not while nothing can be removed, and then in words.
    let tried = walprobe().arg("clean").arg(planted.dir()).run(LIMIT)?;
    if tried.status.success() || tried.stderr.is_empty() && tried.stdout.is_empty() {
        return Err(format!("clean said {:?}: {}", tried.status, tried.stderr).into());
    }
    mounted.again(kind)?;
    walprobe()
        .arg("clean")
        .arg(planted.dir())
        .run(LIMIT)?
        .expect_code(0)?;
    planted.untouched()?;
    Ok(mounted.undo()?)
}

/// What was measured stays, the call that failed is told, the rest was not begun.
fn says_so(target: &Target, scratch: &Path) -> Result<(), String> {
    if target.status != TargetStatus::Fault {
        return Err(format!("status {:?}, {:?}", target.status, target.reason));
    }
    if target.left_behind != [scratch.to_string_lossy()] {
        return Err(format!("left_behind is {:?}", target.left_behind));
    }
    let of = |status| target.rows.iter().filter(move |row| row.status == status);
    let measured = |row: &&walprobe_probes::report::Row| id(row) == "durability/check/fdatasync";
    if !of(RowStatus::Ok).any(|row| measured(&row)) {
        return Err("what was measured before is not there".to_owned());
    }
    let ends = ["EIO", "EROFS"];
    let mut failed = of(RowStatus::Fault).filter_map(|row| row.fault.as_ref());
    if !failed
        .clone()
        .any(|fault| ends.contains(&fault.errno_name.as_str()))
    {
        return Err("no row names the call that failed".to_owned());
    }
    // Nothing is tried again and again where nothing can succeed.
    if let Some(fault) = failed.find(|fault| fault.errno_name == "EEXIST") {
        return Err(format!("{fault:?}"));
    }
    let skipped: Vec<_> = of(RowStatus::Skipped).collect();
    let other = skipped
        .iter()
        .find(|row| !matches!(row.reason_code.as_deref(), Some("errno" | "same-as")));
    if let Some(row) = other {
        return Err(format!("{}: {:?}", id(row), row.reason));
    }
    if skipped.is_empty() {
        return Err("everything was tried to the end".to_owned());
    }
    Ok(())
}

/// The filesystem is told to stop, as when it finds its own metadata damaged.
fn shut_down(mounted: &Mounted) -> Checked {
    let point = mounted.point().display().to_string();
    run("xfs_io", &["-x", "-c", "shutdown -f", &point])?;
    Ok(())
}

/// ext4 is told of an error, upon which it does what `errors=` says.
fn become_read_only(mounted: &Mounted) -> Checked {
    let device = mounted.device().ok_or("no loop device")?;
    let name = device.trim_start_matches("/dev/");
    fs::write(format!("/sys/fs/ext4/{name}/trigger_fs_error"), "by a test")?;
    Ok(())
}
