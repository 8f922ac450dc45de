//! NFS: protocol version, hard or soft, sync (nfs(5)).
//!
//! The kernel lists these options whatever was given at the mount; `sync` makes every
//! write wait, with or without a sync.

use super::Subject;
use crate::{
    facts::{absent, known, put},
    report::FactMap,
};

pub(super) fn facts(subject: &Subject<'_>, facts: &mut FactMap) {
    let listed = subject.source("/proc/self/mountinfo");
    let has = |name: &str| subject.option(name).is_some();
    let version = subject.option("vers").or_else(|| {
        let kind = subject.place.mount.as_ref().ok()?.fs_type.as_str();
        (kind == "nfs4").then(|| "4".to_owned())
    });
    put(
        facts,
        "nfs.version",
        match version.filter(|v| !v.is_empty()) {
            Some(version) => known(version, &listed),
            None => absent(&listed, "vers is not listed"),
        },
    );
    put(
        facts,
        "nfs.hard",
        match (has("hard"), has("soft") || has("softerr")) {
            (true, false) => known(true, &listed),
            (false, true) => known(false, &listed),
            _ => absent(&listed, "neither hard nor soft is listed"),
        },
    );
    put(facts, "nfs.sync", known(has("sync"), listed));
}
