//! The test filesystem itself: it does what its script says, seen through system calls.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use libtest_mimic::Trial;
use rustix::fs::{FallocateFlags, StatVfs};
use rustix::io::Errno;
use rustix::process::Signal;
use walprobe_faultfs::{CONTROL, Call, Counts};
use walprobe_probes::files::{O_DSYNC, O_SYNC};
use walprobe_test_support::fuse;
use walprobe_test_support::mounts::mount_points_below;
use walprobe_test_support::process::{Invocation, Running};
use walprobe_test_support::stopwatch::poll;
use walprobe_test_support::work::{self, WorkFolder};
use walprobe_test_support::{Checked, means, stale, trial};

use crate::TMP;
use crate::place::{LIMIT, Place};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("own::what_a_crash_leaves", what_a_crash_leaves),
        trial("own::a_killed_run_is_swept", a_killed_run_is_swept),
        trial("own::a_connection_is_aborted", a_connection_is_aborted),
        trial("own::methods_are_told_apart", methods_are_told_apart),
        trial("own::records_are_read_first", records_are_read_first),
        trial(
            "own::full_is_told_where_it_should",
            full_is_told_where_it_should,
        ),
        trial("own::sizes_are_as_told", sizes_are_as_told),
        trial(
            "own::a_device_gets_what_is_synced",
            a_device_gets_what_is_synced,
        ),
    ]
}

/// With this in its environment the test binary mounts a filesystem and waits to be killed.
pub(crate) const SERVE: &str = "WALPROBE_TEST_FAULTFS";

pub(crate) fn serve() -> ExitCode {
    match Place::new("hang odsync", false) {
        Ok(place) => loop {
            thread::sleep(Duration::from_secs(60));
            // It stays mounted.
            let _ = place.point();
        },
        Err(problem) => {
            eprintln!("{problem:?}");
            ExitCode::FAILURE
        }
    }
}

/// A test run that was killed while a call hung leaves nothing that the next one cannot undo.
fn a_killed_run_is_swept() -> Checked {
    means::fuse()?;
    let outer = WorkFolder::new(&work::base(TMP))?;
    let base = outer.folder("base")?;
    let mut killed = Invocation::new(std::env::current_exe()?)
        .env("WALPROBE_TEST_DIR", &base)
        .env(SERVE, "1")
        .start()?;
    let mounted = poll(LIMIT, || {
        let points = mount_points_below(&base).ok()?;
        points
            .first()
            .cloned()
            .or_else(|| killed.ended().then(PathBuf::new))
    });
    let point = mounted
        .filter(|point| point.is_dir())
        .ok_or("it was not mounted")?;
    let mut waits = hanging(&point)?;
    killed.signal(Signal::KILL);
    poll(LIMIT, || killed.ended().then_some(())).ok_or("it cannot be killed")?;
    is("swept", stale::sweep(&base)?, 1)?;
    is("mounted", mount_points_below(&base)?.len(), 0)?;
    is("left", fs::read_dir(&base)?.count(), 0)?;
    poll(LIMIT, || waits.ended().then_some(())).ok_or("the call that hung still does")?;
    Ok(())
}

/// Ends the calls that hang though the program that does not answer still runs.
fn a_connection_is_aborted() -> Checked {
    let place = Place::new("hang odsync", false)?;
    let mut waits = hanging(place.point())?;
    fuse::abort_below(place.work.path())?;
    poll(LIMIT, || waits.ended().then_some(())).ok_or("the call that hung still does")?;
    is(
        "afterwards",
        code(fs::read_dir(place.point())),
        Some(Errno::NOTCONN),
    )?;
    Ok(place.undo()?)
}

/// A process in a call that never returns.
fn hanging(point: &Path) -> Checked<Running> {
    let file = point.join("a");
    let mut waits = Invocation::new("/bin/dd")
        .args(["if=/dev/zero", "bs=4k", "count=1", "oflag=dsync"])
        .arg(format!("of={}", file.display()))
        .start()?;
    poll(LIMIT, || file.exists().then_some(())).ok_or("dd made no file")?;
    thread::sleep(Duration::from_millis(200));
    if waits.ended() {
        return Err("the call that hangs came back".into());
    }
    Ok(waits)
}

fn open(place: &Place, name: &str, flags: rustix::fs::OFlags) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .custom_flags(flags.bits().cast_signed())
        .open(place.point().join(name))
}

fn is<T: PartialEq + Debug>(what: &str, found: T, wanted: T) -> Checked {
    if found == wanted {
        return Ok(());
    }
    Err(format!("{what}: {found:?}, not {wanted:?}").into())
}

fn code<T>(result: io::Result<T>) -> Option<Errno> {
    result.err().and_then(|error| Errno::from_io_error(&error))
}

fn what_a_crash_leaves() -> Checked {
    let none = rustix::fs::OFlags::empty();
    let place = Place::new("lie fdatasync\n", false)?;
    let content = |name: &str| place.faultfs.durable().remove(Path::new(name));
    let file = open(&place, "a", none)?;
    file.write_all_at(b"first", 0)?;
    is("no sync", content("a"), None::<Vec<u8>>)?;
    file.sync_all()?;
    is(
        "a name without its directory",
        content("a"),
        None::<Vec<u8>>,
    )?;
    File::open(place.point())?.sync_all()?;
    is("synced", content("a"), Some(b"first".to_vec()))?;
    file.write_all_at(b"SECOND", 0)?;
    file.sync_data()?;
    is("after a lie", content("a"), Some(b"first".to_vec()))?;
    let live = place.faultfs.live(Path::new("a"));
    is("what is there", live, Some(b"SECOND".to_vec()))?;
    file.set_len(2)?;
    file.sync_all()?;
    is("cut", content("a"), Some(b"SE".to_vec()))?;
    fs::rename(place.point().join("a"), place.point().join("b"))?;
    is(
        "a rename without its directory",
        content("b"),
        None::<Vec<u8>>,
    )?;
    File::open(place.point())?.sync_all()?;
    is("renamed", content("b"), Some(b"SE".to_vec()))?;
    is("the old name", content("a"), None::<Vec<u8>>)?;
    drop(file);
    Ok(place.undo()?)
}

/// What was counted between two looks.
fn between(before: &Counts, after: &Counts, call: Call) -> u64 {
    after.of(call) - before.of(call)
}

fn methods_are_told_apart() -> Checked {
    let place = Place::new("", false)?;
    let syncs = [Call::Fdatasync, Call::Fsync, Call::Odsync, Call::Osync];
    for (flags, by_write) in [
        (rustix::fs::OFlags::empty(), [0, 0, 0, 0]),
        (O_DSYNC, [0, 0, 1, 0]),
        (O_SYNC, [0, 0, 0, 1]),
    ] {
        let file = open(&place, "a", flags)?;
        let counted = |work: &dyn Fn() -> io::Result<()>| -> io::Result<[u64; 4]> {
            let before = place.faultfs.counts();
            work()?;
            let after = place.faultfs.counts();
            Ok(syncs.map(|call| between(&before, &after, call)))
        };
        let write = counted(&|| file.write_all_at(&[1; 8192], 0))?;
        is("a write", write, by_write)?;
        is("fdatasync", counted(&|| file.sync_data())?, [1, 0, 0, 0])?;
        is("fsync", counted(&|| file.sync_all())?, [0, 1, 0, 0])?;
        // One record of the largest size comes in one piece.
        let before = place.faultfs.counts();
        file.write_all_at(&vec![1; MIB as usize], 0)?;
        is(
            "1 MiB",
            between(&before, &place.faultfs.counts(), Call::Write),
            1,
        )?;
    }
    Ok(place.undo()?)
}

fn records_are_read_first() -> Checked {
    for record in [4 * KIB, 128 * KIB, MIB] {
        let place = Place::new(&format!("record {}KiB", record / KIB), false)?;
        let file = open(&place, "a", rustix::fs::OFlags::empty())?;
        let reads = || place.faultfs.counts().record_reads_for_write;
        file.write_all_at(&vec![1; 4 * record as usize], 0)?;
        file.sync_all()?;
        is("a new file", reads(), 0)?;
        let mut control = OpenOptions::new()
            .write(true)
            .open(place.point().join(CONTROL))?;
        control.write_all(b"drop")?;
        file.write_all_at(&vec![1; record as usize], record)?;
        is("a whole record", reads(), 0)?;
        file.write_all_at(&[1; 512], 0)?;
        is("a part of a cold one", reads(), 1)?;
        file.write_all_at(&[1; 512], 512)?;
        is("it is warm then", reads(), 1)?;
        file.write_all_at(&vec![1; record as usize], 2 * record + 512)?;
        is("parts of two", reads(), 3)?;
        file.write_all_at(&[1; 512], 4 * record)?;
        is("behind the end", reads(), 3)?;
        let mut text = String::new();
        File::open(place.point().join(CONTROL))?.read_to_string(&mut text)?;
        if !text.contains("record-reads-for-write 3\n") {
            return Err(format!("the control file says {text}").into());
        }
        drop((file, control));
        place.undo()?;
    }
    Ok(())
}

fn full_is_told_where_it_should() -> Checked {
    for (full, at) in [("write", 0), ("sync", 1), ("close", 2)] {
        let place = Place::new(&format!("size 64KiB\nfull {full}"), false)?;
        let file = open(&place, "a", rustix::fs::OFlags::empty())?;
        let told = [
            code(file.write_all_at(&[1; 128 << 10], 0)),
            code(file.sync_all()),
            code(nix::unistd::close(file).map_err(io::Error::from)),
        ];
        for (place, told) in told.into_iter().enumerate() {
            is(
                &format!("{full}, call {place}"),
                told,
                (place == at).then_some(Errno::NOSPC),
            )?;
        }
        place.undo()?;
    }
    let place = Place::new("size 64KiB", false)?;
    let file = open(&place, "a", rustix::fs::OFlags::empty())?;
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 64 * KIB)?;
    is("allocated", file.metadata()?.blocks() * 512, 64 * KIB)?;
    is(
        "what is reserved",
        code(file.write_all_at(&[1; 64 << 10], 0)),
        None::<Errno>,
    )?;
    is(
        "more",
        code(file.write_all_at(&[1], 64 * KIB)),
        Some(Errno::NOSPC),
    )?;
    drop(file);
    fs::remove_file(place.point().join("a"))?;
    let statvfs: StatVfs = rustix::fs::statvfs(place.point())?;
    is("free again", statvfs.f_bavail * statvfs.f_frsize, 64 * KIB)?;
    Ok(place.undo()?)
}

fn sizes_are_as_told() -> Checked {
    let place = Place::new("blksize 128KiB\nbsize 8KiB\nsize 1MiB\nshown 8MiB", false)?;
    let file = open(&place, "a", rustix::fs::OFlags::empty())?;
    is("st_blksize", file.metadata()?.blksize(), 128 * KIB)?;
    let statvfs = rustix::fs::statvfs(place.point())?;
    is("f_bsize", statvfs.f_bsize, 8 * KIB)?;
    is("f_blocks", statvfs.f_blocks, MIB / KIB)?;
    drop(file);
    Ok(place.undo()?)
}

fn a_device_gets_what_is_synced() -> Checked {
    let place = Place::new("record 16KiB", true)?;
    let device = place.device().ok_or("no device")?;
    let name = device.trim_start_matches("/dev/");
    // Reads, their sectors, writes with flushes, their sectors, flushes.
    let counted = || -> Checked<[u64; 5]> {
        let text = fs::read_to_string(format!("/sys/block/{name}/stat"))?;
        let fields: Vec<u64> = text
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        Ok([0, 2, 4, 6, 15].map(|field| fields[field]))
    };
    let moved = |work: &dyn Fn() -> io::Result<()>| -> Checked<[u64; 5]> {
        let before = counted()?;
        work()?;
        let after = counted()?;
        Ok(std::array::from_fn(|field| after[field] - before[field]))
    };
    let file = open(&place, "a", rustix::fs::OFlags::empty())?;
    is(
        "a write",
        moved(&|| file.write_all_at(&[7; 64 << 10], 0))?,
        [0, 0, 0, 0, 0],
    )?;
    is("a sync", moved(&|| file.sync_data())?, [0, 0, 2, 128, 1])?;
    is("another", moved(&|| file.sync_data())?, [0, 0, 1, 0, 1])?;
    place.faultfs.drop_caches();
    is(
        "a part",
        moved(&|| file.write_all_at(&[8; 512], 0))?,
        [1, 32, 0, 0, 0],
    )?;
    drop(file);
    Ok(place.undo()?)
}
