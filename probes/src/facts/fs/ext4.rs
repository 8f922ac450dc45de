//! ext2, ext3, ext4: journal mode, barrier, delayed allocation.
//!
//! `/proc/fs/ext4/DEV/options` lists every option in effect (Documentation/admin-guide/
//! ext4.rst). mountinfo shows only what differs from the superblock's own defaults, so an
//! option that is not there says nothing.

use super::Subject;
use crate::{
    facts::{absent, known, put},
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
