//! ext2, ext3, ext4: journal mode, barrier, delayed allocation.
//!
//! `/proc/fs/ext4/DEV/options` lists every option in effect (Documentation/admin-guide/
//! ext4.rst). mountinfo shows only what differs from the superblock's own defaults, so an
//! option that is not there says nothing.
//!
//! The journal may lie on a device of its own (mke2fs(8), `-J device=`), which no option
//! tells. `/proc/fs/jbd2` has a directory for each journal: `sda1-8` for one in inode 8 of
//! `sda1`, `sdb1` for one that is a device; and the journal's kernel thread bears that name.

use std::fs;

use super::Subject;
use crate::{
    facts::{Roots, absent, block::Block, known, put},
    report::{Fact, FactMap},
};

pub(super) fn facts(subject: &Subject<'_>, facts: &mut FactMap) {
    let path = format!(
        "/proc/fs/ext4/{}/options",
        subject.device.unwrap_or("DEVICE")
    );
    let options = match subject.device {
        Some(_) => subject.roots.text(&path),
        None => Err("its device is not known".to_owned()),
    };
    let in_effect = Options {
        subject,
        listed: options.as_ref().ok().map(|o| o.lines().collect()),
        why: options.as_ref().err().cloned().unwrap_or_default(),
        source: subject.source(&path),
    };
    put(
        facts,
        "fs.barrier",
        in_effect.switch("barrier", "nobarrier"),
    );
    put(
        facts,
        "fs.delalloc",
        in_effect.switch("delalloc", "nodelalloc"),
    );
    put(facts, "fs.journal_mode", in_effect.journal_mode());
}

struct Options<'a> {
    subject: &'a Subject<'a>,
    listed: Option<Vec<&'a str>>,
    why: String,
    source: String,
}

impl Options<'_> {
    fn switch(&self, on: &str, off: &str) -> Fact {
        if let Some(listed) = &self.listed {
            let has = |name: &str| listed.iter().any(|o| o.split('=').next() == Some(name));
            return match (has(on), has(off)) {
                (true, false) => known(true, &self.source),
                (false, true) => known(false, &self.source),
                _ => absent(&self.source, format!("neither {on} nor {off} is listed")),
            };
        }
        let source = self.subject.source("/proc/self/mountinfo");
        let zero = self.subject.option(on).as_deref() == Some("0");
        if zero || self.subject.option(off).is_some() {
            known(false, source)
        } else if self.subject.option(on).is_some() {
            known(true, source)
        } else {
            absent(&self.source, &self.why)
        }
    }

    fn journal_mode(&self) -> Fact {
        if let Some(listed) = &self.listed {
            // A filesystem without a journal has no data mode.
            let mode = listed.iter().find_map(|o| o.strip_prefix("data="));
            return known(mode.unwrap_or("none"), &self.source);
        }
        match self.subject.option("data") {
            Some(mode) => known(mode, self.subject.source("/proc/self/mountinfo")),
            None => absent(&self.source, &self.why),
        }
    }
}

const JOURNALS: &str = "/proc/fs/jbd2";

/// Kernels before 5.17 cut a thread's name off after so many bytes.
const THREAD_NAME: usize = 15;

/// The journal's device, or why it is not known; none where the journal lies within the
/// filesystem, where there is none, and where nothing can be read of it.
pub(in crate::facts) fn journal_device(name: &str, roots: &Roots) -> Option<Result<Block, String>> {
    let options = roots.text(&format!("/proc/fs/ext4/{name}/options")).ok()?;
    // A filesystem without a journal has no data mode.
    options.lines().find(|o| o.starts_with("data="))?;
    let journals: Vec<String> = fs::read_dir(roots.at(JOURNALS))
        .ok()?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    let is_within = |journal: &String| {
        let inode = journal.strip_prefix(name).and_then(|j| j.strip_prefix('-'));
        inode.is_some_and(|inode| inode.bytes().all(|b| b.is_ascii_digit()))
    };
    if journals.iter().any(is_within) {
        return None;
    }
    Some(by_thread(name, &journals, roots))
}

/// The thread is told by a number of this process's own namespace, 0 where it is of none.
fn by_thread(name: &str, journals: &[String], roots: &Roots) -> Result<Block, String> {
    let thread = roots.text(&format!("/sys/fs/ext4/{name}/journal_task"))?;
    let comm = roots.text(&format!("/proc/{thread}/comm"))?;
    let told = comm
        .strip_prefix("jbd2/")
        .ok_or_else(|| format!("{comm} is no journal's thread"))?;
    let is_cut = comm.len() == THREAD_NAME;
    let mut found = journals
        .iter()
        .filter(|journal| *journal == told || (is_cut && journal.starts_with(told)))
        .filter_map(|journal| Block::at(&roots.at(&format!("/sys/class/block/{journal}"))));
    match (found.next(), found.next()) {
        (Some(block), None) => Ok(block),
        _ => Err(format!("no one device is the journal {told}")),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    const THREAD: &str = "jbd2/sdb1";

    /// A tree with the ext4 `sda1`: its options, its journal's thread, the journals of all.
    fn told(options: &str, thread: &str, journals: &[&str]) -> Option<Result<String, String>> {
        let tree = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = tree.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/fs/ext4/sda1/options", options);
        write("sys/fs/ext4/sda1/journal_task", "77\n");
        write("proc/77/comm", thread);
        for journal in journals {
            write(&format!("proc/fs/jbd2/{journal}/info"), "");
        }
        for device in ["sda1", "sdb1", "nvme0n1p12"] {
            write(&format!("sys/class/block/{device}/size"), "8\n");
        }
        let roots = Roots {
            proc: tree.path().join("proc"),
            sys: tree.path().join("sys"),
            root: Path::new(tree.path()).to_owned(),
            recorded: None,
        };
        journal_device("sda1", &roots).map(|found| found.map(|block| block.name))
    }

    #[test]
    fn a_journal_within_is_no_device() {
        let ordered = "rw\nbarrier\ndata=ordered\n";
        assert_eq!(told(ordered, "jbd2/sda1-8", &["sda1-8", "sdb1"]), None);
        // There is none, or nothing tells of any.
        assert_eq!(told("rw\nbarrier\n", THREAD, &["sdb1"]), None);
        assert_eq!(told(ordered, THREAD, &[]), None);
    }

    #[test]
    fn a_journal_elsewhere_is_told_by_its_thread() {
        let ordered = "rw\ndata=ordered\n";
        let found = |thread: &str, journals: &[&str]| told(ordered, thread, journals).unwrap();
        assert_eq!(found(THREAD, &["sdb1", "sdc1-8"]), Ok("sdb1".to_owned()));
        // Cut off after 15 bytes, and one device it may be.
        let long = ["nvme0n1p12", "nvme0n1p9-8"];
        assert_eq!(found("jbd2/nvme0n1p12", &long), Ok("nvme0n1p12".to_owned()));
        for (thread, journals) in [
            // Another's thread has that number in another namespace.
            ("bash", ["sdb1", "sdc1-8"]),
            (THREAD, ["sdc1", "sda10-8"]),
            ("jbd2/sdd1", ["sdd1", "sdb1"]),
        ] {
            assert!(found(thread, &journals).is_err(), "{thread}");
        }
    }
}
