//! A file of expectations: how a filesystem is made, what is run on it, what the
//! report must say.
//!
//! ```text
//! # A comment.
//! filesystem: ext4                    ext4, xfs, btrfs, tmpfs, overlay
//! mkfs: -b 1024                       optional; further arguments of mkfs
//! mount: barrier=0                    optional; mount options
//! on: tmpfs                           optional; the image lies in memory
//! size: 600                           optional; MiB
//!
//! run: all --profile quick            the first run; needs no name
//! durability.verdict = flushes-seen   one expectation a line, see `expect`
//! turned: durability.verdict = not-durable
//!
//! run warm: recycle --drop-caches none    a further run, on a fresh filesystem
//! recycle/life-cold/recycle+zero.cold = not-cold
//! ```
//!
//! A line marked `turned:` is an expectation turned round, which must be asked and must fail. Each
//! file has at least one, each run at most one. It shows that the file can fail at all.

use std::fs;
use std::path::Path;

use crate::expect::{Expectation, words};
use crate::recipe::{Base, Kind, Recipe};

/// A file of expectations.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    /// The file's name without its ending.
    pub name: String,
    /// The filesystem.
    pub recipe: Recipe,
    /// The runs, at least one.
    pub runs: Vec<Run>,
}

/// One run of walprobe.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Empty for the first.
    pub name: String,
    /// The probe or `all`, and options; the directory and the output options are added.
    pub arguments: Vec<String>,
    /// What must be so.
    pub expectations: Vec<Expectation>,
    /// What must be asked and fail.
    pub turned: Option<Expectation>,
}

impl Sheet {
    /// Reads all `*.expect` files of a folder, by name.
    ///
    /// # Errors
    /// A file that cannot be read, with its line.
    pub fn read_all(folder: &Path) -> Result<Vec<Self>, String> {
        let say = |error| format!("cannot read {}: {error}", folder.display());
        let mut sheets = Vec::new();
        for entry in fs::read_dir(folder).map_err(say)? {
            let path = entry.map_err(say)?.path();
            if path.extension().is_some_and(|ending| ending == "expect") {
                let name = path.file_stem().unwrap_or_default().to_string_lossy();
                let text = fs::read_to_string(&path).map_err(say)?;
                let sheet = Self::parse(&name, &text)
                    .map_err(|error| format!("{}:{error}", path.display()))?;
                sheets.push(sheet);
            }
        }
        if sheets.is_empty() {
            return Err(format!("no expectations in {}", folder.display()));
        }
        sheets.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(sheets)
    }

    /// Reads one file's text.
    ///
    /// # Errors
    /// `LINE: what is wrong`.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut recipe = None;
        let mut runs: Vec<Run> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let at = |error: &str| format!("{}: {error}", index + 1);
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let head = line.split_once(':').filter(|(key, _)| {
                key.chars()
                    .all(|letter| letter.is_ascii_lowercase() || letter == ' ')
            });
            match (head, &mut recipe, runs.last_mut()) {
                (Some(("filesystem", kind)), recipe @ None, _) => {
                    let kind = Kind::named(kind.trim()).ok_or_else(|| at("no such filesystem"))?;
                    *recipe = Some(Recipe::new(kind));
                }
                (Some(("turned", rest)), _, Some(run)) if run.turned.is_none() => {
                    run.turned = Some(Expectation::parse(rest).map_err(|error| at(&error))?);
                }
                (Some((key, rest)), Some(recipe), _) => {
                    let values = words(rest).map_err(|error| at(&error))?;
                    if let Some(run) = key.strip_prefix("run") {
                        runs.push(Run {
                            name: run.trim().to_owned(),
                            arguments: values,
                            expectations: Vec::new(),
                            turned: None,
                        });
                    } else {
                        head_line(recipe, key, values).map_err(|error| at(&error))?;
                    }
                }
                (None, _, Some(run)) => {
                    let expectation = Expectation::parse(line).map_err(|error| at(&error))?;
                    run.expectations.push(expectation);
                }
                _ => return Err(at("out of place: filesystem, then run, then expectations")),
            }
        }
        let recipe = recipe.ok_or("1: no filesystem")?;
        let turned = runs.iter().filter(|run| run.turned.is_some()).count();
        if turned == 0 {
            return Err("1: no line is turned".to_owned());
        }
        let names: Vec<_> = runs.iter().map(|run| run.name.as_str()).collect();
        if names.iter().filter(|name| name.is_empty()).count() != 1 || !names[0].is_empty() {
            return Err(format!(
                "1: runs are named {names:?}; only the first is unnamed"
            ));
        }
        Ok(Self {
            name: name.to_owned(),
            recipe,
            runs,
        })
    }
}

fn head_line(recipe: &mut Recipe, key: &str, values: Vec<String>) -> Result<(), String> {
    match (key, values.as_slice()) {
        ("mkfs", [_, ..]) => recipe.mkfs = values,
        ("mount", [options]) => recipe.mount = Some(options.clone()),
        ("on", [base]) if base == "tmpfs" => recipe.on = Base::Tmpfs,
        ("size", [mib]) => {
            let mib: u64 = mib.parse().map_err(|_| "size is not a number of MiB")?;
            recipe.size_bytes = mib << 20;
        }
        _ => return Err(format!("{key}: {} is not known", values.join(" "))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# One filesystem.
filesystem: ext4
mkfs: -b 1024
mount: barrier=0
size: 300

run: all --profile quick
durability.verdict = no-flush-seen
turned: durability.verdict = flushes-seen

run warm: recycle --drop-caches none
recycle/life-cold/recycle+zero.cold = not-cold
";

    #[test]
    fn a_file_is_read() -> Result<(), String> {
        let sheet = Sheet::parse("ext4-barrier0", TEXT)?;
        assert_eq!(sheet.recipe.mkfs, ["-b", "1024"]);
        assert_eq!(sheet.recipe.mount.as_deref(), Some("barrier=0"));
        assert_eq!(sheet.recipe.size_bytes, 300 << 20);
        assert_eq!(sheet.runs.len(), 2);
        assert_eq!(sheet.runs[0].arguments, ["all", "--profile", "quick"]);
        assert_eq!(sheet.runs[0].expectations.len(), 1);
        assert!(sheet.runs[0].turned.is_some());
        assert_eq!(sheet.runs[1].name, "warm");
        assert!(sheet.runs[1].turned.is_none());
        Ok(())
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (from, to, said) in [
            ("ext4", "ext5", "2: no such filesystem"),
            (
                "turned: durability.verdict = flushes-seen",
                "",
                "no line is turned",
            ),
            ("mount: barrier=0", "mounted: barrier=0", "4: mounted"),
            ("= no-flush-seen", "~ no-flush-seen", "8: ~ with 1 values"),
            ("run warm:", "run:", "only the first is unnamed"),
            ("filesystem: ext4\n", "", "2: out of place"),
        ] {
            let error = Sheet::parse("x", &TEXT.replace(from, to)).err();
            let error = error.unwrap_or_default();
            assert!(error.contains(said), "{from} -> {to}: {error:?}");
        }
        let twice = format!("{TEXT}turned: target.status = ok\nturned: target.status = ok\n");
        assert!(Sheet::parse("x", &twice).is_err());
    }
}
