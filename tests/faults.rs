//! Filesystems that misbehave, made by the test filesystem `faultfs` (see its README), and what
//! the report must say of them; what must not be recommended, too.
//!
//! - `own::*`: the test filesystem itself does what its script says;
//! - each other trial is a line of `cases`: a script, walprobe's arguments, what the report must
//!   say, and one expectation turned round, which must be asked and must fail;
//! - `hang`, `cold` and `cheap_odsync` need more than that, and are functions of their own.
//!
//! On every report: the document is whole, nothing is recommended that may not be, and unless a
//! case says so no setting is changed. Times are compared within a run, never with a clock; a
//! price that the script sets is a lower bound.
//!
//! What lies in memory is of type `fuse`. A case `on a device` is of type `fuseblk` on a loop
//! device: its flushes are counted there.

use std::process::ExitCode;

use libtest_mimic::Arguments;
use walprobe_test_support::{stale, trial, work};

#[path = "faults/cases.rs"]
mod cases;
#[path = "faults/own.rs"]
mod own;
#[path = "faults/place.rs"]
mod place;
#[path = "faults/special.rs"]
mod special;

const TMP: &str = env!("CARGO_TARGET_TMPDIR");

fn main() -> ExitCode {
    if std::env::var_os(own::SERVE).is_some() {
        return own::serve();
    }
    let mut arguments = Arguments::from_args();
    // Two measurements side by side would only slow each other.
    arguments.test_threads.get_or_insert(1);
    if let Err(error) = stale::sweep(&work::base(TMP)) {
        eprintln!("an earlier test run could not be undone: {error}");
    }
    let mut trials = own::trials();
    trials.extend(
        cases::CASES
            .iter()
            .map(|case| trial(case.name, || cases::check(case))),
    );
    trials.extend(special::trials());
    libtest_mimic::run(&arguments, trials).exit_code()
}
