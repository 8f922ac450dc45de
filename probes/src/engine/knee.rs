//! From how many on do more of them bring no more? For cases that differ in one number of their
//! `params`, told of each method on the row with the least of them.

use serde_json::{Value, json};

use crate::report::{Row, RowStatus};

/// A rate that reaches this share of the best is as good as the best.
const NEAR: f64 = 0.9;

/// Adds `knee_NUMBER`: the least number that gives at least 90% of the best rate measured; null
/// where only the largest does, since more might give more.
pub(super) fn tell(rows: &mut [Row], number: &str) {
    let method = |row: &Row| row.params.get("method").cloned();
    let mut methods: Vec<Option<Value>> = rows.iter().map(method).collect();
    methods.dedup();
    for of in methods {
        let mut found: Vec<(u64, f64, usize)> = rows
            .iter()
            .enumerate()
            .filter(|(_, row)| row.status == RowStatus::Ok && method(row) == of)
            .filter_map(|(at, row)| Some((row.params.get(number)?.as_u64()?, row.ops_per_sec?, at)))
            .collect();
        found.sort_unstable_by_key(|(count, _, at)| (*count, *at));
        if let Some(knee) = knee(&found)
            && let [(_, _, at), _, ..] = found[..]
        {
            rows[at].observations.insert(
                format!("knee_{number}"),
                knee.map_or(Value::Null, |n| json!(n)),
            );
        }
    }
}

/// None where there is nothing to tell; inner none where the largest alone is near the best.
fn knee(found: &[(u64, f64, usize)]) -> Option<Option<u64>> {
    let best = found.iter().map(|f| f.1).reduce(f64::max)?;
    let first = found.iter().find(|f| f.1 >= NEAR * best)?;
    let last = found.last()?;
    Some((first.0 != last.0).then_some(first.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(method: &str, clients: u64, rate: f64) -> Row {
        let mut row = Row {
            ops_per_sec: Some(rate),
            ..Row::default()
        };
        row.params.insert("method".to_owned(), json!(method));
        row.params.insert("clients".to_owned(), json!(clients));
        row
    }

    fn told(mut rows: Vec<Row>) -> Vec<Option<Value>> {
        tell(&mut rows, "clients");
        let knee = |row: &Row| row.observations.get("knee_clients").cloned();
        rows.iter().map(knee).collect()
    }

    #[test]
    fn the_knee_is_where_more_bring_no_more() {
        let rows = vec![
            row("a", 1, 100.0),
            row("a", 2, 150.0),
            row("a", 4, 370.0),
            row("a", 8, 400.0),
            row("b", 1, 100.0),
            row("b", 8, 200.0),
        ];
        let seen = told(rows);
        assert_eq!(seen[0], Some(json!(4)));
        assert_eq!(seen[1..4], [None, None, None]);
        // It still rises where measuring ended.
        assert_eq!(seen[4], Some(Value::Null));
    }

    #[test]
    fn one_number_has_no_knee_and_a_failed_row_no_part() {
        assert_eq!(told(vec![row("a", 4, 1.0)]), [None]);
        let mut failed = row("a", 16, 9e9);
        failed.status = RowStatus::Fault;
        let seen = told(vec![row("a", 1, 95.0), row("a", 2, 100.0), failed]);
        assert_eq!(seen[0], Some(json!(1)));
    }
}
