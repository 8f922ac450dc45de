//! What else a commit relies on: each case is done once, and tells what it saw.

mod descriptor;
pub(crate) mod direct;
mod directory;
mod undurable;

use serde_json::json;

use crate::{
    contract::{Case, Comparison, Group, Lab, Stop, Study},
    files::{PAGE_BYTES, WalFile},
    folder::Folder,
    sys::buffer::Buffer,
};

use super::CARD;

/// The figures of the cases that have some.
const SERIES: &str = "call";
/// Operations of a case on a directory.
const RENAMES: u64 = 8;
/// Writes of the other cases.
const WRITES: u64 = 32;

/// Cases with figures.
const TIMED: [&str; 5] = [
    "other-descriptor",
    "directory-fsync",
    "durable-rename",
    "write-only",
    "sync_file_range",
];
const DIRECT: &str = "direct-real";

/// The group of all of them.
pub(super) fn group() -> Group {
    let cases = [
        // Each half writes and syncs.
        case("other-descriptor", "writes", WRITES, 2 * WRITES),
        case("directory-fsync", "syncs", RENAMES, RENAMES),
        case("durable-rename", "renames", RENAMES, 3 * RENAMES),
        case("write-only", "writes", WRITES, 1),
        case("sync_file_range", "writes", WRITES, WRITES),
        Case {
            params: [
                ("writes", json!(direct::WRITES)),
                ("write_bytes", json!(direct::WRITE_BYTES)),
            ]
            .into(),
            op_bytes: 3 * direct::BYTES,
            file_bytes: direct::BYTES,
            ..case(DIRECT, "writes", direct::WRITES, 1)
        },
    ];
    let same = |names: &[&str]| {
        names
            .iter()
            .map(|name| ((*name).to_owned(), (*name).to_owned()))
            .collect()
    };
    Group {
        probe: CARD.id,
        weight: 0.0,
        cases: cases.into(),
        compare: vec![
            Comparison {
                names: same(&TIMED),
                ..Comparison::plain("behaviour", SERIES)
            },
            Comparison {
                names: same(&[DIRECT]),
                ..Comparison::plain("behaviour", "")
            },
        ],
    }
}

fn case(name: &str, unit: &'static str, count: u64, syncs: u64) -> Case {
    Case {
        name: name.to_owned(),
        params: [(unit, json!(count))].into(),
        op_bytes: 2 * count * PAGE_BYTES,
        op_syncs: syncs,
        file_bytes: WRITES * PAGE_BYTES,
        ..Case::default()
    }
}

/// The study of a case, if it is one of these.
pub(super) fn open(case: &Case, lab: &mut Lab<'_>) -> Result<Option<Box<dyn Study>>, Stop> {
    let folder = || lab.scratch()?.folder().map_err(Stop::from);
    let study: Box<dyn Study> = match case.name.as_str() {
        "other-descriptor" => Box::new(descriptor::OtherDescriptor { folder: folder()? }),
        "directory-fsync" => Box::new(directory::DirectoryFsync { folder: folder()? }),
        "durable-rename" => Box::new(directory::DurableRename { folder: folder()? }),
        "write-only" => Box::new(undurable::Undurable {
            folder: folder()?,
            write_back: false,
        }),
        "sync_file_range" => Box::new(undurable::Undurable {
            folder: folder()?,
            write_back: true,
        }),
        DIRECT => Box::new(direct::DirectReal { folder: folder()? }),
        _ => return Ok(None),
    };
    lab.hooks.charge(case.op_bytes)?;
    Ok(Some(study))
}

/// A fully written file of [`WRITES`] pages, synced, its writeback over; and a page of content.
fn prepared(folder: &Folder, name: &str, lab: &mut Lab<'_>) -> Result<(WalFile, Buffer), Stop> {
    let file = WalFile::create_anew(folder, name)?;
    let zeros = vec![0; PAGE_BYTES as usize];
    file.zero_fill(WRITES * PAGE_BYTES, &zeros, lab.pulse)?;
    file.fsync()?;
    lab.hooks.settle()?;
    let mut page = Buffer::new(PAGE_BYTES as usize, 4096);
    page.fill_incompressible(lab.request.seed);
    Ok((file, page))
}
