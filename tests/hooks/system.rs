//! `--drop-caches system`: the caches of the whole host.

use libtest_mimic::Trial;
use walprobe_probes::report::Cold;
use walprobe_test_support::process::Invocation;
use walprobe_test_support::{Checked, means, trial};

use crate::{COLD, NEW, OTHER, Place, all_ended, exe, measured, row};

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
    let before = drops()?;
    let document = place.run(place.walprobe_for("40").args(["--drop-caches", "system"]))?;
    let drops = drops()? - before;
    measured(&document, COLD)?;
    measured(&document, NEW)?;
    measured(&document, OTHER)?;
    let cold = row(&document, COLD)?;
    let proof = cold.cold_proof.clone().unwrap_or_default();
    if cold.cold != Some(Cold::Proven) || proof.hook != "system" {
        return Err(format!("{:?}, {proof:?}", cold.cold).into());
    }
    if !cold.doubts.iter().any(|d| d.code == "whole-system-drop") {
        return Err(format!("no doubt: {:?}", cold.doubts).into());
    }
    // One before each operation of each case of the cold comparison, and in no other.
    let rows = &document.report.targets[0].rows;
    let of = |comparison: &str| -> u64 {
        let rows = rows.iter().filter(|r| r.comparison == comparison);
        rows.map(|r| r.ops).sum()
    };
    let (cold, warm) = (of("life-cold"), of("life"));
    // Each of the three cases has one more, which is not counted.
    let expected = cold + 3;
    if drops < expected || drops >= expected + warm {
        return Err(format!("{drops} drops, {expected} expected; {warm} warm lives").into());
    }
    for row in rows.iter().filter(|r| r.case.starts_with("new")) {
        let doubted = row.doubts.iter().any(|d| d.code == "whole-system-drop");
        if row.cold.is_some() || doubted != (row.comparison == "life-cold") {
            let id = format!("{}/{}", row.comparison, row.case);
            return Err(format!("{id}: cold {:?}, {:?}", row.cold, row.doubts).into());
        }
    }
    Ok(place.mounted.undo()?)
}

/// How often the page cache was dropped since boot, as the kernel counts.
fn drops() -> Result<u64, String> {
    let text = std::fs::read_to_string("/proc/vmstat").map_err(|e| e.to_string())?;
    text.lines()
        .find_map(|line| line.strip_prefix("drop_pagecache ")?.parse().ok())
        .ok_or_else(|| "/proc/vmstat has no drop_pagecache".to_owned())
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
            "10",
            "--segment-size",
            "1MiB",
        ])
        .args(["--only", "recycle/life", "--only", "recycle/life-cold"])
        .args(["--format", "json", "--drop-caches", "system"]);
    let document = place.run(invocation)?;
    all_ended(
        &document,
        "need-hook",
        &["drop_caches: Read-only file system"],
    )?;
    Ok(place.mounted.undo()?)
}
