//! The cases that are a script, a run, and what its report must say.

use walprobe_test_support::document::Document;
use walprobe_test_support::expect::{Expectation, Outcome};
use walprobe_test_support::{Checked, guards};

use crate::place::{LIMIT, Place, document};

/// One trial.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    script: &'static str,
    on_device: bool,
    arguments: &'static [&'static str],
    /// walprobe's exit code.
    code: i32,
    must: &'static [&'static str],
    /// Must be asked and must fail.
    turned: &'static str,
}

const COMMIT: &[&str] = &["sync", "--only", "sync/commit", "--time", "5"];
const CREATE: &[&str] = &["prealloc", "--only", "prealloc/create", "--time", "8"];

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "an_honest_program_cannot_be_looked_into",
        script: "blksize 64KiB\nbsize 32KiB",
        on_device: false,
        arguments: &["all", "--profile", "quick", "--time", "12"],
        code: 0,
        must: &[
            "durability.verdict = not-provable",
            "ground user-space-filesystem.weight = limits",
            "fact fs.type = fuse",
            "fact fs.subtype = faultfs",
            "fact statx.blksize_bytes = 65536",
            "fact fs.block_bytes = 32768",
            "durability/check/*.status = ok",
            "sync/commit/*.status = ok",
        ],
        turned: "fact statx.blksize_bytes = 4096",
    },
    Case {
        name: "flushes_of_8_ms",
        script: "cost fdatasync 8ms\ncost fsync 8ms\ncost odsync 8ms\ncost osync 8ms",
        on_device: false,
        arguments: COMMIT,
        code: 0,
        must: &[
            "durability/check/fdatasync.phases.sync.p50_us >= 8000",
            "sync/commit/*.p50_us >= 8000",
            "sync/commit/*.verdict in baseline tie inconclusive",
        ],
        turned: "sync/commit/open_datasync.verdict = faster",
    },
    Case {
        name: "cheap_odsync_where_nothing_can_be_proven",
        script: "cost fdatasync 2ms\ncost fsync 2ms\ncost osync 2ms",
        on_device: false,
        arguments: COMMIT,
        code: 0,
        must: &[
            "durability.verdict = not-provable",
            "sync/commit/open_datasync.verdict = faster",
            "sync/commit/open_datasync.ratio_high <= 0.9",
            "finding wal_sync_method absent",
            "not_tested wal_sync_method present",
        ],
        turned: "finding wal_sync_method present",
    },
    Case {
        name: "dear_odsync",
        script: "cost odsync 8ms\ncost osync 8ms",
        on_device: false,
        arguments: COMMIT,
        code: 0,
        must: &[
            "sync/commit/open_datasync.verdict = slower",
            "sync/commit/open_sync.verdict = slower",
            "sync/commit/open_datasync.ratio_low >= 1.5",
        ],
        turned: "sync/commit/open_datasync.verdict in faster tie",
    },
    Case {
        name: "a_sync_that_lies_on_a_device",
        script: "lie fdatasync\nlie fsync\nlie odsync\nlie osync",
        on_device: true,
        arguments: COMMIT,
        code: 0,
        must: &[
            "durability.verdict = no-flush-seen",
            "durability/check/fdatasync.flushes = 0",
            "ground device-flushes.weight = against",
            "finding wal_sync_method absent",
            "not_tested *.reason_code = no-flush-seen",
        ],
        turned: "durability.verdict = flushes-seen",
    },
    Case {
        name: "only_odsync_lies",
        script: "lie odsync\ncost fdatasync 4ms\ncost fsync 4ms\ncost osync 4ms",
        on_device: true,
        arguments: &[
            "sync",
            "--only",
            "sync/commit/{fdatasync,open_datasync}",
            "--time",
            "10",
        ],
        code: 0,
        must: &[
            "durability.verdict = flushes-seen",
            "sync/commit/open_datasync.verdict = faster",
            "sync/commit/open_datasync.flushes_per_op <= 0.1",
            "sync/commit/fdatasync.flushes_per_op >= 0.9",
        ],
        turned: "sync/commit/open_datasync.flushes_per_op >= 0.9",
    },
    Case {
        name: "eio_at_a_sync",
        // One fdatasync is of the undo file.
        script: "fail fdatasync EIO at 41",
        on_device: false,
        arguments: COMMIT,
        code: 0,
        must: &[
            "durability/check/fdatasync.status = fault",
            "durability/check/fdatasync.fault.call = fdatasync",
            "durability/check/fdatasync.fault.errno_name = EIO",
            "durability/check/fdatasync.fault.operation = 40",
            "durability/check/fsync-extending.status = ok",
            "sync/commit/*.status = ok",
        ],
        turned: "durability/check/fdatasync.status = ok",
    },
    Case {
        name: "eio_at_a_write_that_syncs",
        script: "fail odsync EIO at 100",
        on_device: false,
        arguments: COMMIT,
        code: 0,
        must: &[
            "sync/commit/open_datasync.status = fault",
            "sync/commit/open_datasync.fault.call = pwrite",
            "sync/commit/open_datasync.fault.errno_name = EIO",
            "sync/commit/fdatasync.status = ok",
            "sync/commit/open_sync.status = ok",
        ],
        turned: "sync/commit/open_datasync.status = ok",
    },
    Case {
        name: "an_error_only_at_fsync",
        script: "fail fsync EIO from 3",
        on_device: false,
        arguments: COMMIT,
        code: 0,
        must: &[
            "durability/check/fsync-extending.status = fault",
            "durability/check/fsync-extending.fault.call = fsync",
            "sync/commit/fsync.fault.errno_name = EIO",
            "finding wal_sync_method absent",
        ],
        turned: "sync/commit/fsync.status = ok",
    },
    Case {
        name: "an_error_only_at_close",
        script: "fail close EIO",
        on_device: false,
        arguments: COMMIT,
        code: 0,
        must: &[
            "durability/check/fdatasync.status = fault",
            "durability/check/fdatasync.fault.call = close",
            "durability/check/fdatasync.fault.errno_name = EIO",
            "sync/commit/*.fault.call = close",
            "finding * absent",
        ],
        turned: "durability/check/fdatasync.status = ok",
    },
    Case {
        name: "enospc_at_a_write",
        script: "fail write ENOSPC from 400",
        on_device: false,
        arguments: COMMIT,
        code: 0,
        must: &[
            "durability/check/*.status = ok",
            "sync/commit/*.fault.call = pwrite",
            "sync/commit/*.fault.errno_name = ENOSPC",
            "finding * absent",
        ],
        turned: "sync/commit/fdatasync.status = ok",
    },
    Case {
        name: "edquot_at_a_write",
        script: "fail write EDQUOT from 400",
        on_device: false,
        arguments: COMMIT,
        code: 0,
        must: &[
            "durability/check/*.status = ok",
            "sync/commit/*.fault.call = pwrite",
            "sync/commit/*.fault.errno_name = EDQUOT",
            "finding * absent",
        ],
        turned: "sync/commit/fdatasync.fault.errno_name = ENOSPC",
    },
    Case {
        name: "eintr_and_short_writes_are_gone_on_after",
        script: "fail write EINTR at 20\nfail fdatasync EINTR at 20\nfail write short at 30\n\
                 fail write short at 300",
        on_device: false,
        arguments: COMMIT,
        code: 0,
        must: &[
            "durability/check/*.status = ok",
            "durability/check/fdatasync.syncs = 64",
            "sync/commit/*.status = ok",
        ],
        turned: "durability/check/fdatasync.status = fault",
    },
    Case {
        name: "full_at_a_write",
        script: "size 12MiB\nshown 4096MiB",
        on_device: false,
        arguments: CREATE,
        code: 0,
        must: &[
            "prealloc/create/zero-fill.fault.call = pwrite",
            "prealloc/create/zero-fill.fault.errno_name = ENOSPC",
            "finding wal_init_zero absent",
        ],
        turned: "prealloc/create/zero-fill.status = ok",
    },
    Case {
        name: "full_only_at_fsync",
        script: "size 12MiB\nshown 4096MiB\nfull sync",
        on_device: false,
        arguments: CREATE,
        code: 0,
        must: &[
            "prealloc/create/zero-fill.fault.call = fsync",
            "prealloc/create/zero-fill.fault.errno_name = ENOSPC",
        ],
        turned: "prealloc/create/zero-fill.fault.call = pwrite",
    },
    Case {
        name: "full_only_at_close",
        script: "size 12MiB\nshown 4096MiB\nfull close",
        on_device: false,
        arguments: CREATE,
        code: 0,
        must: &[
            "prealloc/create/zero-fill.fault.call = close",
            "prealloc/create/zero-fill.fault.errno_name = ENOSPC",
        ],
        turned: "prealloc/create/zero-fill.status = ok",
    },
    Case {
        name: "no_fallocate",
        script: "fail fallocate EOPNOTSUPP",
        on_device: false,
        arguments: CREATE,
        code: 0,
        must: &[
            "prealloc/create/fallocate.status = unsupported",
            "prealloc/create/fallocate.reason_code = errno",
            "prealloc/create/fallocate.fault.errno_name = EOPNOTSUPP",
            "prealloc/create/zero-fill.status = ok",
        ],
        turned: "prealloc/create/fallocate.status = ok",
    },
    Case {
        name: "directory_fsync_refused",
        script: "fail fsyncdir EOPNOTSUPP",
        on_device: false,
        arguments: &["sync", "--only", "sync/behaviour", "--time", "10"],
        code: 0,
        must: &[
            "sync/behaviour/directory-fsync.observations.accepted = false",
            "sync/behaviour/directory-fsync.observations.postgres_tolerates = false",
            "sync/behaviour/directory-fsync.fault.errno_name = EOPNOTSUPP",
            "sync/behaviour/durable-rename.observations.fails_step = fsync_directory",
        ],
        turned: "sync/behaviour/directory-fsync.observations.accepted = true",
    },
    Case {
        name: "directory_fsync_refused_and_forgiven",
        script: "fail fsyncdir EINVAL",
        on_device: false,
        arguments: &["sync", "--only", "sync/behaviour", "--time", "10"],
        code: 0,
        must: &[
            "sync/behaviour/directory-fsync.observations.accepted = false",
            "sync/behaviour/directory-fsync.observations.postgres_tolerates = true",
        ],
        turned: "sync/behaviour/directory-fsync.observations.postgres_tolerates = false",
    },
    Case {
        name: "direct_refused_at_the_write",
        script: "direct refused-at-use",
        on_device: false,
        arguments: &["sync", "--only", "sync/{one-8k,behaviour}", "--time", "10"],
        code: 0,
        must: &[
            "sync/one-8k/open_datasync+direct.status = fault",
            "sync/one-8k/open_datasync+direct.fault.call = pwrite",
            "sync/one-8k/open_datasync+direct.fault.errno_name = EINVAL",
            "sync/one-8k/open_datasync.status = ok",
            "sync/behaviour/direct-real.observations.direct = refused",
        ],
        turned: "sync/one-8k/open_datasync+direct.status = ok",
    },
    Case {
        name: "direct_refused_at_open",
        script: "direct refused-at-open",
        on_device: false,
        arguments: &["sync", "--only", "sync/one-8k", "--time", "10"],
        code: 0,
        must: &[
            "sync/one-8k/open_sync+direct.status = unsupported",
            "sync/one-8k/open_sync+direct.fault.call = openat",
            "sync/one-8k/open_sync.status = ok",
        ],
        turned: "sync/one-8k/open_sync+direct.status = ok",
    },
    Case {
        name: "read_only_in_the_middle",
        script: "read-only write at 2000",
        on_device: false,
        arguments: COMMIT,
        // The scratch folder cannot be removed, and that is the filesystem's doing.
        code: 0,
        must: &[
            "durability/check/*.status = ok",
            "sync/commit/*.status in fault skipped",
            "finding * absent",
        ],
        turned: "sync/commit/fdatasync.status = ok",
    },
];

/// Runs it.
pub(crate) fn check(case: &Case) -> Checked {
    let place = Place::new(case.script, case.on_device)?;
    let finished = place.walprobe(case.arguments).run(LIMIT)?;
    let counts = place.faultfs.counts();
    place.undo()?;
    let document = document(&finished, case.code)
        .map_err(|error| format!("{error}\ncounted:\n{}", counts.text()))?;
    says(&document, case.must, case.turned)?;
    changes(&document, &[])?;
    Ok(())
}

/// What the report must say, and what it must not.
pub(crate) fn says(document: &Document, must: &[&str], turned: &str) -> Result<(), String> {
    let mut wrong = Vec::new();
    for line in must {
        match Expectation::parse(line)?.ask(document) {
            Outcome::Holds => {}
            Outcome::Fails(why) | Outcome::Cannot(why) => {
                wrong.push(format!("expected: {line}\n     but: {why}"));
            }
        }
    }
    match Expectation::parse(turned)?.ask(document) {
        Outcome::Fails(_) => {}
        Outcome::Holds => wrong.push(format!("turned round, and holds: {turned}")),
        Outcome::Cannot(why) => {
            wrong.push(format!(
                "turned round, and cannot be asked: {turned}: {why}"
            ));
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    for untested in &document.report.targets[0].not_tested {
        wrong.push(format!(
            "not tested {}: {}",
            untested.setting, untested.reason
        ));
    }
    Err(wrong.join("\n"))
}

/// No setting is changed but these, and nothing is recommended that may not be.
pub(crate) fn changes(document: &Document, expected: &[(&str, &str)]) -> Result<(), String> {
    guards::check(&document.report)?;
    let changed: Vec<_> = document.report.targets[0]
        .findings
        .iter()
        .filter(|finding| finding.action == "change")
        .map(|finding| {
            (
                finding.setting.as_str(),
                finding.value.as_deref().unwrap_or_default(),
            )
        })
        .collect();
    if changed == expected {
        Ok(())
    } else {
        Err(format!("changed are {changed:?}, not {expected:?}"))
    }
}
