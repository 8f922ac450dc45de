//! `walprobe list`: the catalogue, as the probes themselves plan it.
//!
//! Nothing is known of a target here, so a plan may be shorter or longer on a real one;
//! `--dry-run` tells.

use std::fmt::Write as _;

use walprobe_probes::{
    PROBES,
    contract::{Case, Group, Need, Probe},
    facts::Facts,
    request::{Beside, DropCaches, Profile, Request, Selection},
};

use crate::size::show;

/// The text of the list.
#[must_use]
pub fn list() -> String {
    let mut text = String::new();
    for probe in PROBES {
        describe(*probe, &mut text);
    }
    text.push_str(
        "* what the others of its comparison are compared with\n\
         profile: the smallest that measures the case; an id or a part of it is what \
         --only and --skip take\n",
    );
    text
}

/// Together they have every case.
const PLANS: [(Profile, Beside); 5] = [
    (Profile::Quick, Beside::Read),
    (Profile::Normal, Beside::Read),
    (Profile::Thorough, Beside::Read),
    (Profile::Quick, Beside::Write),
    (Profile::Quick, Beside::Fsync),
];

/// Every case of every profile as `PROBE`, `COMPARISON`, `CASE`, and the case it is compared
/// with; those that need an option too.
#[must_use]
pub fn cases() -> Vec<(String, String, String, Option<String>)> {
    let mut cases = Vec::new();
    for probe in PROBES {
        for (profile, beside) in PLANS {
            let request = Request {
                beside: Some(beside),
                cycles: Some(1),
                rewrites: Some(1),
                ..request(profile)
            };
            for group in probe.plan(&request, &Facts::default()) {
                for comparison in &group.compare {
                    let members = group.members(comparison).into_iter().map(|(name, _)| name);
                    for name in members.chain(comparison.same.iter().map(|same| same.name)) {
                        let case = (
                            group.probe.to_owned(),
                            comparison.id.to_string(),
                            name.to_owned(),
                            comparison.baseline.as_ref().map(ToString::to_string),
                        );
                        if !cases.contains(&case) {
                            cases.push(case);
                        }
                    }
                }
            }
        }
    }
    cases
}

/// The options that measure what a selection asks for; none where nothing does.
#[must_use]
pub fn measured_with(selection: &Selection) -> Option<String> {
    let wanted = |request: &Request| {
        PROBES.iter().any(|probe| {
            let groups = probe.plan(request, &Facts::default());
            groups.iter().any(|group| {
                group.compare.iter().any(|comparison| {
                    let mut members = group.members(comparison).into_iter();
                    members.any(|(name, _)| selection.wants(group.probe, &comparison.id, name))
                })
            })
        })
    };
    for profile in [Profile::Quick, Profile::Normal, Profile::Thorough] {
        if wanted(&request(profile)) {
            return Some(format!("--profile {}", profile.as_str()));
        }
    }
    let beside = Beside::ALL.into_iter();
    let beside = beside.map(|b| (format!("--beside {}", b.as_str()), Some(b), None));
    beside
        .chain([("--cycles N".to_owned(), None, Some(1))])
        .find(|(_, beside, cycles)| {
            wanted(&Request {
                beside: *beside,
                cycles: *cycles,
                rewrites: *cycles,
                ..request(Profile::Thorough)
            })
        })
        .map(|(option, ..)| option)
}

/// One line of a probe's table.
struct Line {
    id: String,
    profile: &'static str,
    op: String,
    space: String,
    needs: String,
}

fn describe(probe: &dyn Probe, text: &mut String) {
    let card = probe.card();
    let _ = writeln!(text, "{}: {}", card.id, card.question);
    if !card.needs.is_empty() {
        let _ = writeln!(text, "  needs {}", needs(card.needs));
    }
    let lines = lines(probe);
    let width = lines.iter().map(|l| l.id.len()).max().unwrap_or(0);
    let head = Line {
        id: "case".to_owned(),
        profile: "profile",
        op: "writes/op".to_owned(),
        space: "space".to_owned(),
        needs: "needs".to_owned(),
    };
    for line in std::iter::once(&head).chain(&lines) {
        let row = format!(
            "  {:<width$}  {:<8}  {:>9}  {:>9}  {}",
            line.id, line.profile, line.op, line.space, line.needs
        );
        let _ = writeln!(text, "{}", row.trim_end());
    }
    text.push('\n');
}

/// Every case of every profile once, with the smallest profile that has it.
fn lines(probe: &dyn Probe) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for profile in [Profile::Quick, Profile::Normal, Profile::Thorough] {
        for group in probe.plan(&request(profile), &Facts::default()) {
            for line in of_group(&group, profile) {
                if lines.iter().all(|l| l.id != line.id) {
                    lines.push(line);
                }
            }
        }
    }
    lines
}

fn of_group(group: &Group, profile: Profile) -> impl Iterator<Item = Line> {
    group.compare.iter().flat_map(move |comparison| {
        let id = move |name: &str| format!("{}/{}/{name}", group.probe, comparison.id);
        let same = comparison.same.iter().map(move |same| Line {
            id: id(same.name),
            profile: profile.as_str(),
            op: "-".to_owned(),
            space: "-".to_owned(),
            needs: format!("the same as {}", same.of),
        });
        group
            .members(comparison)
            .into_iter()
            .map(move |(name, at)| {
                let case = &group.cases[at];
                let mark = if comparison.baseline.as_deref() == Some(name) {
                    "*"
                } else {
                    ""
                };
                Line {
                    id: id(name) + mark,
                    profile: profile.as_str(),
                    op: show(case.op_bytes),
                    space: show(case.file_bytes),
                    needs: needs_of(case),
                }
            })
            .chain(same)
    })
}

fn needs_of(case: &Case) -> String {
    needs(&case.needs)
}

fn needs(needs: &[Need]) -> String {
    let words: Vec<String> = needs.iter().map(need).collect();
    words.join(", ")
}

fn need(need: &Need) -> String {
    match need {
        Need::Root => "root".to_owned(),
        Need::ColdHook => "a way to drop caches".to_owned(),
        Need::Fill => "--fill".to_owned(),
        Need::Kernel(major, minor) => format!("Linux {major}.{minor}"),
    }
}

/// A request of nobody's: the defaults.
fn request(profile: Profile) -> Request {
    Request {
        dir: String::new(),
        run_id: String::new(),
        probes: PROBES.iter().map(|p| p.card().id.to_owned()).collect(),
        only: Vec::new(),
        skip: Vec::new(),
        profile,
        time_s: profile.seconds(),
        budget_bytes: profile.budget_bytes(),
        seed: 0,
        drop_caches: DropCaches::Auto,
        commit_bytes: None,
        segment_bytes: 16 << 20,
        syncs: None,
        force: false,
        dry_run: true,
        op_timeout_s: 60.0,
        ..Request::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walprobe_probes::contract::{Card, Comparison, Lab, Run, Stop};

    struct Fake;

    impl Probe for Fake {
        fn card(&self) -> &'static Card {
            &Card {
                id: "fake",
                question: "is it listed?",
                needs: &[Need::Kernel(6, 17)],
                page: "docs/probes/fake.md",
            }
        }

        fn plan(&self, request: &Request, _facts: &Facts) -> Vec<Group> {
            let case = |name: &str| Case {
                name: name.to_owned(),
                needs: vec![Need::Root],
                op_bytes: 8192,
                file_bytes: 16 << 20,
                ..Case::default()
            };
            let mut cases = vec![case("a"), case("b")];
            if request.profile == Profile::Thorough {
                cases.push(case("c"));
            }
            vec![Group {
                probe: "fake",
                weight: 1.0,
                cases,
                compare: vec![Comparison::judged("one", "one", "a")],
            }]
        }

        fn open(&self, _case: &Case, _lab: &mut Lab<'_>) -> Result<Run, Stop> {
            Err(Stop::Broken("it is never opened".to_owned()))
        }
    }

    #[test]
    fn cases_are_listed_once_with_their_smallest_profile() {
        let mut text = String::new();
        describe(&Fake, &mut text);
        insta::assert_snapshot!(text, @r"
        fake: is it listed?
          needs Linux 6.17
          case         profile   writes/op      space  needs
          fake/one/a*  quick         8 KiB     16 MiB  root
          fake/one/b   quick         8 KiB     16 MiB  root
          fake/one/c   thorough      8 KiB     16 MiB  root
        ");
    }

    #[test]
    fn what_this_run_does_not_plan_is_told_with_its_option() {
        let told =
            |pattern: &str| measured_with(&Selection::new(&[pattern.to_owned()], &[]).unwrap());
        for (pattern, option) in [
            ("sync/commit", "--profile quick"),
            ("recycle/overwrite/*", "--profile normal"),
            ("recycle/life-bulk", "--profile thorough"),
            ("recycle/beside", "--beside read"),
            ("commit/beside", "--beside read"),
            ("prealloc/cycles", "--cycles N"),
        ] {
            assert_eq!(told(pattern).as_deref(), Some(option), "{pattern}");
        }
        assert_eq!(told("nonsense"), None);
    }
}
