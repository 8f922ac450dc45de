//! `--drop-caches zfs`, with programs that play `zfs` and `zpool` over an ext4 that really goes
//! away and comes back. They check their arguments: what OpenZFS would refuse, they refuse.

use std::env;

use libtest_mimic::Trial;
use walprobe_probes::report::Cold;
use walprobe_test_support::process::Invocation;
use walprobe_test_support::{Checked, trial};

use crate::{COLD, NEW, OTHER, Place, all_ended, ended, measured, row};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("zfs::export-and-import", export_and_import),
        trial("zfs::pool-in-use", pool_in_use),
        trial("zfs::import-fails", import_fails),
        trial("zfs::would-not-come-back", would_not_come_back),
        trial("zfs::not-zfs", not_zfs),
    ]
}

const ZFS: &str = r#"
case "$*" in
  "list -H -o name $POINT"/*) echo tank/wal;;
  "get -H -o value mountpoint,keystatus tank/wal") printf '%s\n%s\n' "${FAKE_MOUNTPOINT-$POINT}" "${FAKE_KEY--}";;
  *) echo "unrecognized command '$*'" >&2; exit 2;;
esac
"#;

const ZPOOL: &str = r#"
case "$*" in
  "list -v -H -P tank") printf 'tank\t1G\n\t%s/image\t1G\n' "$WORK";;
  "list -H tank") mountpoint -q "$POINT";;
  "get -H -o value altroot tank") echo -;;
  "export tank")
    if [ -n "${FAKE_BUSY-}" ]; then echo "cannot export 'tank': pool is busy" >&2; exit 1; fi
    umount "$POINT";;
  "import -d $WORK tank")
    if [ -n "${FAKE_LOST-}" ]; then echo "cannot import 'tank': no such pool available" >&2; exit 1; fi
    mount -t ext4 "$DEVICE" "$POINT";;
  *) echo "unrecognized command '$*'" >&2; exit 2;;
esac
"#;

fn place() -> Checked<Place> {
    let place = Place::new()?;
    place.script("zfs", ZFS)?;
    place.script("zpool", ZPOOL)?;
    Ok(place)
}

fn walprobe(place: &Place) -> Invocation {
    let path = env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", place.mounted.work().display());
    place
        .walprobe()
        .args(["--drop-caches", "zfs"])
        .env("PATH", path)
}

fn export_and_import() -> Checked {
    let place = place()?;
    let document = place.run(walprobe(&place))?;
    measured(&document, COLD)?;
    measured(&document, NEW)?;
    measured(&document, OTHER)?;
    let cold = row(&document, COLD)?;
    let proof = cold.cold_proof.clone().unwrap_or_default();
    if cold.cold != Some(Cold::Proven) || proof.hook != "zfs" {
        return Err(format!("{:?}, {proof:?}", cold.cold).into());
    }
    let calls = place.calls();
    let turns: Vec<&str> = calls
        .iter()
        .filter_map(|call| match call.strip_prefix("zpool ")? {
            "export tank" => Some("export"),
            import if import.starts_with("import ") => Some("import"),
            _ => None,
        })
        .collect();
    let in_turn = turns.chunks(2).all(|pair| pair == ["export", "import"]);
    if turns.len() < 4 || !in_turn {
        return Err(format!("calls: {calls:?}").into());
    }
    Ok(place.mounted.undo()?)
}

fn pool_in_use() -> Checked {
    let place = place()?;
    let document = place.run(walprobe(&place).env("FAKE_BUSY", "1"))?;
    all_ended(&document, "need-hook", &["pool is busy"])?;
    Ok(place.mounted.undo()?)
}

fn import_fails() -> Checked {
    let place = place()?;
    let document = place.run_only(walprobe(&place).env("FAKE_LOST", "1"), 3)?;
    let words = ["no such pool", "run zpool import -d", "directory is gone"];
    ended(&document, COLD, "need-hook", &words)?;
    if document.report.targets[0].left_behind.len() != 1 {
        return Err("nothing is said to be left behind".into());
    }
    place.mount()?;
    Ok(place.mounted.undo()?)
}

fn would_not_come_back() -> Checked {
    let place = place()?;
    for (name, value, word) in [
        ("FAKE_MOUNTPOINT", "legacy", "not mounted by zfs"),
        ("FAKE_KEY", "available", "encrypted"),
    ] {
        let document = place.run(walprobe(&place).env(name, value))?;
        all_ended(&document, "need-hook", &[word])?;
    }
    if let Some(call) = place.calls().iter().find(|c| c.contains("export")) {
        return Err(format!("called all the same: {call}").into());
    }
    Ok(place.mounted.undo()?)
}

/// The program says that no dataset holds the directory.
fn not_zfs() -> Checked {
    let place = place()?;
    let body = "echo \"cannot open: not a ZFS filesystem\" >&2\nexit 1\n";
    place.script("zfs", body)?;
    let document = place.run(walprobe(&place))?;
    all_ended(&document, "filesystem", &["not a ZFS filesystem"])?;
    Ok(place.mounted.undo()?)
}
