//! Everything that touches the disk.
//!
//! The flow: a [`request::Request`] names a directory; [`target`] checks it and makes the
//! scratch folder ([`scratch`]); [`facts`] reads what can be known without writing; each
//! probe of [`PROBES`] plans groups of cases; the [`engine`] drives them in interleaved
//! rounds and hands rows out as [`event::Event`]s. [`worker`] is that flow as one function.
//! [`clean`] undoes what a killed run left.
//! Nothing here knows of rules or renderers.

pub mod align;
pub mod cache;
pub mod clean;
pub mod commit;
pub mod contract;
pub mod durability;
pub mod engine;
pub mod enospc;
pub mod event;
pub mod facts;
pub mod files;
pub mod folder;
pub mod paths;
pub mod pause;
pub mod pgdir;
pub mod plan;
mod pocket;
pub mod prealloc;
mod program;
pub mod recycle;
mod removal;
pub mod report;
pub mod request;
pub mod scratch;
pub mod segment;
mod standing;
pub mod stats;
pub mod sync;
pub mod sys;
pub mod target;
pub mod undo;
pub mod verdict;
pub mod worker;

/// The catalogue: every probe, in the order in which they run.
pub const PROBES: &[&dyn contract::Probe] = &[
    &durability::Durability,
    &sync::Sync,
    &enospc::Enospc,
    &prealloc::Prealloc,
    &recycle::Recycle,
    &commit::Commit,
    &align::Align,
];

/// How many times longer than usual a call of a probe may take before it counts as never answering.
#[must_use]
pub fn patience(probe: &str) -> u32 {
    if probe == "enospc" {
        enospc::PATIENCE
    } else {
        1
    }
}
