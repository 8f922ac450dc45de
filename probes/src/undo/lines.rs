//! The undo file's lines: JSON, one object each.
//!
//! The first is a [`Header`]. Then `{"will": ACTION}` before something is made outside
//! plain files and `{"undone": ACTION}` after it was undone; what was announced and not
//! undone is undone by a removal, newest first. A line counts once its newline is there:
//! one that is torn announces something that was not made.
//!
//! A new kind of [`Action`] is a new variant and its arm in `undo`; the format stays. An
//! older walprobe that meets an unknown kind leaves the folder and says so.

use serde::{Deserialize, Serialize};

use crate::pocket::{dataset, loops};

const MAGIC: &str = "walprobe undo";
const VERSION: u32 = 1;

/// Something made outside plain files. Undoing what is not there is a success, since it may
/// not have been made yet or may have gone with a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Action {
    /// The folder itself was let go by a process that will take it again, or is dead.
    LetGo {
        /// Tells this file from any other.
        token: String,
        /// The process.
        pid: u32,
        /// When it was started, in clock ticks since boot: process numbers are used again.
        started_ticks: u64,
        /// The boot.
        boot_id: String,
    },
    /// A ZFS dataset of the run's own, below the one that holds the directory.
    Dataset {
        /// `PARENT/walprobe-RUNID-PURPOSE`.
        name: String,
    },
    /// A loop device over a file in the scratch folder; unbound with its last user.
    Loop {
        /// `/dev/loopN`.
        device: std::path::PathBuf,
        /// Major and minor number of its filesystem's device.
        image_device: (u32, u32),
        /// Its inode number.
        image_inode: u64,
    },
    /// A file or an empty folder of that path; only tests make one.
    #[cfg(test)]
    Marker {
        /// Where it is.
        path: std::path::PathBuf,
    },
}

impl Action {
    /// Undoes it; `run_id` is that of the folder whose undo file says it.
    pub(crate) fn undo(&self, run_id: &str) -> Result<(), String> {
        match *self {
            Self::LetGo { .. } => Ok(()),
            Self::Dataset { ref name } => dataset::undo(name, run_id),
            Self::Loop {
                ref device,
                image_device,
                image_inode,
            } => loops::undo(device, (image_device, image_inode)),
            #[cfg(test)]
            Self::Marker { ref path } => {
                match std::fs::remove_file(path).or_else(|_| std::fs::remove_dir(path)) {
                    Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e.to_string()),
                    _ => Ok(()),
                }
            }
        }
    }
}

/// The first line: what the folder is checked against, then words for people. The order
/// of the fields is part of the format ([`parse`] knows a torn header by its beginning).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    magic: String,
    version: u32,
    run_id: String,
    folder_inode: u64,
    pid: u32,
    boot_id: String,
    started: String,
}

/// A further line, as it is written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Told<'a> {
    Will(&'a Action),
    Undone(&'a Action),
}

/// A further line, as it is read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Will(Action),
    Undone(Action),
}

/// The header's line for a folder.
pub(super) fn header(run_id: &str, folder_inode: u64) -> String {
    line(&Header {
        magic: MAGIC.to_owned(),
        version: VERSION,
        run_id: run_id.to_owned(),
        folder_inode,
        pid: std::process::id(),
        boot_id: boot_id(),
        started: jiff::Timestamp::now().to_string(),
    })
}

/// The kernel's name for the time since it was started.
pub(super) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}

/// A line, its newline at its end.
pub(super) fn line(line: &impl Serialize) -> String {
    let mut text = serde_json::to_string(line).expect("no map keys, no failing Serialize");
    text.push('\n');
    text
}

/// Takes the newest announcement of an action off the list.
pub(super) fn strike(outstanding: &mut Vec<Action>, action: &Action) {
    if let Some(at) = outstanding.iter().rposition(|a| a == action) {
        outstanding.remove(at);
    }
}

/// The part of the header's line that the folder determines.
fn expected(run_id: &str, folder_inode: u64) -> String {
    format!(
        r#"{{"magic":"{MAGIC}","version":{VERSION},"run_id":"{run_id}","folder_inode":{folder_inode},"#
    )
}

/// The length of the whole lines, and what they leave to be undone; or why the file is not
/// this folder's. A torn last line, and the NULs that a power cut leaves, count as not written.
pub(super) fn parse(
    bytes: &[u8],
    run_id: &str,
    folder_inode: u64,
) -> Result<(u64, Vec<Action>), String> {
    let foreign = || Err("its undo file does not belong to it".to_owned());
    let expected = expected(run_id, folder_inode);
    let nuls = bytes.iter().rev().take_while(|b| **b == 0).count();
    let bytes = &bytes[..bytes.len() - nuls];

    let start = bytes.len().min(expected.len());
    if bytes[..start] != expected.as_bytes()[..start] {
        let newer = std::str::from_utf8(bytes).is_ok_and(|t| {
            t.starts_with(&format!(r#"{{"magic":"{MAGIC}","version":"#))
                && !t.starts_with(&format!(r#"{{"magic":"{MAGIC}","version":{VERSION},"#))
        });
        return if newer {
            Err("its undo file has a version that this walprobe does not know".to_owned())
        } else {
            foreign()
        };
    }
    let Some(whole) = bytes.iter().rposition(|b| *b == b'\n') else {
        return Ok((0, Vec::new()));
    };
    let mut lines = bytes[..whole].split(|b| *b == b'\n');
    let header: Option<Header> = lines.next().and_then(|l| serde_json::from_slice(l).ok());
    if header.is_none() {
        return foreign();
    }
    let mut outstanding = Vec::new();
    for line in lines {
        match serde_json::from_slice(line) {
            Ok(Line::Will(action)) => outstanding.push(action),
            Ok(Line::Undone(action)) => {
                strike(&mut outstanding, &action);
            }
            Err(_) => {
                return Err(format!(
                    "its undo file has a line that this walprobe does not understand: {}",
                    crate::paths::show_bytes(&line[..line.len().min(200)])
                ));
            }
        }
    }
    Ok((whole as u64 + 1, outstanding))
}
