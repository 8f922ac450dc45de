//! Facts of the running system and of recorded trees.
//!
//! `WALPROBE_FACTS_OF=DIR cargo test -p walprobe-probes --test facts print -- --nocapture`
//! prints the facts of a directory, and what system calls answered, as a recorded tree's
//! `stat.json` holds it.

use std::{fs::File, os::fd::AsFd, path::Path};

use walprobe_probes::facts::{self, Facts, Held, Roots};

fn of(dir: &Path) -> Facts {
    let held = File::open(dir).unwrap();
    facts::read(held.as_fd(), &dir.to_string_lossy(), &Roots::default())
}

#[test]
#[expect(clippy::print_stdout, reason = "printing is what it is for")]
fn print_the_facts_of_a_directory() {
    let dir = std::env::var_os("WALPROBE_FACTS_OF").unwrap_or_else(|| "/tmp".into());
    let dir = Path::new(&dir).canonicalize().unwrap();
    let facts = of(&dir);
    let held = Held::of_dir(File::open(&dir).unwrap().as_fd());
    println!("{}", serde_json::to_string(&held).unwrap());
    for (name, fact) in facts.host.iter().chain(&facts.target) {
        let why = fact.why.as_deref().unwrap_or_default();
        println!("{name:31} {} [{}] {why}", fact.value, fact.source);
    }
    for device in &facts.devices {
        println!("{}", serde_json::to_string(device).unwrap());
    }
}
