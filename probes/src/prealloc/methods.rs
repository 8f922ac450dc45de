//! The methods: what each is, what it writes, and which of them a request asks for.

use crate::{
    request::{Profile, Request, Selection},
    segment::Init,
};

/// A way to give a segment its space.
pub(super) struct Method {
    /// The case's name.
    pub(super) name: &'static str,
    /// How it is done. Whether posix_fallocate goes by pieces is known when the case is opened.
    pub(super) init: Init,
    /// It may write the whole segment.
    pub(super) fills: bool,
    /// Part of every run: the server's settings, and the call that was proposed for it.
    pub(super) judged: bool,
}

const fn method(name: &'static str, init: Init, fills: bool, judged: bool) -> Method {
    Method {
        name,
        init,
        fills,
        judged,
    }
}

/// The server's default, which all are compared with.
pub(super) const BASELINE: &str = "zero-fill";

/// The methods, the baseline first.
pub(super) const METHODS: [Method; 10] = [
    method(BASELINE, Init::ZeroFill, true, true),
    method("zero-fill-8k", Init::ZeroFill8k, true, false),
    method("fallocate", Init::Fallocate, false, true),
    method(
        "posix_fallocate",
        Init::PosixFallocate { piecewise: false },
        true,
        false,
    ),
    method("glibc-emulation", Init::GlibcEmulation, true, false),
    method("sparse", Init::Sparse, false, true),
    method("zero-range", Init::ZeroRange, false, false),
    method("write-zeroes", Init::WriteZeroes, true, false),
    method("fallocate+zero-fill", Init::FallocateZeroFill, true, false),
    method("append", Init::Append, false, false),
];

/// The comparisons that a life feeds.
pub(super) const COMPARISONS: [&str; 4] = ["create", "first-pass", "second-pass", "life"];

/// The method of that name.
pub(super) fn named(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|m| m.name == name)
}

/// The rarer methods that are asked for: all in `thorough`, else those that a pattern of `--only`
/// picks out from among the methods.
pub(super) fn rarer(request: &Request) -> Vec<&'static Method> {
    METHODS
        .iter()
        .filter(|m| !m.judged)
        .filter(|m| {
            request.profile == Profile::Thorough
                || request.only.iter().any(|pattern| picks(pattern, m.name))
        })
        .collect()
}

/// The pattern matches this method's case, and not whatever a case may be called.
fn picks(pattern: &str, name: &str) -> bool {
    let Ok(selection) = Selection::new(&[pattern.to_owned()], &[]) else {
        return false;
    };
    COMPARISONS.iter().any(|comparison| {
        let wants = |name| selection.wants(super::CARD.id, comparison, name);
        wants(name) && !wants("\0")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(profile: Profile, only: &[&str]) -> Vec<&'static str> {
        let request = Request {
            profile,
            only: only.iter().map(|p| (*p).to_owned()).collect(),
            ..Request::default()
        };
        rarer(&request).iter().map(|m| m.name).collect()
    }

    #[test]
    fn the_rarer_methods_come_in_thorough_or_by_name() {
        assert_eq!(names(Profile::Thorough, &[]).len(), 7);
        assert!(names(Profile::Normal, &[]).is_empty());
        // A whole probe or comparison names none of its cases.
        for pattern in [
            "prealloc",
            "prealloc/*",
            "prealloc/create",
            "prealloc/create/*",
            "[",
        ] {
            assert!(names(Profile::Normal, &[pattern]).is_empty(), "{pattern}");
        }
        assert_eq!(names(Profile::Quick, &["append"]), ["append"]);
        assert_eq!(
            names(Profile::Quick, &["prealloc", "prealloc/*/zero-*"]),
            ["zero-fill-8k", "zero-range"]
        );
        assert!(names(Profile::Normal, &["sync/*/append"]).is_empty());
        let all = METHODS.map(|m| m.name).join(",");
        assert_eq!(
            names(Profile::Quick, &[&format!("prealloc/*/{{{all}}}")]).len(),
            7
        );
    }

    #[test]
    fn the_first_method_is_the_baseline() {
        assert_eq!(METHODS[0].name, BASELINE);
        assert!(METHODS[0].judged);
    }
}
