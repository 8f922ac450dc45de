use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use super::*;

const JSON: &str = r#"{"schema": 1, "tool": {"name": "walprobe"}}"#;

fn checked(format: &str, path: &Path, force: bool) -> Result<Option<Stamp>, String> {
    match check(format, path.to_str().unwrap(), force) {
        Checked::File { stamp, .. } => Ok(stamp),
        Checked::Refused { message, .. } => Err(message),
        Checked::Direct { .. } => panic!("{path:?} is a file"),
    }
}

fn to_save(format: &str, path: &Path, text: &str, expected: Option<Stamp>) -> Save {
    Save {
        format: format.to_owned(),
        path: path.to_owned(),
        text: text.to_owned(),
        expected,
        last: true,
        sweep_before_s: None,
    }
}

fn saved(path: &Path, text: &str, expected: Option<Stamp>) -> Result<Stamp, String> {
    save(&to_save("json", path, text, expected)).map_err(|e| e.to_string())
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn only_what_walprobe_wrote_in_this_format_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let formats = [
        (
            "json",
            JSON,
            r#"{"schema": 1, "tool": {"name": "x"}}"#,
            "a JSON report",
        ),
        (
            "csv",
            "schema,run_id,started_at\n1,2,3\n",
            JSON,
            "a CSV report",
        ),
        (
            "conf",
            "# walprobe 0.1.0\n",
            "# my settings\n",
            "a file of settings",
        ),
    ];
    for (format, mine, other, called) in formats {
        let path = dir.path().join(format);
        fs::write(&path, mine).unwrap();
        assert!(checked(format, &path, false).is_ok(), "{format}");
        for other in [other, ""] {
            fs::write(&path, other).unwrap();
            let refused = checked(format, &path, false).unwrap_err();
            let expected = format!("it is not {called} of walprobe");
            assert!(refused.contains(&expected), "{refused}");
            assert!(checked(format, &path, true).is_ok(), "{format}");
            assert_eq!(fs::read_to_string(&path).unwrap(), other);
        }
    }
    assert_eq!(names(dir.path()), ["conf", "csv", "json"]);
}

#[test]
fn a_file_with_other_names_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (path, other) = (dir.path().join("a"), dir.path().join("b"));
    fs::write(&path, JSON).unwrap();
    fs::hard_link(&path, &other).unwrap();
    let refused = checked("json", &path, false).unwrap_err();
    assert!(refused.contains("hard links"), "{refused}");
    assert!(checked("json", &path, true).is_ok());
}

#[test]
fn a_document_replaces_the_old_one_and_keeps_owner_and_mode() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.json");
    fs::write(&path, JSON).unwrap();
    // Group write is what a umask would take away.
    set_mode(&path, 0o660);
    let root = std::os::unix::fs::chown(&path, Some(4321), Some(4322)).is_ok();
    let seen = checked("json", &path, false).unwrap();
    let first = saved(&path, "one", seen).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    saved(&path, "two", Some(first)).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    let metadata = path.metadata().unwrap();
    assert_eq!(metadata.mode() & 0o777, 0o660);
    if root {
        assert_eq!((metadata.uid(), metadata.gid()), (4321, 4322));
    }
    assert_eq!(names(dir.path()), ["r.json"]);
}

#[test]
fn what_others_put_there_meanwhile_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.json");
    fs::write(&path, "mine").unwrap();
    assert!(saved(&path, "x", None).unwrap_err().contains("appeared"));
    fs::remove_file(&path).unwrap();

    let first = saved(&path, "one", None).unwrap();
    fs::write(&path, "mine").unwrap();
    let refused = saved(&path, "x", Some(first)).unwrap_err();
    assert!(refused.contains("changed by others"), "{refused}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");

    // Another file under the name, though a report: it is not the one that was written.
    let held = File::open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, JSON).unwrap();
    assert!(saved(&path, "x", Some(first)).is_err());
    drop(held);

    fs::remove_file(&path).unwrap();
    saved(&path, "two", Some(first)).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    assert_eq!(names(dir.path()), ["r.json"]);
}

#[test]
fn a_name_that_appears_at_the_last_moment_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.json");
    let unnamed = Aside::new(&path).unwrap();
    let named = Aside::Named(tempfile::NamedTempFile::new_in(dir.path()).unwrap());
    fs::write(&path, "mine").unwrap();
    for aside in [unnamed, named] {
        let e = aside.place(&path, false).unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::AlreadyExists);
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    assert_eq!(names(dir.path()), ["r.json"]);
}

#[test]
fn leftovers_go_and_nothing_like_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.json");
    let leftovers = [
        (".r.json.walprobe-aB3dE6", ""),
        (".r.json.walprobe-000000", "{\n  \"sch"),
        (".r.json.walprobe-111111", "{\n  \"schema\": 1,\n"),
    ];
    let others = [
        (".r.json.walprobe-222222", "mine"),
        (".r.json.walprobe-33333", ""),
        (".r.json.walprobe-4444444", ""),
        (".r.json.walprobe-55555-", ""),
        (".x.json.walprobe-666666", ""),
        ("r.json.walprobe-777777", ""),
    ];
    for (name, text) in leftovers.iter().chain(&others) {
        fs::write(dir.path().join(name), text).unwrap();
    }
    let mut what = to_save("json", &path, "x", None);
    what.sweep_before_s = Some(1);
    let stamp = save(&what).unwrap();
    assert_eq!(names(dir.path()).len(), 10, "none is older than the run");
    what.expected = Some(stamp);
    what.sweep_before_s = Some(i64::MAX);
    save(&what).unwrap();
    let left = names(dir.path());
    assert_eq!(left.len(), 1 + others.len(), "{left:?}");
    for (name, _) in others {
        assert!(left.iter().any(|n| n == name), "{name}");
    }
}

#[test]
fn a_link_stays_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let (real, link) = (dir.path().join("real"), dir.path().join("link"));
    fs::write(&real, JSON).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let Checked::File { path, stamp } = check("json", link.to_str().unwrap(), false) else {
        panic!("it is a file");
    };
    saved(&path, "x", stamp).unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "x");
}

#[test]
fn places_that_cannot_be_written_are_refused_with_their_path() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("no/such/r.json");
    let message = checked("json", &missing, false).unwrap_err();
    assert!(
        message.contains("no/such/r.json: No such file"),
        "{message}"
    );
    for path in [dir.path(), Path::new("/dev"), Path::new("/proc/self/fd")] {
        let message = checked("json", path, true).unwrap_err();
        assert!(message.contains("is a directory"), "{message}");
    }
    assert_eq!(names(dir.path()), [""; 0]);
}
