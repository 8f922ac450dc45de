//! What a trial needs of the machine, and what follows where it is missing.
//!
//! A missing means is a skip that says what is missing. `WALPROBE_REQUIRE`, a
//! comma-separated list of means, turns it into a failure: a gate that must not
//! pass by skipping sets it. The means: `loop` (root, loop devices, mount and the
//! mkfs programs), `root` (only root), `debug` (a build with debug assertions, in
//! which the pause points exist), `blkio` (the block-I/O controller of cgroup v1), `zfs` (qemu and
//! the image that `tests/lab/build` makes), `fuse` (root and `/dev/fuse`).

use std::env;
use std::fmt::Display;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use libtest_mimic::{Completion, Failed, Trial};

/// Why a trial did not pass.
#[derive(Clone, Debug)]
pub enum Problem {
    /// The machine lacks something.
    Missing {
        /// The means, as `WALPROBE_REQUIRE` names it.
        means: &'static str,
        /// What exactly is missing.
        why: String,
    },
    /// Something is not as it must be.
    Failed(String),
}

/// What a trial's body returns.
pub type Checked<T = ()> = Result<T, Problem>;

impl<E: Display> From<E> for Problem {
    fn from(error: E) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Problem {
    /// A missing means.
    pub fn missing(means: &'static str, why: impl Display) -> Self {
        Self::Missing {
            means,
            why: why.to_string(),
        }
    }

    fn conclude(self, required: &str) -> Result<Completion, Failed> {
        match self {
            Self::Failed(text) => Err(text.into()),
            Self::Missing { means, why } if names(required, means) => Err(format!(
                "{why}, and WALPROBE_REQUIRE={required} does not let this be a skip"
            )
            .into()),
            Self::Missing { why, .. } => Ok(Completion::ignored_with(why)),
        }
    }
}

/// A named trial whose missing means is a skip, or a failure where it is required.
pub fn trial(name: impl Into<String>, body: impl FnOnce() -> Checked + Send + 'static) -> Trial {
    Trial::ignorable_test(name, move || match body() {
        Ok(()) => Ok(Completion::Completed),
        Err(problem) => problem.conclude(&env::var("WALPROBE_REQUIRE").unwrap_or_default()),
    })
}

fn names(list: &str, means: &str) -> bool {
    list.split(',').any(|one| one.trim() == means)
}

/// Root, in the sense that mounting is allowed.
///
/// # Errors
/// A missing means `loop` (or what `means` says).
pub fn privileged(means: &'static str) -> Checked {
    const CAP_SYS_ADMIN: u32 = 21;
    if !rustix::process::geteuid().is_root() {
        return Err(Problem::missing(means, "not root"));
    }
    let status = fs::read_to_string("/proc/self/status")?;
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0);
    if effective >> CAP_SYS_ADMIN & 1 == 0 {
        return Err(Problem::missing(means, "root without CAP_SYS_ADMIN"));
    }
    Ok(())
}

/// Loop devices can be made and mounted.
///
/// # Errors
/// A missing means `loop`.
pub fn loop_devices() -> Checked {
    privileged("loop")?;
    for program in ["losetup", "mount", "umount"] {
        tool(program)?;
    }
    if !fs::exists("/dev/loop-control")? {
        load_module("loop");
    }
    if !fs::exists("/dev/loop-control")? {
        return Err(Problem::missing("loop", "no /dev/loop-control"));
    }
    Ok(())
}

/// A FUSE filesystem can be mounted by mount(2) and served by this process.
///
/// # Errors
/// A missing means `fuse`.
pub fn fuse() -> Checked {
    privileged("fuse")?;
    if !fs::exists("/dev/fuse")? {
        load_module("fuse");
    }
    if !fs::exists("/dev/fuse")? || !kernel_knows("fuse") {
        return Err(Problem::missing("fuse", "this kernel has no FUSE"));
    }
    Ok(())
}

/// The kernel has the filesystem type, perhaps after loading a module.
///
/// # Errors
/// A missing means `loop`.
pub fn kernel_filesystem(name: &str) -> Checked {
    if kernel_knows(name) {
        return Ok(());
    }
    load_module(name);
    if kernel_knows(name) {
        return Ok(());
    }
    Err(Problem::missing(
        "loop",
        format!("this kernel has no {name}"),
    ))
}

fn kernel_knows(name: &str) -> bool {
    fs::read_to_string("/proc/filesystems").is_ok_and(|list| {
        list.lines()
            .any(|line| line.split_whitespace().next_back() == Some(name))
    })
}

fn load_module(name: &str) {
    // Whether it worked is asked of the kernel afterwards.
    let _ = Command::new("modprobe").arg("-q").arg(name).output();
}

/// Where a program is: in `PATH`, or where administration programs live.
///
/// # Errors
/// A missing means `loop`, with the package that brings the program.
pub fn tool(program: &str) -> Checked<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| {
            let package = match program {
                "mkfs.xfs" | "xfs_io" => "xfsprogs",
                "mkfs.btrfs" => "btrfs-progs",
                "mkfs.ext4" => "e2fsprogs",
                _ => "util-linux",
            };
            Problem::missing("loop", format!("no {program} (package {package})"))
        })
}

/// The binary under test has pause points: it was built with debug assertions,
/// as the test was.
///
/// # Errors
/// A missing means `debug`.
pub fn pause_points() -> Checked {
    if cfg!(debug_assertions) {
        Ok(())
    } else {
        Err(Problem::missing(
            "debug",
            "a release build has no pause points",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_means_is_a_skip_unless_required() {
        let missing = Problem::missing("loop", "no mkfs.xfs");
        assert!(matches!(
            missing.clone().conclude(""),
            Ok(Completion::Ignored { reason: Some(reason) }) if reason == "no mkfs.xfs"
        ));
        assert!(matches!(
            missing.clone().conclude("fuse"),
            Ok(Completion::Ignored { .. })
        ));
        let failed = missing.conclude("fuse, loop").err();
        assert!(
            failed
                .and_then(|failed| failed.message().map(str::to_owned))
                .is_some_and(|text| text.contains("no mkfs.xfs"))
        );
    }

    #[test]
    fn a_failure_is_never_a_skip() {
        let failed: Problem = "flushes 2.0".into();
        assert!(failed.conclude("").is_err());
    }

    #[test]
    fn a_tool_that_does_not_exist_is_missing() {
        assert!(matches!(
            tool("mkfs.no-such-filesystem"),
            Err(Problem::Missing { means: "loop", .. })
        ));
    }
}
