//! One row as a rule reads it: its figures, whether they may be believed, how to cite them.

use walprobe_probes::{
    report::{Cold, Evidence, Row, RowStatus},
    request::Profile,
};

use super::{Gap, View, gain::Interval};

/// One row, and the way to cite it.
#[derive(Clone, Copy, Debug)]
pub struct Leg<'a> {
    view: View<'a>,
    at: usize,
    /// The row.
    pub row: &'a Row,
}

impl<'a> Leg<'a> {
    /// The target's row at `at`.
    #[must_use]
    pub const fn new(view: View<'a>, at: usize, row: &'a Row) -> Self {
        Self { view, at, row }
    }

    /// `PROBE/COMPARISON/CASE`.
    #[must_use]
    pub fn id(&self) -> String {
        let Row {
            probe,
            comparison,
            case,
            ..
        } = self.row;
        format!("{probe}/{comparison}/{case}")
    }

    /// The row's own figure, by its key or by `observations/NAME`.
    #[must_use]
    pub fn cite(&self, key: &str) -> Option<Evidence> {
        self.view.cite(&self.view.row_pointer(self.at, key))
    }

    /// Those of the figures that are there.
    #[must_use]
    pub fn cite_all(&self, keys: &[&str]) -> Vec<Evidence> {
        keys.iter().filter_map(|key| self.cite(key)).collect()
    }

    /// `ratio` and its interval.
    #[must_use]
    pub fn ratio(&self) -> Option<Interval> {
        Interval::of(self.row)
    }

    /// `total_ratio` and its interval, of lives.
    #[must_use]
    pub fn total(&self) -> Option<Interval> {
        Interval::new(
            self.number("total_ratio"),
            self.number("total_ratio_low"),
            self.number("total_ratio_high"),
        )
    }

    /// An observation that is a number.
    #[must_use]
    pub fn number(&self, observation: &str) -> Option<f64> {
        self.row.observations.get(observation)?.as_f64()
    }

    /// An observation that is a yes or no.
    #[must_use]
    pub fn flag(&self, observation: &str) -> Option<bool> {
        self.row.observations.get(observation)?.as_bool()
    }

    /// The row whose time the ratio is over.
    #[must_use]
    pub fn baseline(&self) -> Option<Self> {
        let case = self.row.baseline.as_deref()?;
        self.view.leg(&self.row.probe, &self.row.comparison, case)
    }

    /// Whether the figures are of files out of every cache, where they claim to be: `None`
    /// where nothing is claimed.
    ///
    /// New files have no old contents to be cold; they count by the old segment they are
    /// compared with.
    #[must_use]
    pub fn is_cold(&self) -> Option<bool> {
        let Row {
            probe,
            comparison,
            case,
            cold,
            ..
        } = self.row;
        let named =
            comparison.contains("cold") || comparison == "life-standby" || case.contains("cold");
        let warm = probe == "recycle" && !named;
        let is_new = |row: &Row| row.case.starts_with("new");
        if warm || !(named || cold.is_some()) {
            return None;
        }
        let proven = |row: &Row| row.cold == Some(Cold::Proven);
        let base = self.baseline();
        let own = match cold {
            Some(_) => proven(self.row),
            None => is_new(self.row) && base.is_some_and(|base| proven(base.row)),
        };
        let against = base.is_none_or(|base| is_new(base.row) || proven(base.row));
        Some(own && against)
    }

    /// The files were not shown to be out of cache, though the figures claim it.
    #[must_use]
    pub fn not_cold(&self) -> Gap {
        // The old segment that the case is compared with says more than the case itself.
        let old = self
            .baseline()
            .filter(|base| base.row.cold != Some(Cold::Proven));
        let row = old.map_or(self.row, |base| base.row);
        let state = match row.cold {
            Some(Cold::NotCold) if resident(row) == Some(0) => {
                "reads of the witness file did not all come from the device"
            }
            Some(Cold::NotCold) => "files were still in the cache",
            _ => "files could not be shown to be out of the cache",
        };
        let hook = row.cold_proof.as_ref().map(|proof| proof.hook.as_str());
        let with = match hook {
            None | Some("") => String::new(),
            Some("none") => " (nothing was done to drop them)".to_owned(),
            Some(hook) => format!(" (dropped by {hook})"),
        };
        let of = format!("{}/{}", row.probe, row.comparison);
        let command = || {
            let more = " --drop-caches fadvise";
            self.view.again(&row.probe, &row.comparison, more)
        };
        Gap::new(
            "not-proven-cold",
            format!("{of}: {state}{with}"),
            (hook == Some("none")).then(command),
        )
    }

    /// Why there are no figures.
    #[must_use]
    pub fn gap(&self) -> Gap {
        let row = self.row;
        let why = row.reason.as_deref().or(row.reason_code.as_deref());
        let how = match row.status {
            RowStatus::Skipped => "was not measured",
            RowStatus::Unsupported => "is not supported here",
            RowStatus::Fault => "failed",
            RowStatus::Ok => "has no figures",
        };
        let colon = if why.is_some() { ": " } else { "" };
        let code = match (&row.reason_code, row.status) {
            (Some(code), _) => code.clone(),
            (None, RowStatus::Fault | RowStatus::Unsupported) => "errno".to_owned(),
            (None, _) => "internal".to_owned(),
        };
        let more = match code.as_str() {
            // The hint names no profile, so it is the usual one that gets the time.
            "time" => format!(" --time {}", self.view.longer(None, 1.0, Profile::Normal)),
            "budget" => format!(" --write-budget {}", self.view.larger_budget()),
            _ => String::new(),
        };
        Gap {
            reason: format!("{} {how}{colon}{}", self.id(), why.unwrap_or_default()),
            hint: matches!(
                code.as_str(),
                "time" | "budget" | "interrupted" | "internal"
            )
            .then(|| self.view.again(&row.probe, &row.comparison, &more)),
            code,
        }
    }
}

/// Pages of a claim's files that were in the page cache, where it could be asked.
fn resident(row: &Row) -> Option<u64> {
    row.cold_proof.as_ref()?.resident_pages
}
