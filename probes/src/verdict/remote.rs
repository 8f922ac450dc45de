//! What was sent to a server, where its requests are counted.
//!
//! It never proves durability: a server may answer from memory, as one does whose export
//! says `async`. Syncs that sent nothing speak against it, and decide nothing either: a
//! client on the server's own machine may go past the requests (LOCALIO).

use super::{Check, FLUSHED, Judged, UNFLUSHED};
use crate::{facts::mountstats, report::Weight};

/// NFS: a small sync is one WRITE that asks for stable storage, or WRITEs and a COMMIT.
pub(super) fn judge(check: &Check<'_>, case: &mut Judged) {
    let found = &check.fdatasync;
    let (Some(writes), Some(commits)) = (found.number("nfs_writes"), found.number("nfs_commits"))
    else {
        return;
    };
    let syncs = found.syncs();
    // The figure that says more: where nothing was committed, what was written.
    let (name, counted) = if commits >= syncs * FLUSHED || commits >= writes {
        ("nfs_commits", commits)
    } else {
        ("nfs_writes", writes)
    };
    let weight = if counted >= syncs * FLUSHED {
        Weight::For
    } else if counted <= syncs * UNFLUSHED {
        Weight::Against
    } else {
        Weight::Limits
    };
    let unit = if name == "nfs_commits" {
        "commits"
    } else {
        "writes"
    };
    let value = found.row.observations.get(name).cloned();
    let value = value.unwrap_or_default();
    case.ground(
        "server-requests",
        weight,
        value,
        Some(unit),
        mountstats::PATH,
        Some(found.observation(name)),
    );
    case.besides.push(
        match weight {
            Weight::For => "each sync did send its data to the server",
            Weight::Limits => "not every sync was seen to send a request to the server",
            Weight::Against => "no sync was seen to send anything to the server",
        }
        .to_owned(),
    );
}
