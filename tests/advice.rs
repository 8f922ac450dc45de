//! Rules against reports built for them: what they must say, what they must not, and what
//! holds for all of them whatever a report holds.

mod advice {
    pub(crate) mod build;
    mod commit_delay;
    mod enospc;
    mod guards;
    mod pages;
    mod random;
    mod segments;
    mod sync_method;
    mod words;
}
