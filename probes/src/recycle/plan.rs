//! What is planned: groups, their cases, and how much of a segment each walks.

use std::collections::BTreeMap;

use serde_json::json;

use crate::{
    cache::child,
    contract::{Case, Comparison, Group, Same, Series},
    facts::Facts,
    files::PAGE_BYTES,
    recycle::{
        CARD, LIVES, beside,
        walk::{FINISH, Pattern},
    },
    request::{Beside, DropCaches, Profile, Request},
    segment::Init,
};

/// The server's default: wal_recycle=on, wal_init_zero=on.
const BASELINE: &str = "recycle+zero";
/// WAL a commit of lives, unless the request says otherwise.
const LIFE_COMMIT_BYTES: u64 = 64 << 10;
/// The same of `overwrite`.
const OVERWRITE_COMMIT_BYTES: u64 = PAGE_BYTES;
/// Legs of a life.
const LEGS: &[Series] = &["get", "commit", "remove"];
/// Legs of a life with one sync at its end.
const BULK_LEGS: &[Series] = &["get", "commit", FINISH, "remove"];

/// What fills a new segment does not show in one that was written since.
const RECYCLED_SPARSE: Same = Same {
    name: "recycle+sparse",
    of: BASELINE,
    why: "an old segment was written once, however it was made",
};

/// All groups of a request; what decides about settings comes first.
pub(super) fn groups(request: &Request, facts: &Facts) -> Vec<Group> {
    let plan = Plan {
        request,
        lives_again: child::is_needed(request, facts),
        copies: facts.text("fs.in_place") == Some("no"),
        record: facts.number("zfs.recordsize_bytes").unwrap_or(0),
    };
    let asked = |default: u64| {
        let bytes = request.commit_bytes.unwrap_or(default);
        bytes.next_multiple_of(PAGE_BYTES)
    };
    let (life, small) = (asked(LIFE_COMMIT_BYTES), PAGE_BYTES);
    let mut groups = plan.lives("", Pattern::Pages(life));
    if request.profile != Profile::Quick {
        groups.extend(plan.lives("-8k", Pattern::Pages(small)));
        let pages = Pattern::Pages(asked(OVERWRITE_COMMIT_BYTES));
        let commits = [
            plan.commits("standby", Pattern::Chunks),
            plan.commits("overwrite", pages),
        ];
        let life = plan.life("life-standby", "recycle+zero@cold", Pattern::Chunks);
        // What decides about a setting comes first, unless the write budget may not do for it.
        let at = groups.len();
        groups.extend(commits);
        groups.insert(if plan.copies { groups.len() } else { at }, life);
    }
    if request.profile == Profile::Thorough {
        groups.push(plan.life("life-bulk", "recycle+zero@warm", Pattern::Bulk(life)));
    }
    if request.beside == Some(Beside::Read) {
        let bytes = beside::file_bytes(request, facts);
        groups.push(plan.beside(Pattern::Pages(life), bytes));
    }
    for group in &mut groups {
        let cold = group
            .cases
            .iter()
            .any(|c| c.params.get("cache") == Some(&json!("cold")));
        for case in &mut group.cases {
            case.beside_cold = cold;
        }
    }
    // A commit larger than the segment leaves nothing to walk.
    groups.retain(|g| g.cases.iter().all(|c| c.op_syncs > 0));
    groups
}

struct Plan<'r> {
    request: &'r Request,
    /// The filesystem never overwrites in place: it writes ten times a small commit's own bytes.
    copies: bool,
    /// A file becomes cold by being written, not by being dropped.
    lives_again: bool,
    /// What is read at once where a part of it is written; 0 where that is a block. Bytes.
    record: u64,
}

impl Plan<'_> {
    /// How much of a segment is walked: what fits the profile's write budget at least twelve times.
    /// Commits `alone` need no whole life to weigh them against.
    fn walked(&self, pattern: Pattern, alone: bool) -> u64 {
        let segment = self.request.segment_bytes;
        let large = matches!(pattern, Pattern::Pages(commit) if commit >= LIFE_COMMIT_BYTES);
        let either = |in_place: u64, copies: u64| if self.copies { copies } else { in_place };
        let wanted = match (self.request.profile, pattern) {
            (Profile::Quick, _) => 1 << 20,
            (Profile::Normal, Pattern::Chunks) => either(256 << 10, 128 << 10),
            (Profile::Normal, _) if alone => either(256 << 10, 128 << 10),
            (Profile::Normal, _) if large => either(4 << 20, 1 << 20),
            (Profile::Normal, _) => either(1 << 20, 256 << 10),
            // Twice as many syncs as in pages of 8 KiB: a whole segment would take too long.
            (Profile::Thorough, Pattern::Chunks) => either(4 << 20, 1 << 20),
            (Profile::Thorough, Pattern::Pages(_)) if !large => either(segment, 4 << 20),
            (Profile::Thorough, _) => segment,
        };
        let piece = match pattern {
            Pattern::Pages(commit) | Pattern::Bulk(commit) => commit,
            Pattern::Chunks => PAGE_BYTES,
        };
        // One record for the opening and one that stands for the others, at least.
        let least = piece.max(2 * self.record);
        wanted.max(least).min(segment) / piece * piece
    }

    /// What is walked before the walked part stands for the rest of a segment.
    fn opening(&self, pattern: Pattern) -> u64 {
        match pattern {
            Pattern::Pages(commit) | Pattern::Bulk(commit) => commit.max(self.record),
            Pattern::Chunks => PAGE_BYTES.max(self.record),
        }
    }

    /// One comparison while the old segments are warm and one while they are cold. A new segment has
    /// no past that could be cold, so the two share it, unless the drop is felt by new segments too.
    fn lives(&self, suffix: &str, pattern: Pattern) -> Vec<Group> {
        let (warm, cold) = (format!("life{suffix}"), format!("life-cold{suffix}"));
        if beyond_files(self.request).is_some() {
            return vec![
                self.life(&warm, "recycle+zero@warm", pattern),
                self.life(&cold, "recycle+zero@cold", pattern),
            ];
        }
        let cases = [
            "recycle+zero@cold",
            "recycle+zero@warm",
            "new+zero",
            "new+sparse",
        ];
        vec![Group {
            probe: CARD.id,
            weight: 1.5,
            cases: cases.map(|name| self.living(name, pattern)).to_vec(),
            compare: vec![
                life(&warm, "recycle+zero@warm", LEGS),
                life(&cold, "recycle+zero@cold", LEGS),
            ],
        }]
    }

    /// One comparison of lives; `old` is the recycled case.
    fn life(&self, id: &str, old: &str, pattern: Pattern) -> Group {
        let bulk = matches!(pattern, Pattern::Bulk(_));
        let cold = old.ends_with("@cold");
        let mut cases = [old, "new+zero", "new+sparse"].map(|name| self.living(name, pattern));
        for case in cases.iter_mut().skip(1).filter(|_| cold) {
            self.drop_too(case, self.request.segment_bytes);
        }
        Group {
            probe: CARD.id,
            weight: if bulk { 0.7 } else { 1.5 },
            cases: cases.to_vec(),
            compare: vec![life(id, old, if bulk { BULK_LEGS } else { LEGS })],
        }
    }

    /// Lives beside a reader: what old segments in the cache do to it.
    fn beside(&self, pattern: Pattern, file_bytes: u64) -> Group {
        let mut cases = ["new+sparse", "recycle+zero"].map(|name| {
            let mut case = self.living(name, pattern);
            // Old segments are left as they are, in the cache or out of it.
            case.prepare_each_op = false;
            case.params.remove("cache");
            case.params.insert("beside", json!("read"));
            case.params.insert("reader_file_bytes", json!(file_bytes));
            case
        });
        // Both read the same file.
        cases[0].file_bytes += file_bytes;
        Group {
            probe: CARD.id,
            weight: 1.5,
            cases: cases.to_vec(),
            compare: vec![Comparison {
                legs: LEGS,
                total: Some("total"),
                ..Comparison::judged("beside", "life", "new+sparse")
            }],
        }
    }

    fn living(&self, name: &str, pattern: Pattern) -> Case {
        let segment = self.request.segment_bytes;
        let walked = self.walked(pattern, false);
        let init = LIVES.iter().find(|(n, _)| *n == name).and_then(|l| l.1);
        let filled = if init == Some(Init::ZeroFill) {
            segment
        } else {
            0
        };
        let mut params = self.params(pattern, walked);
        params.insert("segment_bytes", json!(segment));
        params.insert("opening_bytes", json!(self.opening(pattern)));
        let cold = name.ends_with("@cold");
        let mut files = 1;
        if init.is_none() {
            let olds = self.segments(1);
            files += olds + u64::from(cold);
            params.insert("segments", json!(olds));
            params.insert("cache", json!(if cold { "cold" } else { "warm" }));
        }
        let syncs = pattern.syncs(walked);
        let again = if cold { self.written_to_be_cold() } else { 0 };
        Case {
            name: name.to_owned(),
            params,
            prepare_each_op: init.is_none(),
            max_ops: 1,
            op_bytes: filled + walked,
            file_bytes: segment * files,
            prepare_bytes: again * walked,
            op_syncs: if walked == 0 {
                0
            } else {
                (1 + again) * syncs + 6
            },
            ..Case::default()
        }
    }

    /// Commits alone, into files that are walked whole.
    fn commits(&self, id: &str, pattern: Pattern) -> Group {
        let walked = self.walked(pattern, true);
        let file = match self.request.profile {
            Profile::Thorough => self.request.segment_bytes,
            _ => walked,
        };
        let extra = self.request.profile == Profile::Thorough;
        let names = ["new", "warm", "cold", "cold-prefetched"];
        let cases = names.iter().take(if extra { 4 } else { 3 }).map(|&name| {
            let mut params = self.params(pattern, walked);
            params.insert("file_bytes", json!(file));
            let (new, ahead) = (name == "new", name == "cold-prefetched");
            let mut files = 1;
            if !new {
                let olds = self.segments(if ahead { 2 } else { 1 });
                files = olds + 1;
                params.insert("segments", json!(olds));
                params.insert("cache", json!(if name == "warm" { "warm" } else { "cold" }));
            }
            let walks = if ahead { 2 } else { 1 };
            let again = if new {
                0
            } else {
                walks * self.written_to_be_cold()
            };
            let mut case = Case {
                name: name.to_owned(),
                params,
                prepare_each_op: true,
                max_ops: 1,
                op_bytes: walks * walked + if new { file } else { 0 },
                file_bytes: file * files,
                prepare_bytes: again * walked,
                op_syncs: (walks + again) * pattern.syncs(walked),
                ..Case::default()
            };
            if new {
                self.drop_too(&mut case, file);
            }
            case
        });
        Group {
            probe: CARD.id,
            weight: 1.0,
            cases: cases.collect(),
            compare: vec![Comparison {
                detail: Some("commit"),
                ..Comparison::judged(id, "commit", "new")
            }],
        }
    }

    /// Walks before an operation that is to be cold: the old segment's and its witness's.
    const fn written_to_be_cold(&self) -> u64 {
        if self.lives_again { 2 } else { 0 }
    }

    /// A new segment among cold ones: the same drop before each operation where that takes more
    /// than files out of the cache, and nothing is claimed.
    fn drop_too(&self, case: &mut Case, segment: u64) {
        if let Some(hook) = beyond_files(self.request) {
            case.params.insert("cache", json!("dropped"));
            case.params.insert("dropped_by", json!(hook));
            case.prepare_each_op = true;
            // The drop is done to an old segment and its witness, as in the cold case.
            case.file_bytes += 2 * segment;
        }
    }

    fn segments(&self, least: u64) -> u64 {
        self.request.segments.unwrap_or(1).max(least)
    }

    fn params(&self, pattern: Pattern, walked: u64) -> BTreeMap<&'static str, serde_json::Value> {
        let mut params = BTreeMap::from_iter(pattern.params());
        params.insert("walked_bytes", json!(walked));
        params
    }
}

/// The hook, where it may drop more than the files that it is told of.
fn beyond_files(request: &Request) -> Option<&'static str> {
    match (&request.drop_caches_cmd, request.drop_caches) {
        (Some(_), _) => Some("cmd"),
        (None, hook @ (DropCaches::System | DropCaches::Zfs)) => Some(hook.as_str()),
        (None, DropCaches::Auto | DropCaches::None | DropCaches::Fadvise) => None,
    }
}

/// A comparison of lives by its id; `old` is the group's recycled case.
fn life(id: &str, old: &str, legs: &'static [Series]) -> Comparison {
    let names = [
        (BASELINE, old),
        ("new+zero", "new+zero"),
        ("new+sparse", "new+sparse"),
    ];
    Comparison {
        legs,
        total: Some("total"),
        detail: Some("commit"),
        same: vec![RECYCLED_SPARSE],
        names: names
            .map(|(row, own)| (row.to_owned(), own.to_owned()))
            .to_vec(),
        ..Comparison::judged(id, "life", BASELINE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Fact;

    /// Parameter of each case of recycled segments, by its comparison.
    fn of_recycled(record: Option<u64>, name: &str) -> BTreeMap<String, u64> {
        let mut facts = Facts::default();
        let mut put = |name: &str, value| {
            let source = "test".to_owned();
            let why = None;
            facts
                .target
                .insert(name.to_owned(), Fact { value, source, why });
        };
        put("fs.in_place", json!("no"));
        if let Some(bytes) = record {
            put("zfs.recordsize_bytes", json!(bytes));
        }
        let request = Request {
            profile: Profile::Normal,
            segment_bytes: 16 << 20,
            ..Request::default()
        };
        let groups = groups(&request, &facts);
        let lives = groups.iter().filter(|g| g.compare[0].total.is_some());
        lives
            .filter_map(|group| {
                let case = group.cases.iter().find(|c| c.name.ends_with("@cold"))?;
                let id = group.compare.last()?.id.clone();
                Some((id.to_string(), case.params.get(name)?.as_u64()?))
            })
            .collect()
    }

    #[test]
    fn a_record_is_opened_before_the_rest_is_reckoned() {
        let of = |record, name| of_recycled(record, name).into_values().collect::<Vec<_>>();
        // life-cold, life-cold-8k, life-standby.
        assert_eq!(of(None, "opening_bytes"), [64 << 10, 8 << 10, 8 << 10]);
        assert_eq!(
            of(Some(8 << 10), "opening_bytes"),
            [64 << 10, 8 << 10, 8 << 10]
        );
        assert_eq!(of(Some(128 << 10), "opening_bytes"), [128 << 10; 3]);
        assert_eq!(of(None, "walked_bytes"), [1 << 20, 256 << 10, 128 << 10]);
        let walked = of(Some(128 << 10), "walked_bytes");
        assert_eq!(walked, [1 << 20, 256 << 10, 256 << 10]);
        assert_eq!(of(Some(1 << 20), "walked_bytes"), [2 << 20; 3]);
    }
}
