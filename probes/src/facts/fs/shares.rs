//! CIFS (mount.cifs(8)) and 9p (Documentation/filesystems/9p.rst): what the client keeps
//! back, and what it does with a sync.

use super::Subject;
use crate::{
    facts::{absent, known, put},
    report::{Fact, FactMap},
};

const MOUNTINFO: &str = "/proc/self/mountinfo";

fn listed(subject: &Subject<'_>, option: &str) -> Fact {
    let source = subject.source(MOUNTINFO);
    match subject.option(option).filter(|value| !value.is_empty()) {
        Some(value) => known(value, source),
        None => absent(source, format!("{option} is not listed")),
    }
}

/// `cifs.*`.
pub(super) fn cifs(subject: &Subject<'_>, facts: &mut FactMap) {
    put(facts, "cifs.version", listed(subject, "vers"));
    put(facts, "cifs.cache", listed(subject, "cache"));
    let strict = subject.option("nostrictsync").is_none();
    let source = subject.source(MOUNTINFO);
    put(facts, "cifs.strict_sync", known(strict, source));
}

/// `9p.*`. Kernels since 6.4 list the cache mode as a hexadecimal mask of their own, older
/// ones some modes as an option by itself.
pub(super) fn p9(subject: &Subject<'_>, facts: &mut FactMap) {
    let by_itself = ["fscache", "loose", "mmap"]
        .into_iter()
        .find(|mode| subject.option(mode).is_some());
    let cache = match by_itself {
        Some(mode) => known(mode, subject.source(MOUNTINFO)),
        None => listed(subject, "cache"),
    };
    put(facts, "9p.cache", cache);
    put(facts, "9p.transport", listed(subject, "trans"));
}
