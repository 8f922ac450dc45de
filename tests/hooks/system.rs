//! `--drop-caches system`: the caches of the whole host.

use libtest_mimic::Trial;
use walprobe_probes::report::Cold;
use walprobe_test_support::process::Invocation;
use walprobe_test_support::{Checked, means, trial};

use crate::{COLD, OTHER, Place, ended, exe, measured, row};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("system::drops-everything", drops_everything),
        trial("system::read-only", read_only),
    ]
}

fn drops_everything() -> Checked {
    let place = Place::new()?;
    if std::fs::File::options()
        .write(true)
        .open("/proc/sys/vm/drop_caches")
        .is_err()
    {
        let why = "/proc/sys/vm/drop_caches cannot be written here";
        return Err(walprobe_test_support::Problem::missing("root", why));
    }
    let document = place.run(place.walprobe_for("25").args(["--drop-caches", "system"]))?;
    measured(&document, COLD)?;
    let cold = row(&document, COLD)?;
    let proof = cold.cold_proof.clone().unwrap_or_default();
    if cold.cold != Some(Cold::Proven) || proof.hook != "system" {
        return Err(format!("{:?}, {proof:?}", cold.cold).into());
    }
    if !cold.doubts.iter().any(|d| d.code == "whole-system-drop") {
        return Err(format!("no doubt: {:?}", cold.doubts).into());
    }
    Ok(place.mounted.undo()?)
}

/// As in most containers: root, and `/proc/sys` read-only.
fn read_only() -> Checked {
    means::tool("unshare")?;
    let place = Place::new()?;
    let script = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && \
                  exec \"$@\"";
    let invocation = Invocation::new(means::tool("unshare")?)
        .args(["--mount", "/bin/sh", "-c", script, "sh"])
        .arg(exe())
        .arg("recycle")
        .arg(place.dir())
        .args([
            "--profile",
            "quick",
            "--time",
            "3",
            "--segment-size",
            "1MiB",
        ])
        .args(["--only", "recycle/life-cold/*", "--format", "json"])
        .args(["--drop-caches", "system"]);
    let document = place.run(invocation)?;
    ended(
        &document,
        "need-hook",
        &["drop_caches: Read-only file system"],
    )?;
    measured(&document, OTHER)?;
    Ok(place.mounted.undo()?)
}
