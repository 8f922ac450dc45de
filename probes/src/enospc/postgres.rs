//! What PostgreSQL does with such an answer (src/backend/access/transam/xlog.c, walreceiver.c).

/// XLogFileInit fails: within XLogWrite's critical section an ERROR becomes a PANIC; the checkpointer
/// (PreallocXlogFiles) and walreceiver are in none.
pub(super) const CREATE: &str =
    "a backend: PANIC; the checkpointer: ERROR; walreceiver: ERROR, it exits and tries again";

/// Writing, syncing or closing a segment fails: XLogWrite, issue_xlog_fsync, XLogFileClose and
/// XLogWalRcvWrite all report PANIC.
pub(super) fn write(call: &str) -> &'static str {
    match call {
        "fdatasync" => "PANIC: could not fdatasync file; restart, and recovery needs space too",
        "close" => "PANIC: could not close file; restart, and recovery needs space too",
        "openat" => "PANIC: could not open file; restart, and recovery needs space too",
        _ => "PANIC: could not write to log file; restart, and recovery needs space too",
    }
}
