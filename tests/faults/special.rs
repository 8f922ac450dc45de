//! The trials that do something while walprobe runs, or more than one run.

use std::time::Duration;

use libtest_mimic::Trial;
use walprobe_probes::report::RowStatus;
use walprobe_test_support::document::id;
use walprobe_test_support::stopwatch::Stopwatch;
use walprobe_test_support::{Checked, trial};

use crate::cases::{changes, says};
use crate::place::{LIMIT, Place, document};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_call_that_never_returns", never_returns),
        trial("a_cold_record_costs_20_ms", cold_record),
        trial("cheap_odsync_is_recommended", cheap_odsync),
    ]
}

const OP_TIMEOUT_S: u64 = 3;

/// The watchdog's time, the run's own, and what a busy machine may add.
const BACK_WITHIN: Duration = Duration::from_secs(OP_TIMEOUT_S + 20 + 10);

fn never_returns() -> Checked {
    let place = Place::new("hang odsync at 30", false)?;
    let timeout = OP_TIMEOUT_S.to_string();
    let arguments = [
        "sync",
        "--only",
        "sync/commit",
        "--time",
        "20",
        "--op-timeout",
        &timeout,
    ];
    let watch = Stopwatch::start();
    let back = place.walprobe(&arguments).run(BACK_WITHIN);
    let took = watch.elapsed();
    place.faultfs.let_go();
    let finished = back.map_err(|error| format!("after {took:?}: {error}"))?;
    let document = document(&finished, 0)?;
    says(
        &document,
        &[
            "durability/check/*.status = ok",
            "sync/commit/open_datasync.status = fault",
            "sync/commit/open_datasync.reason_code = no-answer",
            "finding * absent",
        ],
        "sync/commit/open_datasync.status = ok",
    )?;
    changes(&document, &[])?;
    let target = &document.report.targets[0];
    if let Some(row) = target
        .rows
        .iter()
        .find(|row| row.reason_code.as_deref() == Some("no-answer") && row.status == RowStatus::Ok)
    {
        return Err(format!("{} is ok and had no answer", id(row)).into());
    }
    if target.left_behind.is_empty() || !finished.stderr.contains("walprobe clean") {
        return Err(format!("left {:?}, told {}", target.left_behind, finished.stderr).into());
    }
    place.walprobe_clean().run(LIMIT)?.expect_code(0)?;
    let left = std::fs::read_dir(place.point())?.count();
    if left != 0 {
        return Err(format!("{left} entries are left after walprobe clean").into());
    }
    Ok(place.undo()?)
}

fn cold_record() -> Checked {
    let place = Place::new("record 8KiB\ncost record-read 20ms", true)?;
    let drop = place.work.path().join("drop");
    // The page cache forgets the file by GNU dd's `nocache`, faultfs by its control file.
    let text = format!(
        "#!/bin/sh\nset -e\ndd of=\"$WALPROBE_FILE\" oflag=nocache conv=notrunc,fdatasync count=0 \
         status=none\nprintf drop >'{}'\n",
        place.point().join(walprobe_faultfs::CONTROL).display()
    );
    std::fs::write(&drop, text)?;
    let arguments = ["recycle", "--only", "recycle/standby", "--time", "90"];
    let finished = place
        .walprobe(&arguments)
        .args(["--drop-caches-cmd", "/bin/sh"])
        .arg(drop)
        .run(LIMIT)?;
    let counts = place.faultfs.counts();
    let document =
        document(&finished, 0).map_err(|error| format!("{error}\ncounted:\n{}", counts.text()))?;
    place.undo()?;
    says(
        &document,
        &[
            "recycle/standby/cold.cold = proven",
            "recycle/standby/cold.ratio_low >= 1.1",
            "recycle/standby/cold.max_us >= 20000",
        ],
        "recycle/standby/cold.verdict in faster tie",
    )?;
    Ok(changes(&document, &[])?)
}

/// Where a write with O_DSYNC really costs least, that is what is recommended. A sync costs by
/// what it makes durable, so that 16 syncs of `bulk` cost no more than one of all.
fn cheap_odsync() -> Checked {
    let price = "12ms + 80ms/MiB";
    let script = format!("cost fdatasync {price}\ncost fsync {price}\ncost osync {price}");
    let place = Place::new(&script, true)?;
    let finished = place
        .walprobe(&[
            "sync",
            "--only",
            "sync/{commit,commit-64k,bulk}/{fdatasync,open_datasync}",
            "--time",
            "150",
        ])
        .run(LIMIT)?;
    place.undo()?;
    let document = document(&finished, 0)?;
    says(
        &document,
        &[
            "durability.verdict = flushes-seen",
            "ground user-space-filesystem.weight = limits",
            "sync/commit/open_datasync.verdict = faster",
            "sync/commit/open_datasync.flushes_per_op >= 0.9",
            "finding wal_sync_method.action = change",
            "finding wal_sync_method.value = open_datasync",
            "finding wal_sync_method.confidence != high",
        ],
        "finding wal_sync_method.value = fdatasync",
    )?;
    Ok(changes(&document, &[("wal_sync_method", "open_datasync")])?)
}
