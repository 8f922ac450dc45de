//! What a rule sees: one target of a report, and the way to cite its figures.
//!
//! Evidence is made here only. It is read by its pointer from the document as it will be
//! saved, so that what a finding shows and what the report holds cannot differ.

use serde_json::Value;
use walprobe_probes::{
    report::{DurabilityVerdict, EndedBy, Evidence, Report, Row, RowStatus, Target},
    request::Profile,
};

use super::{
    Gap, Leg,
    gain::{Interval, Limits},
    words,
};
use crate::size;

/// Comparisons that rules ask for and that this version cannot run: where one is missing,
/// no command would tell.
const NOT_YET: &[(&str, &str)] = &[];

/// One target of a report.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    report: &'a Report,
    document: &'a Value,
    index: usize,
}

impl<'a> View<'a> {
    /// The target at `index` of `report`, which must have it; `document` is the report serialised.
    #[must_use]
    pub const fn new(report: &'a Report, document: &'a Value, index: usize) -> Self {
        Self {
            report,
            document,
            index,
        }
    }

    /// The target itself.
    #[must_use]
    pub fn target(&self) -> &'a Target {
        &self.report.targets[self.index]
    }

    /// The durability verdict.
    #[must_use]
    pub fn verdict(&self) -> DurabilityVerdict {
        self.target().durability.verdict
    }

    /// The verdict allows more than defaults.
    #[must_use]
    pub fn may_recommend(&self) -> bool {
        self.verdict().may_recommend() && self.target().durability.may_recommend
    }

    /// The margins in force.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits::of(&self.report.margins)
    }

    /// The row of a case.
    #[must_use]
    pub fn leg(&self, probe: &str, comparison: &str, case: &str) -> Option<Leg<'a>> {
        self.target()
            .rows
            .iter()
            .enumerate()
            .find(|(_, row)| row.probe == probe && row.comparison == comparison && row.case == case)
            .map(|(at, row)| Leg::new(*self, at, row))
    }

    /// The row of a case, if it was measured, and is of cold files where it claims to be; else
    /// why there is nothing to go by.
    ///
    /// # Errors
    /// Why there are no figures.
    pub fn measured(&self, probe: &str, comparison: &str, case: &str) -> Result<Leg<'a>, Gap> {
        match self.leg(probe, comparison, case) {
            Some(leg) if leg.row.status != RowStatus::Ok => Err(leg.gap()),
            Some(leg) if leg.is_cold() == Some(false) => Err(leg.not_cold()),
            Some(leg) => Ok(leg),
            None => Err(self.absent(probe, comparison, case)),
        }
    }

    /// The row of a case, if it and its baseline were measured and its ratio is over `baseline`.
    ///
    /// # Errors
    /// Why there are no figures.
    pub fn versus(
        &self,
        probe: &str,
        comparison: &str,
        case: &str,
        baseline: &str,
    ) -> Result<Leg<'a>, Gap> {
        self.measured(probe, comparison, baseline)?;
        let leg = self.measured(probe, comparison, case)?;
        if leg.row.baseline.as_deref() == Some(baseline) {
            return Ok(leg);
        }
        let why = format!("{} is not compared with {baseline}", leg.id());
        Err(Gap::new("internal", why, None))
    }

    /// A fact's text and where it stands, where it is a text or a boolean.
    #[must_use]
    pub fn fact(&self, name: &str) -> Option<(&'a Value, Evidence)> {
        let value = &self.target().facts.get(name)?.value;
        let escaped = name.replace('~', "~0").replace('/', "~1");
        let evidence = self.cite(&format!("/targets/{}/facts/{escaped}/value", self.index))?;
        Some((value, evidence))
    }

    /// The figure at an absolute pointer; `None` where there is none or it is null.
    #[must_use]
    pub fn cite(&self, pointer: &str) -> Option<Evidence> {
        let value = self.document.pointer(pointer)?;
        (!value.is_null()).then(|| Evidence {
            pointer: pointer.to_owned(),
            value: value.clone(),
        })
    }

    /// The row of this target that a pointer points into, and the rest of the pointer.
    #[must_use]
    pub fn row_at<'p>(&self, pointer: &'p str) -> Option<(Leg<'a>, &'p str)> {
        let rest = pointer.strip_prefix(&format!("/targets/{}/rows/", self.index))?;
        let (at, key) = rest.split_once('/')?;
        let at: usize = at.parse().ok()?;
        let row = self.target().rows.get(at)?;
        Some((Leg::new(*self, at, row), key))
    }

    /// The pointer to a figure of one of the target's rows.
    #[must_use]
    pub fn row_pointer(&self, at: usize, key: &str) -> String {
        format!("/targets/{}/rows/{at}/{key}", self.index)
    }

    /// Twice the run's write budget, as `--write-budget` takes it.
    #[must_use]
    pub fn larger_budget(&self) -> String {
        size::spell(self.report.write_budget_bytes.saturating_mul(2))
    }

    /// The pointer points into another target.
    #[must_use]
    pub fn is_foreign(&self, pointer: &str) -> bool {
        pointer.starts_with("/targets/")
            && !pointer.starts_with(&format!("/targets/{}/", self.index))
    }

    /// `walprobe PROBE DIR`, with the options that `more` holds.
    #[must_use]
    pub fn command(&self, probe: &str, more: &str) -> String {
        let dir = words::quoted(&self.target().dir);
        let space = if more.is_empty() { "" } else { " " };
        format!("walprobe {probe} {dir}{space}{more}")
    }

    /// The command that measures `comparison` again, and what the rules hold against it.
    #[must_use]
    pub fn again(&self, probe: &str, comparison: &str, more: &str) -> String {
        let pattern = match (probe, comparison) {
            ("sync", _) => "sync/{commit*,bulk}".to_owned(),
            ("recycle", _) => "recycle/life*".to_owned(),
            ("commit", _) => "commit/delay-*".to_owned(),
            _ => format!("{probe}/*"),
        };
        self.command(probe, &format!("--only '{pattern}'{more}"))
    }

    /// A time limit long enough to settle what this run left open, in whole tens of seconds.
    ///
    /// Intervals narrow with the square root of the rounds; there is no look after eight
    /// times the first look's rounds.
    #[must_use]
    pub fn longer(&self, open: Option<Interval>, bound: f64, profile: Profile) -> u64 {
        let factor = open.map_or(2.0, |i| {
            let width = (i.high.ln() - i.low.ln()) / 2.0;
            let room = (i.ratio.ln() - bound.ln()).abs().max(1e-3);
            (width / room).powi(2)
        });
        let limit = self.report.time_limit_s;
        let limit = if limit.is_finite() {
            limit.clamp(10.0, 3_600.0)
        } else {
            90.0
        };
        let usual = profile.seconds();
        let seconds = (limit * factor.clamp(2.0, 8.0)).max(usual);
        (seconds / 10.0).ceil() as u64 * 10
    }

    /// The report's profile; a report of a walprobe that has others counts as normal.
    fn profile(&self) -> Profile {
        [Profile::Quick, Profile::Normal, Profile::Thorough]
            .into_iter()
            .find(|p| p.as_str() == self.report.profile)
            .unwrap_or_default()
    }

    /// The options that would give an open comparison more rounds: time, and the write budget
    /// where that ended it.
    #[must_use]
    pub fn more(&self, row: &Row, open: Option<Interval>, bound: f64) -> String {
        let measured = match self.profile() {
            // The settings need lives that quick leaves out.
            Profile::Quick if row.probe == "recycle" => Profile::Normal,
            other => other,
        };
        let profile = match measured {
            // Another profile plans more cases, and the time would go to them.
            Profile::Normal => String::new(),
            other => format!(" --profile {}", other.as_str()),
        };
        let time = format!("{profile} --time {}", self.longer(open, bound, measured));
        match row.observations.get("stopped_by").and_then(|s| s.as_str()) {
            Some("budget") => format!("{time} --write-budget {}", self.larger_budget()),
            _ => time,
        }
    }

    fn absent(&self, probe: &str, comparison: &str, case: &str) -> Gap {
        let stopped = match self.report.ended_by {
            EndedBy::Sigint | EndedBy::Sigterm | EndedBy::Sighup => Some("interrupted"),
            _ => None,
        };
        let of = format!("{probe}/{comparison}");
        let later = NOT_YET.contains(&(probe, comparison));
        let any = |row: &Row| row.probe == probe && row.comparison == comparison;
        let what = if self.target().rows.iter().any(any) {
            format!("{of}/{case}")
        } else {
            of.clone()
        };
        let reason = if later {
            format!("{of} is not measured by this version of walprobe")
        } else if let Some(why) = &self.target().reason {
            format!("{what} was not measured: {why}")
        } else {
            format!("{what} was not part of this run")
        };
        Gap {
            code: if later {
                "not-planned"
            } else {
                stopped.unwrap_or("not-planned")
            }
            .to_owned(),
            reason,
            hint: (!later).then(|| self.again(probe, comparison, "")),
        }
    }
}
