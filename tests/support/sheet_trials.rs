//! The trials of a file of expectations, however its runs are made.
//!
//! - `NAME::report`: the document itself, in all formats, and what the run left behind;
//! - `NAME::settings`: what may and may not be recommended;
//! - `NAME::durability`, `::sync`, `::recycle`...: the expectations of that area;
//! - `NAME::RUN::recycle`: the same of the file's further run named `RUN`;
//! - `NAME::turned::sync` and so on: the area's expectations turned round must fail.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::Trial;

use crate::document::{Document, id};
use crate::expect::{Expectation, Outcome};
use crate::sheet::{self, Run, Sheet};
use crate::{Checked, csv_text, guards, trial};

/// Comparisons that the first run of a file must have, with their cases.
pub type Rows = &'static [(&'static str, &'static [&'static str])];

/// Makes a run: the file, and the run's place in it.
pub type Make = dyn Fn(&Sheet, usize) -> Checked<Ran> + Send + Sync;

/// What a trial looks at: the run and what it gave.
type Check = Box<dyn Fn(&Run, &Ran) -> Checked + Send>;

/// The trials of one file; `rows` are those that its first run must have.
#[must_use]
pub fn trials(sheet: &Arc<Sheet>, rows: Rows, runs: &Arc<Runs>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (index, run) in sheet.runs.iter().enumerate() {
        let prefix = match run.name.as_str() {
            "" => sheet.name.clone(),
            name => format!("{}::{name}", sheet.name),
        };
        let mut add = |name: &str, check: Check| {
            let (sheet, runs) = (Arc::clone(sheet), Arc::clone(runs));
            trials.push(trial(format!("{prefix}::{name}"), move || {
                check(&sheet.runs[index], &*runs.get(&sheet, index)?)
            }));
        };
        let rows = if index == 0 { rows } else { &[] };
        add(
            "report",
            Box::new(move |run, ran| report_trial(run, ran, rows)),
        );
        add("settings", Box::new(settings_trial));
        for area in sheet::areas(&run.expectations) {
            if area == "settings" {
                continue;
            }
            let area = area.to_owned();
            add(
                &area.clone(),
                Box::new(move |run, ran| expectations_hold(run, &area, &ran.document)),
            );
        }
        for area in sheet::areas(&run.turned) {
            let name = area.to_owned();
            add(
                &format!("turned::{area}"),
                Box::new(move |run, ran| turned_trial(run, &name, ran)),
            );
        }
    }
    trials
}

/// The document in its formats, what was planned, and that nothing was left.
fn report_trial(run: &Run, ran: &Ran, wanted: Rows) -> Checked {
    ran.document.check()?;
    if ran.stdout_json != ran.document.json {
        return Err("stdout and --json are not the same document".into());
    }
    csv_text::agrees(&csv_text::read(&ran.csv)?, &ran.document)?;

    let target = &ran.document.report.targets[0];
    let rows: BTreeSet<_> = target.rows.iter().map(id).collect();
    if rows.len() != target.rows.len() {
        return Err("two rows have the same id".into());
    }
    let mut lacking: Vec<_> = ids_in(&ran.plan)
        .into_iter()
        .filter(|id| !rows.contains(id))
        .collect();
    for (comparison, cases) in wanted {
        let ids = cases.iter().map(|case| format!("{comparison}/{case}"));
        lacking.extend(ids.filter(|id| !rows.contains(id)));
    }
    if !lacking.is_empty() {
        return Err(format!("planned, and without a row: {}", lacking.join(" ")).into());
    }
    if !target.left_behind.is_empty() {
        return Err(format!("left behind: {:?}", target.left_behind).into());
    }
    if let Some(changed) = &ran.changed {
        return Err(changed.clone().into());
    }
    expectations_hold(run, "report", &ran.document)
}

fn settings_trial(run: &Run, ran: &Ran) -> Checked {
    guards::check(&ran.document.report)?;
    let durability = &ran.document.report.targets[0].durability;
    if !durability.may_recommend
        && !ran.document.report.targets[0]
            .findings
            .iter()
            .any(|one| one.value.is_some())
    {
        guards::sets_nothing(&ran.fragment)?;
    }
    expectations_hold(run, "settings", &ran.document)
}

fn expectations_hold(run: &Run, area: &str, document: &Document) -> Checked {
    let wrong: Vec<_> = run
        .expectations
        .iter()
        .filter(|expectation| expectation.subject.area() == area)
        .filter_map(|expectation| complaint(expectation, document))
        .collect();
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n").into())
    }
}

fn complaint(expectation: &Expectation, document: &Document) -> Option<String> {
    match expectation.ask(document) {
        Outcome::Holds => None,
        Outcome::Fails(why) | Outcome::Cannot(why) => {
            Some(format!("expected: {}\n     but: {why}", expectation.text))
        }
    }
}

fn turned_trial(run: &Run, area: &str, ran: &Ran) -> Checked {
    for turned in &run.turned {
        if turned.subject.area() != area {
            continue;
        }
        let text = &turned.text;
        match turned.ask(&ran.document) {
            Outcome::Fails(_) => {}
            Outcome::Holds => return Err(format!("turned round, and holds: {text}").into()),
            Outcome::Cannot(why) => {
                return Err(format!("turned round, and cannot be asked: {text}: {why}").into());
            }
        }
    }
    Ok(())
}

/// What a run gave.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The report of `--json`.
    pub document: Document,
    /// What came on stdout, in JSON.
    pub stdout_json: serde_json::Value,
    /// The file of `--csv`.
    pub csv: Vec<u8>,
    /// The file of `--conf`.
    pub fragment: String,
    /// What `--dry-run` said.
    pub plan: String,
    /// How the directory differs from what it was, where it does.
    pub changed: Option<String>,
}

type Shared = Checked<Arc<Ran>>;

/// Runs by file and number: each is made once in this process, when first asked for.
pub struct Runs {
    make: Box<Make>,
    made: Mutex<BTreeMap<(String, usize), Shared>>,
}

impl Runs {
    /// Runs that `make` makes.
    pub fn new(make: impl Fn(&Sheet, usize) -> Checked<Ran> + Send + Sync + 'static) -> Self {
        Self {
            make: Box::new(make),
            made: Mutex::default(),
        }
    }

    fn get(&self, sheet: &Sheet, index: usize) -> Shared {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.entry((sheet.name.clone(), index))
            .or_insert_with(|| (self.make)(sheet, index).map(Arc::new))
            .clone()
    }
}

/// Every `PROBE/COMPARISON/CASE` that a text names.
fn ids_in(text: &str) -> BTreeSet<String> {
    let part = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || "-_+@".contains(letter))
    };
    text.split_whitespace()
        .map(|word| word.trim_matches(|letter: char| ",;:()*".contains(letter)))
        .filter(|word| {
            let parts: Vec<_> = word.split('/').collect();
            parts.len() == 3 && parts.iter().all(|one| part(one))
        })
        .map(str::to_owned)
        .collect()
}
