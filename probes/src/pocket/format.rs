//! What a pocket is made like: the target's filesystem type, block size, journal and mount options,
//! as far as they can be copied.

use serde_json::json;

use crate::facts::{Facts, Family, family};

/// Mount options that decide how files are written and where space comes from; a value stands after
/// `=`. All others are left out: they name devices, quotas or subvolumes of the target's own.
const COPIED: [(Family, &[&str]); 3] = [
    (
        Family::Ext4,
        &[
            "data",
            "barrier",
            "nobarrier",
            "delalloc",
            "nodelalloc",
            "commit",
            "auto_da_alloc",
            "noauto_da_alloc",
            "dioread_lock",
            "dioread_nolock",
            "journal_async_commit",
        ],
    ),
    (
        Family::Xfs,
        &["allocsize", "largeio", "nolargeio", "wsync", "swalloc"],
    ),
    (
        Family::Btrfs,
        &[
            "compress",
            "compress-force",
            "nodatacow",
            "nodatasum",
            "nobarrier",
            "commit",
            "flushoncommit",
            "noflushoncommit",
            "max_inline",
            "ssd",
            "nossd",
            "ssd_spread",
        ],
    ),
];

/// How a pocket is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// As the kernel calls it.
    pub(crate) kind: String,
    /// The program that makes it; none where mounting does (tmpfs).
    pub(crate) mkfs: Option<String>,
    /// Its arguments, without the image.
    pub(crate) arguments: Vec<String>,
    /// Mount options.
    pub(crate) options: Vec<String>,
    /// Size of the image: small, but large enough for the mkfs programs.
    pub(crate) bytes: u64,
    /// Where it has blocks of a size of their own.
    pub(crate) block_bytes: Option<u64>,
}

impl Format {
    /// A format like the target's; none where walprobe makes no filesystem of that type.
    pub(crate) fn like(facts: &Facts) -> Option<Self> {
        const MIB: u64 = 1 << 20;
        let kind = facts.text("fs.type")?;
        let block = facts.number("fs.block_bytes").filter(|b| *b >= 512);
        let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let format = |arguments, bytes, block_bytes| Self {
            kind: kind.to_owned(),
            mkfs: Some(format!("mkfs.{kind}")),
            arguments,
            options: options(facts, kind),
            bytes,
            block_bytes,
        };
        match family(kind) {
            Family::Ext4 => {
                // No reserve for root; no background writes that would be counted as ours.
                let mut arguments = words(&["-q", "-F", "-m", "0"]);
                arguments.extend(words(&[
                    "-E",
                    "lazy_itable_init=0,lazy_journal_init=0,nodiscard",
                ]));
                if let Some(block) = block {
                    arguments.extend(["-b".to_owned(), block.to_string()]);
                }
                if facts.text("fs.journal_mode") == Some("none") {
                    arguments.extend(words(&["-O", "^has_journal"]));
                }
                Some(format(arguments, 64 * MIB, block))
            }
            Family::Xfs => {
                let mut arguments = words(&["-q", "-f", "-K"]);
                if let Some(block) = block {
                    arguments.extend(["-b".to_owned(), format!("size={block}")]);
                }
                Some(format(arguments, 300 * MIB, block))
            }
            Family::Btrfs => Some(format(words(&["-q", "-f", "-K"]), 128 * MIB, None)),
            // ramfs has no limit that could be reached.
            Family::Memory if kind == "tmpfs" => Some(Self {
                mkfs: None,
                options: vec![format!("size={}", 32 * MIB), "mode=0700".to_owned()],
                ..format(Vec::new(), 32 * MIB, None)
            }),
            _ => None,
        }
    }

    /// For the row: what the pocket is, so that nobody takes it for the target itself.
    pub(crate) fn told(&self) -> String {
        let mib = self.bytes >> 20;
        let place = if self.mkfs.is_some() {
            "in a loop image"
        } else {
            "in memory"
        };
        let block = self
            .block_bytes
            .map_or_else(String::new, |b| format!(", {b}-byte blocks"));
        let options = if self.options.is_empty() || self.mkfs.is_none() {
            String::new()
        } else {
            format!(", {}", self.options.join(","))
        };
        format!("{} of {mib} MiB {place}{block}{options}", self.kind)
    }

    /// The same for a machine.
    pub(crate) fn options_value(&self) -> serde_json::Value {
        json!(self.options.join(","))
    }
}

fn options(facts: &Facts, kind: &str) -> Vec<String> {
    let family = family(kind);
    let copied = COPIED
        .iter()
        .find(|(f, _)| *f == family)
        .map_or(&[][..], |(_, names)| *names);
    let mut options: Vec<String> = facts
        .text("mount.options")
        .unwrap_or("")
        .split(',')
        .filter(|o| copied.contains(&o.split('=').next().unwrap_or(o)))
        .map(str::to_owned)
        .collect();
    let has =
        |options: &[String], name: &str| options.iter().any(|o| o.split('=').next() == Some(name));
    // A default of the superblock is not among the mount's options.
    match facts.text("fs.journal_mode") {
        Some(mode) if family == Family::Ext4 && mode != "none" && !has(&options, "data") => {
            options.push(format!("data={mode}"));
        }
        _ => {}
    }
    // New files inherit NOCOW from the directory; in the pocket from the mount.
    if family == Family::Btrfs
        && facts.truth("fs.nocow") == Some(true)
        && !has(&options, "nodatacow")
    {
        options.push("nodatacow".to_owned());
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Fact;

    fn facts(pairs: &[(&str, serde_json::Value)]) -> Facts {
        let mut facts = Facts::default();
        for (name, value) in pairs {
            facts.target.insert(
                (*name).to_owned(),
                Fact {
                    value: value.clone(),
                    source: String::new(),
                    why: None,
                },
            );
        }
        facts
    }

    #[test]
    fn ext4_has_the_targets_blocks_journal_and_options_and_no_reserve() {
        let format = Format::like(&facts(&[
            ("fs.type", json!("ext4")),
            ("fs.block_bytes", json!(1024)),
            ("fs.journal_mode", json!("journal")),
            (
                "mount.options",
                json!("rw,noatime,barrier=0,usrquota,discard"),
            ),
        ]))
        .unwrap();
        assert_eq!(format.mkfs.as_deref(), Some("mkfs.ext4"));
        let arguments = format.arguments.join(" ");
        assert!(arguments.contains("-m 0") && arguments.contains("-b 1024"));
        assert_eq!(format.options, ["barrier=0", "data=journal"]);
        assert!(format.told().contains("barrier=0"), "{}", format.told());
    }

    #[test]
    fn nocow_of_a_directory_becomes_the_pockets_option() {
        let format = Format::like(&facts(&[
            ("fs.type", json!("btrfs")),
            ("fs.nocow", json!(true)),
            ("mount.options", json!("rw,ssd,space_cache=v2,subvol=/x")),
        ]));
        assert_eq!(format.unwrap().options, ["ssd", "nodatacow"]);
    }

    #[test]
    fn what_cannot_be_made_small_has_no_pocket() {
        for kind in ["nfs4", "overlay", "fuse.x", "ramfs", "zfs"] {
            assert_eq!(Format::like(&facts(&[("fs.type", json!(kind))])), None);
        }
    }
}
