//! The scratch folder under bad luck and bad intent: killed runs, look-alikes, races, attackers.
//!
//! What is guarded: `clean` leaves a directory exactly as it was before the run that was
//! killed, takes nothing that a run did not make, and lets live runs be; nobody who can
//! write to the directory can lead walprobe out of its folder.

#[path = "hostile/attack.rs"]
mod attack;
#[path = "kit/child.rs"]
mod child;
#[path = "hostile/kills.rs"]
mod kills;
#[path = "hostile/lookalikes.rs"]
mod lookalikes;
#[path = "kit/means.rs"]
mod means;
#[path = "hostile/races.rs"]
mod races;
#[path = "kit/tree.rs"]
mod tree;

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::OFlags;
use walprobe_probes::{
    clean::{CleanReport, clean},
    scratch::{Scratch, name_for},
    target,
};

const RUN: &str = "01JDW3K9ZQ4T";

/// The n-th of many run ids.
fn run_id(n: u32) -> String {
    format!("01JDW3K{n:05}")
}

fn inode(dir: &Path) -> u64 {
    fs::metadata(dir).expect("stat").ino()
}

/// Where a run's folder is, as reports show it.
fn place(dir: &Path, run_id: &str) -> PathBuf {
    let dir = dir.canonicalize().expect("canonicalize");
    let name = name_for(run_id, inode(&dir));
    dir.join(name)
}

fn shown(path: &Path) -> String {
    path.to_str().expect("UTF-8").to_owned()
}

fn create(dir: &Path, run_id: &str) -> Scratch {
    Scratch::create_with(&target::hold(dir).expect("held"), run_id, &announce).expect("created")
}

/// A run in the middle of its work.
fn fill(scratch: &Scratch) {
    for name in ["seg-1", "tmp-2", "old-3", "witness-4", "file-5"] {
        let file = scratch.create_file(name, OFlags::RDWR).expect("create");
        rustix::io::write(&file, name.as_bytes()).expect("write");
    }
}

fn announce(point: &str) {
    child::say(&format!("paused {point}"));
}

/// The folder of a run that was killed at work.
fn leftover(dir: &Path, run_id: &str) -> PathBuf {
    let mut child = child::start("work", dir, &[("CHILD_RUN", run_id)]);
    child.wait_for("working");
    drop(child);
    let folder = place(dir, run_id);
    assert!(folder.join("seg-1").exists(), "nothing was left to clean");
    folder
}

/// In a child: waits to be killed.
fn park() -> ! {
    loop {
        std::thread::sleep(std::time::Duration::from_secs(3600));
    }
}

#[track_caller]
fn cleaned(dir: &Path) -> CleanReport {
    clean(dir).expect("cleaned")
}

/// Not a test: what a child of this crate does.
#[test]
fn child_entry() {
    let Ok(case) = std::env::var("CHILD_CASE") else {
        return;
    };
    let dir = PathBuf::from(std::env::var_os("CHILD_DIR").expect("CHILD_DIR"));
    let run = std::env::var("CHILD_RUN").unwrap_or_else(|_| RUN.to_owned());
    if let Ok(mask) = std::env::var("CHILD_UMASK") {
        let bits = u32::from_str_radix(&mask, 8).expect("octal");
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(bits));
    }
    child::say("ready");
    match case.as_str() {
        "work" => {
            let scratch = create(&dir, &run);
            fill(&scratch);
            child::say("working");
            park();
        }
        "whole-life" => {
            let scratch = create(&dir, &run);
            fill(&scratch);
            let left = scratch.remove_with(&announce);
            assert!(left.is_empty(), "{left:?}");
        }
        "lives" => kills::child_lives(&dir),
        "clean" => child::say(&format!("cleaned {:?}", cleaned(&dir).left)),
        "attack" => attack::child_attack(&dir),
        other => panic!("no case {other}"),
    }
}
