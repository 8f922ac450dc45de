//! A probe is one file, one line in the catalogue, one page: none without the others.

use std::{collections::BTreeSet, fs, path::Path};

use walprobe_probes::PROBES;

fn stems(dir: &Path, wanted: impl Fn(&Path) -> bool) -> BTreeSet<String> {
    fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| wanted(path))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect()
}

#[test]
fn each_page_has_a_probe_and_each_probe_a_page_and_a_file() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ids: BTreeSet<String> = PROBES.iter().map(|p| p.card().id.to_owned()).collect();
    assert_eq!(ids.len(), PROBES.len(), "an id is used twice");
    let pages = stems(&here.join("../docs/probes"), |p| {
        p.extension().is_some_and(|e| e == "md")
    });
    assert_eq!(pages, ids);
    let files = stems(&here.join("src"), |_| true);
    assert!(ids.is_subset(&files), "{ids:?}");
    // A file that implements a probe and is in no catalogue would never run.
    let probing = stems(&here.join("src"), |path| {
        let main = [path.to_owned(), path.join("mod.rs")];
        main.iter()
            .any(|p| fs::read_to_string(p).is_ok_and(|t| t.contains("impl Probe for")))
    });
    assert_eq!(probing, ids);
}

#[test]
fn each_page_asks_its_probes_question() {
    for probe in PROBES {
        let card = probe.card();
        let title = card.page.lines().next().unwrap();
        assert_eq!(title, format!("# {}: {}", card.id, card.question));
    }
}
