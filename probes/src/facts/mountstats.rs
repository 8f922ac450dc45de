//! What an NFS client sent its server: `/proc/self/mountstats`.
//!
//! A block per mount, led by a line in the words of proc_pid_mountstats(5), and in an NFS
//! block one line per operation with the number of requests first. A sync of little data
//! is one WRITE that asks for stable storage itself; COMMIT follows only where several
//! writes were needed, so both are counted. The counts are of the client's whole mount of
//! that server: other programs' requests are among them. With pNFS the data goes to other
//! servers, uncounted here, so nothing is told.

use super::{Facts, Roots, mountinfo::unescape};

/// Where it is read.
pub const PATH: &str = "/proc/self/mountstats";

/// Requests since the mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// WRITE requests.
    pub writes: u64,
    /// COMMIT requests.
    pub commits: u64,
}

impl Requests {
    /// `self - earlier`; a counter that went backwards counts 0.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            writes: self.writes.saturating_sub(earlier.writes),
            commits: self.commits.saturating_sub(earlier.commits),
        }
    }
}

/// The requests of the mount that the facts name; none where it is no NFS mount or is
/// not listed.
#[must_use]
pub fn read(facts: &Facts, roots: &Roots) -> Option<Requests> {
    let kind = facts.text("fs.type")?;
    if super::family(kind) != super::Family::Nfs {
        return None;
    }
    let point = facts.text("mount.point")?;
    let source = facts.text("mount.source")?;
    parse(&roots.bytes(PATH).ok()?, source, point)
}

/// The last block of this source and place: a later mount covers an earlier one.
fn parse(bytes: &[u8], source: &str, point: &str) -> Option<Requests> {
    let mut found = None;
    let mut inside = false;
    for line in String::from_utf8_lossy(bytes).lines() {
        if let Some(head) = line.strip_prefix("device ") {
            inside = is_of(head, source, point);
            if inside {
                found = Some(Requests::default());
            }
        } else if let (true, Some(requests)) = (inside, &mut found) {
            let Some((name, counts)) = line.trim().split_once(':') else {
                continue;
            };
            let count = || counts.split_whitespace().next()?.parse().ok();
            match name {
                "nfsv4" if counts.contains("pnfs=LAYOUT") => {
                    found = None;
                    inside = false;
                }
                "WRITE" => requests.writes = count().unwrap_or(0),
                "COMMIT" => requests.commits = count().unwrap_or(0),
                _ => {}
            }
        }
    }
    found
}

/// `server:/export mounted on /mnt with fstype nfs4 statvers=1.1`.
fn is_of(head: &str, source: &str, point: &str) -> bool {
    let plain = |field: &str| String::from_utf8_lossy(&unescape(field.as_bytes())).into_owned();
    let mut words = head.split(' ');
    words.next().map(plain).as_deref() == Some(source)
        && words.next() == Some("mounted")
        && words.next() == Some("on")
        && words.next().map(plain).as_deref() == Some(point)
        && words.nth(2).is_some_and(|kind| kind.starts_with("nfs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
device proc mounted on /proc with fstype proc
device server:/export mounted on /net with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2,hard
\tper-op statistics
\t       WRITE: 5 5 0 41000 600 0 3 4 0
\t      COMMIT: 2 2 0 200 100 0 1 1 0
device server:/my\\040data mounted on /mnt/a\\040b with fstype nfs statvers=1.1
\tper-op statistics
\t       WRITE: 70 70 0 41000 600 0 3 4 0
\t      COMMIT: 0 0 0 0 0 0 0 0 0
device server:/export mounted on /net with fstype nfs4 statvers=1.1
\tper-op statistics
\t       WRITE: 900 900 0 1 1 0 1 1 0
\t      COMMIT: 30 30 0 1 1 0 1 1 0
device server:/export mounted on /p with fstype nfs4 statvers=1.1
\tnfsv4:\tbm0=0xf8f3b77e,acl=0x3,sessions,pnfs=LAYOUT_NFSV4_1_FILES,lease_time=90
\tper-op statistics
\t       WRITE: 900 900 0 1 1 0 1 1 0
device server:/export mounted on /q with fstype nfs4 statvers=1.1
\tnfsv4:\tbm0=0xf8f3b77e,acl=0x3,sessions,pnfs=not configured,lease_time=90
\tper-op statistics
\t       WRITE: 7 7 0 1 1 0 1 1 0
device tmpfs mounted on /tmp with fstype tmpfs
\tWRITE: 1 1
";

    #[test]
    fn a_mount_is_found_by_source_and_place_and_the_last_covers_the_others() {
        let parse = |source, point| parse(TEXT.as_bytes(), source, point);
        let requests = |writes, commits| Some(Requests { writes, commits });
        assert_eq!(parse("server:/export", "/net"), requests(900, 30));
        assert_eq!(parse("server:/my data", "/mnt/a b"), requests(70, 0));
        assert_eq!(parse("server:/export", "/nets"), None);
        assert_eq!(parse("server:/export", "/p"), None);
        assert_eq!(parse("server:/export", "/q"), requests(7, 0));
        assert_eq!(parse("tmpfs", "/tmp"), None);
        assert_eq!(parse("proc", "/proc"), None);
    }

    #[test]
    fn counts_are_differences() {
        let at = |writes, commits| Requests { writes, commits };
        assert_eq!(at(9, 4).since(at(5, 4)), at(4, 0));
        assert_eq!(at(1, 1).since(at(5, 4)), at(0, 0));
    }
}
