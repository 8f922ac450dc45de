//! The names nearest to a misspelt one.

/// At most three, the nearest first; none where none is near.
pub(super) fn nearest<'a>(name: &str, all: &'a [String]) -> Vec<&'a str> {
    let name: Vec<char> = name.to_lowercase().chars().take(100).collect();
    let far = (name.len() / 3).max(1);
    let mut near: Vec<(usize, &str)> = Vec::new();
    for other in all {
        let letters: Vec<char> = other.to_lowercase().chars().collect();
        let distance = distance(&name, &letters);
        if distance <= far && near.iter().all(|(_, known)| known != other) {
            near.push((distance, other));
        }
    }
    near.sort_by_key(|(distance, _)| *distance);
    near.truncate(3);
    near.into_iter().map(|(_, name)| name).collect()
}

/// Letters to insert, remove or change (Levenshtein).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        let of = |a: &str, b: &str| {
            let letters = |s: &str| s.chars().collect::<Vec<_>>();
            distance(&letters(a), &letters(b))
        };
        assert_eq!(of("kitten", "sitting"), 3);
        assert_eq!(of("", "abc"), 3);
        assert_eq!(of("abc", "abc"), 0);
    }

    #[test]
    fn only_what_is_near_and_each_once() {
        let all = ["drift", "steal", "drift", "sync/commit"].map(str::to_owned);
        assert_eq!(nearest("dirft", &all), [""; 0]);
        assert_eq!(nearest("drif", &all), ["drift"]);
        assert_eq!(nearest("Sync/comit", &all), ["sync/commit"]);
        assert_eq!(nearest("x", &all), [""; 0]);
    }
}
