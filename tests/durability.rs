//! Stacks that answer syncs without keeping what they acknowledge, and devices that others
//! flush: whatever was counted, the verdict must not be fooled, either way.
//!
//! What the recipes cannot make is made by a script in the work folder of a mounted one, which
//! undoes it at its end. Verdicts are asserted, never times.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use libtest_mimic::Arguments;
use walprobe_probes::report::{Durability, DurabilityVerdict};
use walprobe_test_support::document::Document;
use walprobe_test_support::mounts::Mounted;
use walprobe_test_support::process::{Invocation, binary};
use walprobe_test_support::recipe::{Kind, Recipe};
use walprobe_test_support::stopwatch::poll;
use walprobe_test_support::{Checked, stale, trial, work};

const TMP: &str = env!("CARGO_TARGET_TMPDIR");
const SIZE_BYTES: u64 = 256 << 20;

/// Makes a memory filesystem `$1/mem`, and undoes what the script has made by then.
const BEGIN: &str = r#"
set -e
cd "$1"
gone() { mountpoint -q "$1" || return 0; umount "$1" || { sleep 1; umount "$1"; }; }
undo() { cd "$1"; gone m; for l in $loops; do losetup -d $l 2>/dev/null || :; done; gone ov; gone mem; }
trap 'undo "$1"' EXIT
mkdir -p mem low ov m
mount -t tmpfs mem mem
image() { truncate -s "$2" "$1"; losetup --find --show "$1"; }
"#;

/// The file below the loop device is of a filesystem that was unmounted lazily.
const UNMOUNTED: &str = r#"
loop=$(image mem/image 64M); loops=$loop
mkfs.ext4 -q $loop; mount $loop m
losetup -d $loop
umount -l mem
"#;

/// It lies on an overlay whose upper layer, in memory, has a relative name.
const OVERLAY: &str = r#"
mkdir mem/u mem/w
cd mem; mount -t overlay -o lowerdir=../low,upperdir=u,workdir=w overlay "$1/ov"; cd ..
loop=$(image ov/image 64M); loops=$loop
mkfs.ext4 -q $loop; mount $loop m
"#;

/// The filesystem lies on the disk, its journal in memory.
const JOURNAL: &str = r#"
journal=$(image mem/journal 32M); loops=$journal
loop=$(image image 64M); loops="$loop $journal"
mke2fs -q -F -O journal_dev $journal >&2; mkfs.ext4 -q -J device=$journal $loop >&2; mount $loop m
"#;

const END: &str = r#"
"$2" durability --seed 7 --format json m
"#;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(1);
    if let Err(error) = stale::sweep(&work::base(TMP)) {
        eprintln!("an earlier test run could not be undone: {error}");
    }
    let trials = vec![
        trial("a_file_out_of_sight_proves_nothing", || {
            scripted(
                UNMOUNTED,
                DurabilityVerdict::NotProvable,
                "backing-file-unseen",
            )
        }),
        trial("an_overlay_out_of_sight_proves_nothing", || {
            scripted(
                OVERLAY,
                DurabilityVerdict::NotProvable,
                "backing-file-unseen",
            )
        }),
        trial("a_journal_in_memory_is_not_durable", || {
            scripted(JOURNAL, DurabilityVerdict::NotDurable, "fs-in-memory")
        }),
        trial("a_loaded_device_is_not_accused", not_accused),
        trial("others_flushes_are_not_ours", not_ours),
        trial("barriers_turned_off_under_way", turned_off),
    ];
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn scripted(script: &str, verdict: DurabilityVerdict, ground: &str) -> Checked {
    let mounted = Mounted::new(&work::base(TMP), &recipe(None))?;
    let finished = Invocation::new("/bin/sh")
        .args(["-c", &format!("{BEGIN}{script}{END}"), "sh"])
        .arg(mounted.work())
        .arg(binary(env!("CARGO_BIN_EXE_walprobe")))
        .run(Duration::from_secs(60))?;
    finished.expect_code(0)?;
    let durability = told(&finished.stdout)?;
    mounted.undo()?;
    expect(&durability, verdict)?;
    if !durability.grounds.iter().any(|one| one.id == ground) {
        return Err(format!("no ground {ground}: {:?}", durability.grounds).into());
    }
    Ok(())
}

/// Another program syncs as fast as it can on the same filesystem.
fn not_accused() -> Checked {
    let mounted = Mounted::new(&work::base(TMP), &recipe(None))?;
    let other = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .open(mounted.point().join("other"))
        .map_err(|error| format!("other: {error}"))?;
    let flush = || {
        other.write_all_at(&[1; 4096], 0)?;
        other.sync_data()
    };
    let told = loaded(flush, 6, || run(mounted.point()))?;
    drop(other);
    mounted.undo()?;
    let seen = told
        .iter()
        .filter(|one| one.verdict == DurabilityVerdict::FlushesSeen)
        .count();
    for one in &told {
        if one.verdict != DurabilityVerdict::FlushesSeen {
            expect(one, DurabilityVerdict::NotProvable)?;
            let drowned = one.grounds.iter().any(|g| g.id == "foreign-flushes");
            if !drowned {
                return Err(format!("not told why: {}", one.text).into());
            }
        }
    }
    // A machine that is busy otherwise may drown one.
    if seen < 4 {
        return Err(format!("only {seen} of 6 runs saw the flushes").into());
    }
    Ok(())
}

/// Flushes reach the disk that this filesystem did not send.
fn not_ours() -> Checked {
    let mounted = Mounted::new(&work::base(TMP), &recipe(Some("barrier=0")))?;
    let disk = File::open(mounted.device().ok_or("no loop device")?)
        .map_err(|error| format!("the loop device: {error}"))?;
    let told = loaded(|| disk.sync_all(), 3, || run(mounted.point()))?;
    drop(disk);
    mounted.undo()?;
    for one in &told {
        expect(one, DurabilityVerdict::NoFlushSeen)?;
    }
    Ok(())
}

/// What was measured first is not what is mounted in the end.
fn turned_off() -> Checked {
    let mounted = Mounted::new(&work::base(TMP), &recipe(None))?;
    let point = mounted.point();
    let (remounted, finished) = thread::scope(|scope| {
        let remount = scope.spawn(|| {
            // The facts are read before the scratch folder is made.
            poll(Duration::from_secs(20), || {
                (entries(point) > 1).then_some(())
            })
            .ok_or("no scratch folder")?;
            thread::sleep(Duration::from_millis(1_500));
            mounted.remount("barrier=0")
        });
        let finished = Invocation::new(binary(env!("CARGO_BIN_EXE_walprobe")))
            .args(["sync", "--profile", "quick", "--time", "8"])
            .args(["--seed", "7", "--format", "json"])
            .arg(point)
            .run(Duration::from_secs(60));
        (remount.join(), finished)
    });
    remounted.map_err(|_| "the remounting thread panicked")??;
    let finished = finished?;
    finished.expect_code(0)?;
    mounted.undo()?;
    let durability = told(&finished.stdout)?;
    expect(&durability, DurabilityVerdict::NoFlushSeen)?;
    if durability.may_recommend || !durability.text.contains("fs.barrier changed") {
        return Err(format!("not told: {}", durability.text).into());
    }
    Ok(())
}

/// What `ask` answers so many times while `flush` is called without pause.
fn loaded<T>(
    flush: impl Fn() -> std::io::Result<()> + Sync,
    times: usize,
    ask: impl Fn() -> Checked<T>,
) -> Checked<Vec<T>> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let other = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                flush()?;
            }
            Ok::<(), std::io::Error>(())
        });
        let told = (0..times).map(|_| ask()).collect();
        stop.store(true, Ordering::Relaxed);
        match other.join() {
            Ok(Ok(())) => told,
            Ok(Err(error)) => Err(format!("the other program: {error}").into()),
            Err(_) => Err("the other program panicked".into()),
        }
    })
}

fn run(dir: &Path) -> Checked<Durability> {
    let finished = Invocation::new(binary(env!("CARGO_BIN_EXE_walprobe")))
        .args(["durability", "--seed", "7", "--format", "json"])
        .arg(dir)
        .run(Duration::from_secs(60))?;
    finished.expect_code(0)?;
    Ok(told(&finished.stdout)?)
}

fn told(stdout: &[u8]) -> Result<Durability, String> {
    let document = Document::read(stdout)?;
    Ok(document.report.targets[0].durability.clone())
}

fn expect(durability: &Durability, verdict: DurabilityVerdict) -> Checked {
    if durability.verdict == verdict {
        return Ok(());
    }
    let Durability {
        verdict: is, text, ..
    } = durability;
    Err(format!("{is:?}, not {verdict:?}: {text}").into())
}

fn entries(dir: &Path) -> usize {
    fs::read_dir(dir).map_or(0, Iterator::count)
}

fn recipe(options: Option<&str>) -> Recipe {
    let recipe = Recipe::new(Kind::Ext4).sized(SIZE_BYTES);
    match options {
        Some(options) => recipe.mounted_with(options),
        None => recipe,
    }
}
