//! What walprobe refuses: exit code 2, an empty stdout, one `walprobe:` line, nothing touched.

use std::fs;
use std::path::Path;

use libtest_mimic::Trial;
use walprobe_test_support::mounts::Mounted;
use walprobe_test_support::process::Finished;
use walprobe_test_support::recipe::{Kind, Recipe};
use walprobe_test_support::tree::Tree;
use walprobe_test_support::work::{self, WorkFolder};
use walprobe_test_support::{Checked, Problem, trial};

use crate::{LIMIT, Place, TMP, walprobe};

pub(crate) fn trials(_seed: u64) -> Vec<Trial> {
    vec![
        trial("refused::usage", usage),
        trial("refused::missing", missing),
        trial("refused::not-a-directory", not_a_directory),
        trial("refused::not-writable", not_writable),
        trial("refused::read-only", read_only),
        trial("refused::no-space", no_space),
        trial("refused::pg-wal", || looks_live(pg_wal)),
        trial("refused::data-directory", || looks_live(data_directory)),
        trial("refused::foreign-output-file", foreign_output_file),
    ]
}

/// The rules of a refusal.
pub(crate) fn refused(finished: &Finished) -> Checked {
    finished.expect_code(2)?;
    if !finished.stdout.is_empty() {
        return Err(format!("stdout is {:?}", String::from_utf8_lossy(&finished.stdout)).into());
    }
    let says = finished
        .stderr
        .lines()
        .any(|line| line.starts_with("walprobe:") || line.starts_with("error:"));
    if !says {
        return Err(format!("stderr does not say why: {:?}", finished.stderr).into());
    }
    Ok(())
}

/// Every probe command refuses the directory.
fn all_refuse(dir: &Path) -> Checked {
    for command in ["all", "durability", "sync", "prealloc", "recycle", "align"] {
        let finished = walprobe()
            .arg(command)
            .arg(dir)
            .args(["--format", "json", "--time", "2", "--profile", "quick"])
            .run(LIMIT)?;
        refused(&finished)?;
    }
    Ok(())
}

fn usage() -> Checked {
    let place = Place::new()?;
    let dir = place.dir().display().to_string();
    for line in [
        vec!["all"],
        vec!["no-such-command", &dir],
        vec!["all", &dir, "--profile", "nonsense"],
        vec!["all", &dir, "--time", "-1"],
        vec!["all", &dir, "--format", "nonsense"],
        vec!["all", &dir, "--drop-caches", "nonsense"],
    ] {
        let finished = walprobe().args(&line).run(LIMIT)?;
        refused(&finished).map_err(|problem| match problem {
            Problem::Failed(text) => Problem::Failed(format!("{line:?}: {text}")),
            other => other,
        })?;
    }
    Ok(place.bystanders.untouched()?)
}

fn missing() -> Checked {
    let place = Place::new()?;
    all_refuse(&place.dir().join("nowhere"))?;
    Ok(place.bystanders.untouched()?)
}

fn not_a_directory() -> Checked {
    let place = Place::new()?;
    for name in ["notes.txt", "seg-2", "dangling", "fifo"] {
        all_refuse(&place.dir().join(name))?;
    }
    Ok(place.bystanders.untouched()?)
}

fn not_writable() -> Checked {
    if rustix::process::geteuid().is_root() {
        return Err(Problem::missing(
            "user",
            "root may write everywhere (user::safety asks this as an ordinary user)",
        ));
    }
    all_refuse(Path::new("/"))
}

fn read_only() -> Checked {
    let recipe = Recipe::new(Kind::Ext4).sized(64 << 20);
    let mounted = Mounted::new(&work::base(TMP), &recipe)?;
    mounted.remount("ro")?;
    let before = Tree::read(mounted.point())?;
    all_refuse(mounted.point())?;
    before.unchanged(mounted.point())?;
    Ok(mounted.undo()?)
}

fn no_space() -> Checked {
    let recipe = Recipe::new(Kind::Tmpfs).sized(1 << 20);
    let mounted = Mounted::new(&work::base(TMP), &recipe)?;
    let before = Tree::read(mounted.point())?;
    all_refuse(mounted.point())?;
    before.unchanged(mounted.point())?;
    Ok(mounted.undo()?)
}

/// A directory that looks live is refused, and measured with `--force`.
fn looks_live(furnish: fn(&Path) -> std::io::Result<()>) -> Checked {
    let work = WorkFolder::new(&work::base(TMP))?;
    let dir = work.folder("dir")?;
    furnish(&dir)?;
    let before = Tree::read(&dir)?;
    all_refuse(&dir)?;
    before.unchanged(&dir)?;
    let forced = walprobe()
        .arg("durability")
        .arg(&dir)
        .args(["--format", "json", "--force"])
        .run(LIMIT)?;
    forced.expect_code(0)?;
    Ok(before.unchanged(&dir)?)
}

fn pg_wal(dir: &Path) -> std::io::Result<()> {
    fs::create_dir(dir.join("archive_status"))?;
    fs::create_dir(dir.join("summaries"))?;
    for segment in ["000000010000000000000001", "000000010000000000000002"] {
        fs::File::create(dir.join(segment))?.set_len(16 << 20)?;
    }
    Ok(())
}

fn data_directory(dir: &Path) -> std::io::Result<()> {
    fs::write(dir.join("PG_VERSION"), "18\n")?;
    fs::write(dir.join("postgresql.conf"), "")?;
    fs::write(dir.join("postmaster.pid"), "1\n")?;
    for folder in ["base", "global", "pg_wal", "pg_xact"] {
        fs::create_dir(dir.join(folder))?;
    }
    fs::write(dir.join("global/pg_control"), [0; 8192])?;
    pg_wal(&dir.join("pg_wal"))
}

/// An output file that walprobe did not write is not replaced, and nothing is measured.
fn foreign_output_file() -> Checked {
    let place = Place::new()?;
    for (option, name) in [
        ("--json", "precious.json"),
        ("--csv", "precious.csv"),
        ("--conf", "precious.conf"),
    ] {
        let path = place.outside(name);
        fs::write(&path, "the user's\n")?;
        let finished = walprobe()
            .arg("durability")
            .arg(place.dir())
            .args(["--format", "json", option])
            .arg(&path)
            .run(LIMIT)?;
        refused(&finished)?;
        if fs::read_to_string(&path)? != "the user's\n" {
            return Err(format!("{name} was replaced").into());
        }
    }
    Ok(place.bystanders.untouched()?)
}
