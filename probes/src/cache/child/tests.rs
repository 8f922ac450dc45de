//! The order of what is done to a child dataset, with programs that play OpenZFS, and what is
//! said where there is none.

use std::{
    fs,
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::fs::OFlags;
use serde_json::json;

use super::*;
use crate::{
    contract::{Counters, Counts, Fault, Hooks, Noise, Pulse, Quiet, Settled},
    engine::clock::Monotonic,
    files::WalFile,
    pocket::dataset::fake::{Fake, may_mount},
    report::Fact,
    scratch::Scratch,
    target,
};

const NAME: &str = "tank/wal/walprobe-01JDW3K9ZQ4T-cold";
const BYTES: u64 = 64 << 10;

/// A device that was read by so much more each time it is asked.
struct Device(AtomicU64, u64);

impl Counters for Device {
    fn read(&self) -> Counts {
        Counts {
            device_bytes_read: self.0.fetch_add(self.1, Ordering::Relaxed),
            ..Counts::default()
        }
    }
    fn flushes_by_device(&self) -> Vec<(String, u64)> {
        Vec::new()
    }
    fn noise(&self) -> Noise {
        Noise::default()
    }
    fn has_device(&self) -> bool {
        true
    }
}

struct Syncing;

impl Hooks for Syncing {
    fn charge(&mut self, _bytes: u64) -> Result<(), Stop> {
        Ok(())
    }
    fn settle(&mut self) -> Result<Settled, Stop> {
        // As the world does on ZFS: the pool's transaction group ends.
        let zpool = crate::program::find(std::ffi::OsStr::new("zpool")).unwrap();
        crate::program::Program::new(&zpool, std::time::Duration::from_secs(60))
            .args(["sync", "tank"])
            .in_root()
            .run(&Pulse::default())
            .unwrap();
        Ok(Settled::default())
    }
    fn doing(&mut self, _probe: &str, _comparison: &str, _case: &str, _round: u64) {}
}

fn facts(fs_type: &str) -> Facts {
    let fact = Fact {
        value: json!(fs_type),
        source: "test".to_owned(),
        why: None,
    };
    let mut facts = Facts::default();
    facts.target.insert("fs.type".to_owned(), fact);
    facts
}

fn request() -> Request {
    Request {
        dir: "/srv/wal".to_owned(),
        drop_caches: DropCaches::Auto,
        op_timeout_s: 60.0,
        ..Request::default()
    }
}

fn cold() -> Case {
    Case {
        beside_cold: true,
        ..Case::default()
    }
}

/// Does `work` with programs that play OpenZFS and a device that was read by `step` more bytes
/// each time it is asked; then removes the scratch folder.
fn with(step: u64, work: impl FnOnce(&Fake, &mut Lab<'_>)) {
    let dir = tempfile::tempdir().unwrap();
    let scratch = Scratch::create(&target::hold(dir.path()).unwrap(), "01JDW3K9ZQ4T").unwrap();
    let (fake, facts, request) = (Fake::new(), facts("zfs"), request());
    let (clock, pulse) = (Monotonic::new(), Pulse::default());
    let counters = Device(AtomicU64::new(0), step);
    let mut lab = Lab {
        facts: &facts,
        request: &request,
        scratch: Some(&scratch),
        hooks: &mut Syncing,
        counters: &counters,
        clock: &clock,
        pulse: &pulse,
        quiet: Quiet::default(),
        rng: fastrand::Rng::with_seed(1),
    };
    work(&fake, &mut lab);
    assert_eq!(scratch.remove(), [""; 0]);
    assert_eq!(fake.datasets(), [""; 0]);
    assert!(fs::read_dir(dir.path()).unwrap().next().is_none());
}

fn pair(folder: &Folder) -> Pair<'static> {
    let (file, witness) = ("old-a", "witness-a");
    for name in [file, witness] {
        let file = WalFile::create(folder, name).unwrap();
        file.pwrite_all(&vec![1; BYTES as usize], 0).unwrap();
    }
    Pair {
        file,
        witness,
        bytes: BYTES,
        lived_bytes: BYTES,
    }
}

#[test]
fn only_auto_on_zfs_needs_one() {
    assert!(is_needed(&request(), &facts("zfs")));
    assert!(!is_needed(&request(), &facts("ext4")));
    for drop_caches in [DropCaches::None, DropCaches::Fadvise, DropCaches::Zfs] {
        let by_name = Request {
            drop_caches,
            ..request()
        };
        assert!(!is_needed(&by_name, &facts("zfs")));
    }
    let with_program = Request {
        drop_caches_cmd: Some(vec!["true".to_owned()]),
        ..request()
    };
    assert!(!is_needed(&with_program, &facts("zfs")));
}

#[test]
fn written_while_only_metadata_is_cached_and_read_when_all_is_again() {
    if !may_mount("written_while_only_metadata_is_cached_and_read_when_all_is_again") {
        return;
    }
    for (step, claim) in [(0, "not-cold"), (1 << 20, "cold")] {
        with(step, |fake, lab| {
            let (dir, in_child) = folder(&cold(), lab).unwrap();
            assert!(in_child && folder(&cold(), lab).unwrap().1);
            let pair = pair(&dir);
            let mut seen = 0;
            for _ in 0..2 {
                let proof = live_and_prove(&dir, pair, lab, |_| {
                    let last = fake.changes().pop().unwrap();
                    assert_eq!(last, format!("zfs set primarycache=metadata {NAME}"));
                    seen += 1;
                    Ok(())
                });
                let proof = proof.unwrap();
                assert_eq!((proof.hook.as_str(), proof.data.as_str()), (HOOK, claim));
                assert_eq!(proof.pages, None, "the page cache proves nothing");
            }
            assert_eq!(seen, 2);
            let turn = [
                format!("zfs set primarycache=metadata {NAME}"),
                "zpool sync tank".to_owned(),
                format!("zfs inherit primarycache {NAME}"),
            ];
            let made = ["zfs create".to_owned(), format!("zfs mount {NAME}")];
            assert_eq!(fake.changes(), [&made[..], &turn, &turn].concat());
        });
    }
}

#[test]
fn without_one_the_reason_names_the_command_and_it_is_tried_once() {
    if !may_mount("without_one_the_reason_names_the_command_and_it_is_tried_once") {
        return;
    }
    with(0, |fake, lab| {
        fake.on("no-create");
        for _ in 0..2 {
            let (dir, in_child) = folder(&cold(), lab).unwrap();
            assert!(!in_child);
            dir.open_file("undo", OFlags::RDONLY).unwrap_err();
        }
        assert_eq!(fake.changes(), ["zfs create"]);
        let (dir, _) = folder(&cold(), lab).unwrap();
        let pair = pair(&dir);
        let stop = live_and_prove(&dir, pair, lab, |_| panic!("nothing is written"));
        let Err(Stop::Skip("need-hook", why)) = stop else {
            panic!("{stop:?}");
        };
        for words in [
            "permission denied",
            "walprobe recycle --drop-caches zfs /srv/wal",
        ] {
            assert!(why.contains(words), "{why}");
        }
        assert_eq!(usable(lab), Ok(()), "the other cases go on");
    });
}

#[test]
fn cases_beside_no_cold_one_stay_in_the_scratch_folder() {
    with(0, |fake, lab| {
        assert!(!folder(&Case::default(), lab).unwrap().1);
        assert_eq!(fake.changes(), [""; 0]);
    });
}

#[test]
fn the_property_is_put_back_whatever_happens_and_what_is_spoilt_is_not_used() {
    if !may_mount("the_property_is_put_back_whatever_happens_and_what_is_spoilt_is_not_used") {
        return;
    }
    with(0, |fake, lab| {
        let (dir, _) = folder(&cold(), lab).unwrap();
        let pair = pair(&dir);
        let fault = || Stop::Fault(Fault::new("pwrite", libc::EIO, "old-a"));
        let stop = live_and_prove(&dir, pair, lab, |_| Err(fault()));
        assert_eq!(stop.unwrap_err(), fault());
        let inherit = format!("zfs inherit primarycache {NAME}");
        assert_eq!(fake.changes().pop(), Some(inherit));
        assert_eq!(usable(lab), Ok(()));
        fake.on("no-inherit");
        let stop = live_and_prove(&dir, pair, lab, |_| Ok(()));
        assert!(matches!(stop, Err(Stop::Skip("need-hook", _))), "{stop:?}");
        let Err(Stop::Skip("need-hook", why)) = usable(lab) else {
            panic!("it is used");
        };
        assert!(why.contains("primarycache is metadata"), "{why}");
    });
}
