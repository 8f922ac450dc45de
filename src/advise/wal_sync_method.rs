//! `wal_sync_method`: is another method than fdatasync worth setting?
//!
//! Judged from `sync/commit`, where each method is compared with fdatasync as the server
//! uses it. A method that is faster there beyond the action margin must besides be no worse
//! in `commit-64k` and `bulk`, since open_* syncs every write and not every commit. The
//! page, `docs/rules/wal-sync-method.md`, has the table.

mod standing;
mod told;

use super::{Gap, Rule, Saying, View};
use standing::{Standing, standing};

const SETTING: &str = "wal_sync_method";
const DEFAULT: &str = "fdatasync";
/// The other methods of a Linux server, as it opens and syncs: never with O_DIRECT.
const OTHERS: &[&str] = &["fsync", "open_datasync", "open_sync"];
/// Where a method that wins in `commit` must be no worse.
const FURTHER: &[(&str, &str)] = &[
    ("commit-64k", "with 64 KiB of WAL a commit"),
    ("bulk", "for 1 MiB of WAL and one flush"),
];
/// Fewest counted flushes a commit of a method that is recommended.
const LEAST_FLUSHES: f64 = 0.9;
const RATIO: &[&str] = &["ratio", "ratio_low", "ratio_high"];

/// The rule.
#[derive(Debug)]
pub struct WalSyncMethod;

impl Rule for WalSyncMethod {
    fn id(&self) -> &'static str {
        "wal-sync-method"
    }

    fn settings(&self) -> &'static [&'static str] {
        &[SETTING]
    }

    fn page(&self) -> &'static str {
        include_str!("../../docs/rules/wal-sync-method.md")
    }

    fn judge(&self, view: &View<'_>) -> Vec<Saying> {
        vec![judge(view)]
    }
}

fn judge(view: &View<'_>) -> Saying {
    let base = match view.measured("sync", "commit", DEFAULT) {
        Ok(base) => base,
        Err(gap) => {
            let lead = "every method is compared with fdatasync";
            return Gap::told(SETTING, lead, &[gap]);
        }
    };
    let standings: Vec<(&str, Standing<'_>)> = OTHERS
        .iter()
        .map(|method| (*method, standing(view, method)))
        .collect();
    let best = standings
        .iter()
        .filter_map(|(method, standing)| match standing {
            Standing::Fit(legs) => Some((*method, legs, legs.first()?.ratio()?.ratio)),
            _ => None,
        })
        .min_by(|a, b| a.2.total_cmp(&b.2));
    if let Some((method, legs, _)) = best {
        return told::change(view, base, method, legs);
    }
    let gaps: Vec<Gap> = standings
        .iter()
        .filter_map(|(_, standing)| match standing {
            Standing::Open(gaps) => Some(gaps.clone()),
            _ => None,
        })
        .flatten()
        .collect();
    if !gaps.is_empty() {
        return Gap::told(SETTING, "", &gaps);
    }
    let unfit = standings
        .into_iter()
        .filter_map(|(method, standing)| match standing {
            Standing::Unfit(unfit) => Some((method, unfit)),
            _ => None,
        })
        .collect();
    told::keep(view, base, unfit)
}
