//! What the filesystem is to do, as text: one line an order, `#` begins a comment.
//!
//! The README has the table of orders. A script is read whole before anything is mounted, and
//! a line that is not understood is an error with its number.

use std::time::Duration;

use rustix::io::Errno;

/// A kind of call, as the program that mounts it sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// A look-up of a name.
    Lookup,
    /// stat(2) and its kin.
    Getattr,
    /// truncate(2), chmod(2), chown(2), utimensat(2).
    Setattr,
    /// open(2) of a file that is there.
    Open,
    /// open(2) that makes the file.
    Create,
    /// Part of a read(2) that the page cache did not answer.
    Read,
    /// Part of a write(2), at most 1 MiB.
    Write,
    /// fsync(2).
    Fsync,
    /// fdatasync(2).
    Fdatasync,
    /// The sync that a write with `O_DSYNC` or `RWF_DSYNC` asks for.
    Odsync,
    /// The sync that a write with `O_SYNC` or `RWF_SYNC` asks for.
    Osync,
    /// fsync(2) of a directory.
    Fsyncdir,
    /// close(2).
    Close,
    /// fallocate(2).
    Fallocate,
    /// unlink(2).
    Unlink,
    /// rename(2).
    Rename,
    /// mkdir(2).
    Mkdir,
    /// rmdir(2).
    Rmdir,
    /// readdir(3).
    Readdir,
    /// statfs(2).
    Statfs,
    /// Reading a cold record before a part of it is written; a price only.
    RecordRead,
}

impl Call {
    const NAMES: &[(&'static str, Self)] = &[
        ("lookup", Self::Lookup),
        ("getattr", Self::Getattr),
        ("setattr", Self::Setattr),
        ("open", Self::Open),
        ("create", Self::Create),
        ("read", Self::Read),
        ("write", Self::Write),
        ("fsync", Self::Fsync),
        ("fdatasync", Self::Fdatasync),
        ("odsync", Self::Odsync),
        ("osync", Self::Osync),
        ("fsyncdir", Self::Fsyncdir),
        ("close", Self::Close),
        ("fallocate", Self::Fallocate),
        ("unlink", Self::Unlink),
        ("rename", Self::Rename),
        ("mkdir", Self::Mkdir),
        ("rmdir", Self::Rmdir),
        ("readdir", Self::Readdir),
        ("statfs", Self::Statfs),
        ("record-read", Self::RecordRead),
    ];

    fn named(name: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, call)| *call)
            .ok_or_else(|| format!("{name} is not a call"))
    }

    /// Its name in a script.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(_, call)| *call == self);
        found.map_or("", |(name, _)| name)
    }

    /// It makes something of a file durable.
    pub(crate) fn is_sync(self) -> bool {
        matches!(
            self,
            Self::Fsync | Self::Fdatasync | Self::Odsync | Self::Osync
        )
    }

    /// It changes what is stored.
    pub(crate) fn changes(self) -> bool {
        matches!(
            self,
            Self::Setattr
                | Self::Create
                | Self::Write
                | Self::Fallocate
                | Self::Unlink
                | Self::Rename
                | Self::Mkdir
                | Self::Rmdir
        )
    }
}

/// Which calls of a kind an order is for, counted from 1 since the mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Every one.
    Always,
    /// This one.
    At(u64),
    /// This one and all after it.
    From(u64),
}

impl When {
    pub(crate) fn holds(self, number: u64) -> bool {
        match self {
            Self::Always => true,
            Self::At(at) => number == at,
            Self::From(from) => number >= from,
        }
    }
}

/// What happens to a call instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails.
    Errno(Errno),
    /// Half of what was to be written is.
    Short,
    /// No answer comes until the filesystem is let go.
    Hang,
    /// The filesystem is read-only from now on, and the call is the first to learn it.
    ReadOnly,
}

/// Which call learns that the filesystem is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The write or fallocate that finds no room.
    Write,
    /// The sync after it.
    Sync,
    /// The close after it.
    Close,
}

/// Where O_DIRECT is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direct {
    /// Nowhere.
    Taken,
    /// At open, as by filesystems without it.
    RefusedAtOpen,
    /// Open takes it, each write and read fails with EINVAL.
    RefusedAtUse,
}

/// What a call costs: a wait before its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// For the call.
    pub call: Duration,
    /// Besides, for each MiB that it makes durable or moves.
    pub per_mib: Duration,
}

impl Price {
    pub(crate) fn of(self, bytes: u64) -> Duration {
        let mib = bytes as f64 / f64::from(1 << 20);
        self.call + self.per_mib.mul_f64(mib)
    }
}

/// A whole script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Record size in bytes: what is read whole before a part of it is written.
    pub record_bytes: u64,
    /// What stat(2) shows as `st_blksize`.
    pub blksize_bytes: u32,
    /// What statfs(2) shows as `f_bsize` and `f_frsize`.
    pub bsize_bytes: u32,
    /// Room for data.
    pub size_bytes: u64,
    /// Room that statfs(2) shows, if that is not what there is: a quota, or space that another
    /// takes.
    pub shown_bytes: Option<u64>,
    /// Who learns that it is used up.
    pub full: Full,
    /// What is done with O_DIRECT.
    pub direct: Direct,
    /// What calls cost.
    pub prices: Vec<(Call, Price)>,
    /// Syncs that answer and do nothing.
    pub lies: Vec<Call>,
    /// What happens to calls instead.
    pub faults: Vec<(Call, When, Fault)>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            record_bytes: 4 << 10,
            blksize_bytes: 4 << 10,
            bsize_bytes: 4 << 10,
            size_bytes: 512 << 20,
            shown_bytes: None,
            full: Full::Write,
            direct: Direct::Taken,
            prices: Vec::new(),
            lies: Vec::new(),
            faults: Vec::new(),
        }
    }
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// `LINE: what is wrong`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut script = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<_> = line.split_whitespace().collect();
            script
                .order(&words)
                .map_err(|error| format!("{}: {error}", index + 1))?;
        }
        Ok(script)
    }

    fn order(&mut self, words: &[&str]) -> Result<(), String> {
        match *words {
            [] => {}
            ["record", size] => self.record_bytes = power_of_two(size)?,
            ["blksize", size] => self.blksize_bytes = narrow(power_of_two(size)?)?,
            ["bsize", size] => self.bsize_bytes = narrow(power_of_two(size)?)?,
            ["size", size] => self.size_bytes = bytes(size)?,
            ["shown", size] => self.shown_bytes = Some(bytes(size)?),
            ["full", "write"] => self.full = Full::Write,
            ["full", "sync"] => self.full = Full::Sync,
            ["full", "close"] => self.full = Full::Close,
            ["direct", "taken"] => self.direct = Direct::Taken,
            ["direct", "refused-at-open"] => self.direct = Direct::RefusedAtOpen,
            ["direct", "refused-at-use"] => self.direct = Direct::RefusedAtUse,
            ["cost", call, price, ref more @ ..] => {
                let per_mib = match *more {
                    [] => Duration::ZERO,
                    ["+", per] => duration(per.strip_suffix("/MiB").ok_or("no /MiB")?)?,
                    _ => return Err(format!("{} is not a price", more.join(" "))),
                };
                let call_price = duration(price)?;
                let price = Price {
                    call: call_price,
                    per_mib,
                };
                self.prices.push((Call::named(call)?, price));
            }
            ["lie", call] => {
                let call = Call::named(call)?;
                if !call.is_sync() && call != Call::Fsyncdir {
                    return Err(format!("{} makes nothing durable", call.name()));
                }
                self.lies.push(call);
            }
            ["fail", call, errno, ref when @ ..] => {
                let fault = if errno == "short" {
                    Fault::Short
                } else {
                    Fault::Errno(errno_named(errno)?)
                };
                self.fault(call, fault, when)?;
            }
            ["hang", call, ref when @ ..] => self.fault(call, Fault::Hang, when)?,
            ["read-only", call, ref when @ ..] => self.fault(call, Fault::ReadOnly, when)?,
            [first, ..] => return Err(format!("{first} is not understood here")),
        }
        Ok(())
    }

    fn fault(&mut self, call: &str, fault: Fault, when: &[&str]) -> Result<(), String> {
        let number = |text: &str| match text.parse() {
            Ok(0) | Err(_) => Err(format!("{text} is not a number from 1 on")),
            Ok(number) => Ok(number),
        };
        let when = match *when {
            [] => When::Always,
            ["at", n] => When::At(number(n)?),
            ["from", n] => When::From(number(n)?),
            _ => return Err(format!("{} is not a time", when.join(" "))),
        };
        let call = Call::named(call)?;
        if call == Call::RecordRead || (fault == Fault::Short && call != Call::Write) {
            return Err(format!("{} cannot do that", call.name()));
        }
        self.faults.push((call, when, fault));
        Ok(())
    }

    pub(crate) fn price(&self, call: Call, bytes: u64) -> Duration {
        let of = self.prices.iter().filter(|(priced, _)| *priced == call);
        of.map(|(_, price)| price.of(bytes)).sum()
    }
}

fn errno_named(name: &str) -> Result<Errno, String> {
    const ERRNOS: &[(&str, Errno)] = &[
        ("EIO", Errno::IO),
        ("ENOSPC", Errno::NOSPC),
        ("EDQUOT", Errno::DQUOT),
        ("EINTR", Errno::INTR),
        ("EINVAL", Errno::INVAL),
        ("EOPNOTSUPP", Errno::OPNOTSUPP),
        ("ENOSYS", Errno::NOSYS),
        ("EROFS", Errno::ROFS),
        ("EACCES", Errno::ACCESS),
        ("EPERM", Errno::PERM),
        ("ESTALE", Errno::STALE),
        ("ETIMEDOUT", Errno::TIMEDOUT),
    ];
    let found = ERRNOS.iter().find(|(known, _)| *known == name);
    found
        .map(|(_, errno)| *errno)
        .ok_or_else(|| format!("{name} is not an errno that is known here"))
}

/// `4KiB`, `1MiB`, `512`.
fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: &[(&str, u32)] = &[("KiB", 10), ("MiB", 20), ("GiB", 30), ("", 0)];
    UNITS
        .iter()
        .find_map(|(unit, shift)| {
            let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
            number.checked_shl(*shift)
        })
        .ok_or_else(|| format!("{text} is not a number of bytes"))
}

fn power_of_two(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        size if size.is_power_of_two() && (512..=1 << 20).contains(&size) => Ok(size),
        _ => Err(format!("{text} is not a power of two from 512 to 1 MiB")),
    }
}

fn narrow(size: u64) -> Result<u32, String> {
    u32::try_from(size).map_err(|error| error.to_string())
}

/// `8ms`, `20us`.
fn duration(text: &str) -> Result<Duration, String> {
    let parse = |number: &str| number.parse::<u64>().ok();
    text.strip_suffix("us")
        .and_then(parse)
        .map(Duration::from_micros)
        .or_else(|| {
            text.strip_suffix("ms")
                .and_then(parse)
                .map(Duration::from_millis)
        })
        .ok_or_else(|| format!("{text} is not a time in us or ms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_read() -> Result<(), String> {
        let script = Script::parse(
            "# A slow one.\nrecord 128KiB\nfull sync\ncost fdatasync 8ms + 64ms/MiB\n\
             lie fsync\nfail write EIO at 3 # once\nfail write short from 9\nhang odsync at 2\n",
        )?;
        assert_eq!(script.record_bytes, 128 << 10);
        assert_eq!(script.full, Full::Sync);
        assert_eq!(
            script.price(Call::Fdatasync, 1 << 19),
            Duration::from_millis(8 + 32)
        );
        assert_eq!(script.price(Call::Fsync, 1 << 19), Duration::ZERO);
        assert_eq!(script.lies, [Call::Fsync]);
        let write = |when, fault| (Call::Write, when, fault);
        assert_eq!(
            script.faults,
            [
                write(When::At(3), Fault::Errno(Errno::IO)),
                write(When::From(9), Fault::Short),
                (Call::Odsync, When::At(2), Fault::Hang),
            ]
        );
        Ok(())
    }

    #[test]
    fn what_is_not_understood_is_said_with_its_line() {
        for (line, said) in [
            ("recrod 4KiB", "recrod is not understood"),
            ("record 5000", "not a power of two"),
            ("record 2MiB", "not a power of two"),
            ("cost fsync 8", "not a time"),
            ("cost fsync 8ms + 1ms", "no /MiB"),
            ("fail write EWHAT", "EWHAT is not an errno"),
            ("fail fsync short", "fsync cannot do that"),
            ("fail write EIO at 0", "0 is not a number"),
            ("fail write EIO after 3", "after 3 is not a time"),
            ("lie write", "write makes nothing durable"),
            ("hang sleep at 1", "sleep is not a call"),
        ] {
            let error = Script::parse(&format!("\n{line}\n")).err();
            let error = error.unwrap_or_default();
            assert!(
                error.starts_with("2: ") && error.contains(said),
                "{line}: {error:?}"
            );
        }
    }
}
