//! The rows of one target: laid out by the plan, told by the child, filled in at its end.
//!
//! What was told stays, final or so far. What was not told gets its reason from how the
//! child ended; the case that was being measured then is the row in flight.

use walprobe_probes::{
    event::PlannedCase,
    report::{FaultRecord, Row, RowStatus, Target},
};

/// The reason code of what walprobe itself got wrong.
pub(crate) const INTERNAL: &str = "internal";

/// What is known of one target beyond its entry in the report.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) plan: Vec<PlannedCase>,
    pub(crate) told: Vec<Told>,
    pub(crate) doing: Option<Doing>,
    pub(crate) scratch: Option<String>,
    /// `time` or `budget`.
    pub(crate) ended_by: Option<String>,
    pub(crate) broken: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Told {
    #[default]
    Nothing,
    SoFar,
    Finally,
}

#[derive(Clone, Debug)]
pub(crate) struct Doing {
    pub(crate) probe: String,
    pub(crate) comparison: String,
    pub(crate) case: String,
    pub(crate) round: u64,
}

impl State {
    /// Gives every planned case its row; a row already told is kept.
    pub(crate) fn lay_out(&mut self, entry: &mut Target, plan: Vec<PlannedCase>) {
        let old_rows = std::mem::take(&mut entry.rows);
        let old_told = std::mem::take(&mut self.told);
        entry.rows = plan.iter().map(not_reached).collect();
        let told = |case: &PlannedCase| match case.same_as {
            Some(_) => Told::Finally,
            None => Told::Nothing,
        };
        self.told = plan.iter().map(told).collect();
        self.plan = plan;
        for (row, told) in old_rows.into_iter().zip(old_told) {
            if told > Told::Nothing {
                self.put(entry, row, told == Told::Finally);
            }
        }
    }

    pub(crate) fn put(&mut self, entry: &mut Target, row: Row, done: bool) {
        let told = if done { Told::Finally } else { Told::SoFar };
        let same = |r: &Row| {
            (&r.probe, &r.comparison, &r.case) == (&row.probe, &row.comparison, &row.case)
        };
        match entry.rows.iter().position(same) {
            Some(at) => {
                entry.rows[at] = row;
                self.told[at] = self.told[at].max(told);
            }
            None => {
                entry.rows.push(row);
                self.told.push(told);
            }
        }
    }

    /// Rows of which nothing was told say why.
    pub(crate) fn fill(&mut self, entry: &mut Target, code: &str, reason: &str) {
        for (row, told) in entry.rows.iter_mut().zip(&mut self.told) {
            if *told == Told::Nothing {
                row.status = RowStatus::Skipped;
                row.reason_code = Some(code.to_owned());
                row.reason = Some(reason.to_owned());
                *told = Told::Finally;
            }
        }
    }

    /// The same, where a call that failed ended everything.
    pub(crate) fn fill_failed(&mut self, entry: &mut Target, failed: &FaultRecord, reason: &str) {
        let open = self.told.iter().map(|told| *told == Told::Nothing);
        let open: Vec<bool> = open.collect();
        self.fill(entry, "errno", reason);
        let rows = entry.rows.iter_mut().zip(open);
        for (row, _) in rows.filter(|(_, was_open)| *was_open) {
            row.fault = Some(failed.clone());
        }
    }

    /// The row that was being measured, unless it is final.
    fn in_flight(&self, entry: &Target) -> Option<usize> {
        let doing = self.doing.as_ref()?;
        let open = |at: &usize| self.told[*at] < Told::Finally;
        let of_case = |at: &usize| {
            let row = &entry.rows[*at];
            open(at) && row.probe == doing.probe && row.case == doing.case
        };
        let mut rows = 0..entry.rows.len();
        // The comparison told is the group's first; the case may be in others only.
        rows.clone()
            .find(|at| of_case(at) && entry.rows[*at].comparison == doing.comparison)
            .or_else(|| rows.find(of_case))
    }

    /// The row in flight becomes the call that never answered. The reason, for the target.
    pub(crate) fn no_answer(&mut self, entry: &mut Target, silent_s: u64) -> String {
        let reason = format!("a call did not answer for {silent_s} s");
        let Some(at) = self.in_flight(entry) else {
            return match &self.doing {
                Some(doing) => format!("{reason}, after {doing}"),
                None => reason,
            };
        };
        let row = &mut entry.rows[at];
        row.status = RowStatus::Fault;
        row.reason_code = Some("no-answer".to_owned());
        row.reason = Some(reason.clone());
        row.verdict = None;
        row.fault = Some(FaultRecord {
            call: "unknown".to_owned(),
            ..FaultRecord::default()
        });
        self.told[at] = Told::Finally;
        match &self.doing {
            Some(doing) => format!("{reason} in {doing}"),
            None => reason,
        }
    }

    pub(crate) fn died(&mut self, entry: &mut Target, reason: &str) {
        if let Some(at) = self.in_flight(entry) {
            let row = &mut entry.rows[at];
            row.status = RowStatus::Fault;
            row.reason_code = Some(INTERNAL.to_owned());
            row.reason = Some(format!("{reason} in this case"));
            row.verdict = None;
            self.told[at] = Told::Finally;
        }
    }
}

impl std::fmt::Display for Doing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            probe,
            comparison,
            case,
            round,
        } = self;
        write!(
            f,
            "{probe}/{comparison}/{case}, round {}",
            round.saturating_add(1)
        )
    }
}

fn not_reached(case: &PlannedCase) -> Row {
    let mut row = Row {
        probe: case.probe.clone(),
        comparison: case.comparison.clone(),
        case: case.case.clone(),
        baseline: case.baseline.clone(),
        series: case.series.clone(),
        params: case.params.clone(),
        status: RowStatus::Skipped,
        // What a report says that nobody finished.
        reason_code: Some("interrupted".to_owned()),
        reason: Some("not reached".to_owned()),
        ..Row::default()
    };
    if let Some(why) = &case.same_as {
        row.reason_code = Some("same-as".to_owned());
        row.reason = Some(why.clone());
    }
    row
}
