//! `commit_delay`, `commit_siblings`: does a leader that waits for others gain anything?
//!
//! Judged from `commit/delay-N`, where the leader of N clients sleeps half a flush under the
//! server's rule and is compared with one that does not. Two neighbouring numbers of clients must
//! gain beyond the action margin, and their slowest commits be no worse. The page,
//! `docs/rules/commit-delay.md`, has the table.

mod standing;
mod told;

use super::{Gap, Rule, Saying, View};
use standing::{Standing, standing};

const DELAY: &str = "commit_delay";
const SIBLINGS: &str = "commit_siblings";
const NO_DELAY: &str = "0";
/// The server's default, with which the delay was tried.
const DEFAULT_SIBLINGS: &str = "5";
const RATIO: &[&str] = &["ratio", "ratio_low", "ratio_high"];
/// A delay whose sleep takes this many times as long cannot be set.
const COARSE: f64 = 2.0;
/// The delay tried and half a flush of its clients may differ by this factor.
const MISTAKEN: f64 = 2.0;
/// Most clients that `--clients` takes.
const MOST_CLIENTS: u64 = 256;

/// The rule.
#[derive(Debug)]
pub struct CommitDelay;

impl Rule for CommitDelay {
    fn id(&self) -> &'static str {
        "commit-delay"
    }

    fn settings(&self) -> &'static [&'static str] {
        &[DELAY, SIBLINGS]
    }

    fn page(&self) -> &'static str {
        include_str!("../../docs/rules/commit-delay.md")
    }

    fn judge(&self, view: &View<'_>) -> Vec<Saying> {
        judge(view)
    }
}

/// The row of a number of clients whose leader sleeps, and of the same without.
fn cases(clients: u64) -> (String, String) {
    let base = format!("fdatasync@{clients}");
    (format!("{base}+delay"), base)
}

/// Numbers of clients that were planned with a delay, in order.
fn counts(view: &View<'_>) -> Vec<u64> {
    let mut counts: Vec<u64> = view
        .target()
        .rows
        .iter()
        .filter(|row| row.probe == "commit")
        .filter_map(|row| row.comparison.strip_prefix("delay-")?.parse().ok())
        .collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

fn judge(view: &View<'_>) -> Vec<Saying> {
    let standings: Vec<(u64, Standing<'_>)> = counts(view)
        .into_iter()
        .map(|clients| (clients, standing(view, clients)))
        .collect();
    if standings.is_empty() {
        let (delayed, _) = cases(8);
        return match view.measured("commit", "delay-8", &delayed) {
            Err(gap) => open(&[gap]),
            Ok(_) => open(&[Gap::new("internal", "a row of no comparison", None)]),
        };
    }
    let gains = |s: &Standing<'_>| matches!(s, Standing::Gains(_));
    let pairs = standings.windows(2);
    if let Some([a, b]) = pairs
        .clone()
        .find(|pair| pair.iter().all(|(_, s)| gains(s)))
        && let (Standing::Gains(few), Standing::Gains(many)) = (&a.1, &b.1)
    {
        return told::change(view, [*few, *many]);
    }
    let refuses = |s: &Standing<'_>| matches!(s, Standing::No(..));
    if let [(clients, only)] = &standings[..]
        && !refuses(only)
    {
        return open(&[alone(view, *clients, only)]);
    }
    let gaps: Vec<Gap> = pairs
        .filter(|pair| pair.iter().all(|(_, s)| !refuses(s)))
        .flatten()
        .filter_map(|(_, standing)| match standing {
            Standing::Open(gap) => Some(gap.clone()),
            _ => None,
        })
        .collect();
    if gaps.is_empty() {
        told::keep(view, &standings)
    } else {
        open(&gaps)
    }
}

/// One number of clients decides nothing by itself.
fn alone(view: &View<'_>, clients: u64, standing: &Standing<'_>) -> Gap {
    let seen = match standing {
        Standing::Gains(_) => format!("{clients} clients gain from a delay"),
        Standing::Open(gap) => gap.reason.clone(),
        Standing::No(..) => String::new(),
    };
    let further = if clients * 2 <= MOST_CLIENTS {
        format!("{clients},{}", clients * 2)
    } else {
        format!("{},{clients}", clients / 2)
    };
    Gap::new(
        "not-planned",
        format!("{seen}, and no second number of clients was tried"),
        Some(view.command("commit", &format!("--clients {further}"))),
    )
}

/// Nothing can be said of either setting.
fn open(gaps: &[Gap]) -> Vec<Saying> {
    [DELAY, SIBLINGS]
        .iter()
        .map(|setting| Gap::told(setting, "", gaps))
        .collect()
}
