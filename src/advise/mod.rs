//! Rules: what a report says about settings.
//!
//! A [`Rule`] reads one target's rows and facts through a [`View`] and answers with
//! [`Saying`]s: a finding with its evidence, or a setting about which nothing can be
//! said, and why. Rules never see the target itself and change nothing. Whatever they
//! say passes [`guard`] before it enters the report: what holds for every rule is
//! checked there and nowhere else.
//!
//! A new rule is one file here, one line in [`RULES`], one page in `docs/rules/`.

pub mod commit_delay;
pub mod confidence;
pub mod draft;
pub mod fake_prealloc;
pub mod gain;
pub mod gap;
pub mod guard;
pub mod late_enospc;
pub mod leg;
pub mod never;
pub mod version;
pub mod view;
pub mod wal_segments;
pub mod wal_sync_method;
pub mod words;

use walprobe_probes::report::{Finding, NotTested, Report};

pub use gap::Gap;
pub use leg::Leg;
pub use version::{Version, for_version};
pub use view::View;

/// One thing a rule says of one setting.
#[derive(Clone, Debug, PartialEq)]
pub enum Saying {
    /// What to set or keep.
    Finding(Box<Finding>),
    /// Nothing can be said, and why.
    NotTested(NotTested),
}

impl Saying {
    /// The setting, with `@ROLE` where the role is not any.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Finding(finding) => &finding.id,
            Self::NotTested(not) => &not.setting,
        }
    }

    /// The setting without its role.
    #[must_use]
    pub fn setting(&self) -> &str {
        self.id().split('@').next().unwrap_or_default()
    }
}

/// One question about settings, and how a report answers it.
pub trait Rule: Sync {
    /// The id used everywhere; also the page's name.
    fn id(&self) -> &'static str;
    /// The settings it judges, without role.
    fn settings(&self) -> &'static [&'static str];
    /// Its page, `docs/rules/ID.md`.
    fn page(&self) -> &'static str;
    /// It speaks only where there is something to tell, and never of a value: what it is silent about
    /// does not stand in `not_tested`.
    fn only_informs(&self) -> bool {
        false
    }
    /// What one target's rows and facts say. Must say something of each of its settings, unless it
    /// only informs.
    fn judge(&self, view: &View<'_>) -> Vec<Saying>;
}

/// Every rule, in the order of the recommendations.
pub const RULES: &[&dyn Rule] = &[
    &wal_sync_method::WalSyncMethod,
    &wal_segments::WalSegments,
    &commit_delay::CommitDelay,
    &late_enospc::LateEnospc,
    &fake_prealloc::FakePrealloc,
];

/// Fills `findings` and `not_tested` of every target, in place of what stood there.
pub fn advise(report: &mut Report) {
    advise_by(report, RULES);
}

/// [`advise`] by other rules than [`RULES`].
pub fn advise_by(report: &mut Report, rules: &[&dyn Rule]) {
    for target in &mut report.targets {
        target.findings.clear();
        target.not_tested.clear();
    }
    // Evidence is read from the document as it will be saved. A report that could not be
    // serialised would leave every finding without evidence, and the guard refuses those.
    let document = serde_json::to_value(&*report).unwrap_or_default();
    let said: Vec<Vec<Saying>> = (0..report.targets.len())
        .map(|index| {
            let view = View::new(report, &document, index);
            let said = rules
                .iter()
                .map(|rule| (*rule, rule.judge(&view)))
                .collect();
            guard::admit(&view, said)
        })
        .collect();
    for (target, said) in report.targets.iter_mut().zip(said) {
        for saying in said {
            match saying {
                Saying::Finding(finding) => target.findings.push(*finding),
                Saying::NotTested(not) => target.not_tested.push(not),
            }
        }
    }
}
