//! What a pool is made of, from `zpool status -LP POOL` (zpool-status(8)).
//!
//! The configuration is a table, indented by two columns a level: the pool, its vdevs, a
//! vdev's own devices. Other classes follow under a heading of their own: a log takes the
//! syncs; caches and spares take none and are left out.

use super::zfs::dataset;
use crate::{
    facts::{Roots, absent, known, place::Place},
    report::Fact,
};

const STATUS: &str = "zpool status";

/// States of a device that takes no writes.
const OUT: [&str; 4] = ["OFFLINE", "REMOVED", "FAULTED", "UNAVAIL"];

/// A device node or a file that a pool is made of, and the part it plays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::facts) struct Leaf {
    /// Its path, links resolved.
    pub(in crate::facts) path: String,
    /// The vdev that it is, or is part of: `mirror-0`. One of the pool takes each write.
    pub(in crate::facts) group: String,
    /// `log`, `special` or `dedup`; none for the pool's own.
    pub(in crate::facts) role: Option<&'static str>,
}

/// `zfs.vdevs`: `mirror-0 /dev/sda1 /dev/sdb1, log /dev/sdc1`.
pub(super) fn fact(place: &Place, roots: &Roots) -> Fact {
    let leaves = match leaves(place, roots) {
        Ok(leaves) => leaves,
        Err(why) => return absent(STATUS, why),
    };
    let mut text = String::new();
    let mut last = None;
    for leaf in &leaves {
        if last.replace((&leaf.group, leaf.role)) != Some((&leaf.group, leaf.role)) {
            text.push_str(if text.is_empty() { "" } else { ", " });
            for word in leaf.role.into_iter().chain(
                // A single device is its own vdev.
                (leaf.group != leaf.path).then_some(leaf.group.as_str()),
            ) {
                text.push_str(word);
                text.push(' ');
            }
        } else {
            text.push(' ');
        }
        text.push_str(&leaf.path);
    }
    known(text, STATUS)
}

/// Every device that takes writes.
pub(in crate::facts) fn leaves(place: &Place, roots: &Roots) -> Result<Vec<Leaf>, String> {
    place.pool.get_or_init(|| ask(place, roots)).clone()
}

fn ask(place: &Place, roots: &Roots) -> Result<Vec<Leaf>, String> {
    let dataset = dataset(place)?;
    let pool = dataset.split(['/', '@']).next().unwrap_or_default();
    let leaves = parse(&roots.program("zpool", &["status", "-LP", pool])?);
    if leaves.is_empty() {
        return Err(format!("{STATUS} lists no device of {pool}"));
    }
    Ok(leaves)
}

fn parse(text: &str) -> Vec<Leaf> {
    let mut role = None;
    let mut is_used = true;
    let mut group = "";
    let mut leaves = Vec::new();
    let rows = text
        .lines()
        .skip_while(|line| line.trim() != "config:")
        .skip_while(|line| !line.trim_start().starts_with("NAME "))
        .skip(1)
        .take_while(|line| !line.trim().is_empty());
    for row in rows {
        let row = row.strip_prefix('\t').unwrap_or(row);
        let level = (row.len() - row.trim_start_matches(' ').len()) / 2;
        let mut words = row.split_whitespace();
        let Some(name) = words.next() else { continue };
        if level == 0 {
            (role, is_used) = match name {
                "logs" => (Some("log"), true),
                "special" => (Some("special"), true),
                "dedup" => (Some("dedup"), true),
                "cache" | "spares" => (None, false),
                // The pool itself.
                _ => (None, true),
            };
            continue;
        }
        if level == 1 {
            group = name;
        }
        let is_out = words.next().is_some_and(|state| OUT.contains(&state));
        if is_used && !is_out && name.starts_with('/') {
            leaves.push(Leaf {
                path: name.to_owned(),
                group: group.to_owned(),
                role,
            });
        }
    }
    leaves
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "  pool: tank
 state: DEGRADED
status: One or more devices could not be used
config:

\tNAME                STATE     READ WRITE CKSUM
\ttank                DEGRADED     0     0     0
\t  mirror-0          DEGRADED     0     0     0
\t    /dev/sda1       ONLINE       0     0     0
\t    replacing-1     DEGRADED     0     0     0
\t      /dev/sdb1     FAULTED      0     0     0  too many errors
\t      /dev/sdg1     ONLINE       0     0     0  (resilvering)
\t  /srv/disk.img     ONLINE       0     0     0
\tspecial
\t  mirror-2          ONLINE       0     0     0
\t    /dev/sdc1       ONLINE       0     0     0
\tlogs
\t  /dev/nvme0n1p1    ONLINE       0     0     0
\tcache
\t  /dev/nvme0n1p2    ONLINE       0     0     0
\tspares
\t  /dev/sdh          AVAIL

errors: No known data errors

  pool: other
config:
\tNAME STATE
\tother ONLINE
\t  /dev/sdz ONLINE
";

    #[test]
    fn every_device_that_takes_writes_and_no_other() {
        let told: Vec<_> = parse(STATUS)
            .into_iter()
            .map(|leaf| (leaf.path, leaf.group, leaf.role))
            .collect();
        let leaf = |path: &str, group: &str, role| (path.to_owned(), group.to_owned(), role);
        assert_eq!(
            told,
            [
                leaf("/dev/sda1", "mirror-0", None),
                leaf("/dev/sdg1", "mirror-0", None),
                leaf("/srv/disk.img", "/srv/disk.img", None),
                leaf("/dev/sdc1", "mirror-2", Some("special")),
                leaf("/dev/nvme0n1p1", "/dev/nvme0n1p1", Some("log")),
            ]
        );
    }

    #[test]
    fn what_is_no_table_has_no_devices() {
        for text in ["", "no pools available\n", "config:\n\n\ttank UNAVAIL\n"] {
            assert_eq!(parse(text), []);
        }
    }
}
