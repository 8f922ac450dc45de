//! Programs that play `zfs` and `zpool` in unit tests: they keep datasets as files, mount a tmpfs,
//! and refuse what OpenZFS refuses, in its words.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use crate::program::look_in;

const ZFS: &str = r#"
fail() { echo "$1" >&2; exit 1; }
bad() { echo "invalid option: $*" >&2; exit 2; }
at() { echo "$STATE/set-$(echo "$1" | tr / :)"; }
need() { [ -e "$(at "$1")" ] || fail "cannot open '$1': dataset does not exist"; }
value() { awk -F'\t' -v p="$2" '$1 == p {print $2}' "$(at "$1")"; }
put() { f=$(at "$1"); awk -F'\t' -v p="$2" '$1 != p' "$f" >"$f.new"; printf '%s\t%s\t%s\n' "$2" "$3" "$4" >>"$f.new"; mv "$f.new" "$f"; }
case "$1" in
  create|mount|set|inherit)
    [ -n "${BY_HAND-}" ] || readlink /proc/self/fd/0 | grep -q '/undo$' || fail "stdin is not the lock";;
esac
case "$1" in
  list) [ "$2 $3 $4" = "-H -o name" ] && [ -d "$5" ] || bad "$@"; echo tank/wal;;
  get)
    [ "$2 $3" = "-Hp -o" ] && [ $# = 6 ] || bad "$@"; need "$6"
    case "$4 $5" in
      "property,value,source all") cat "$(at "$6")";;
      "value "*) value "$6" "$5";;
      *) bad "$@";;
    esac;;
  create)
    shift; pairs=
    while [ "$1" = -o ]; do case "$2" in *=*) ;; *) bad "$2";; esac; pairs="$pairs$2
"; shift 2; done
    [ $# = 1 ] || bad "$@"; need "${1%/*}"
    [ ! -e "$(at "$1")" ] || fail "cannot create '$1': dataset already exists"
    [ ! -e "$STATE/no-create" ] || fail "cannot create '$1': permission denied"
    awk -F'\t' 'BEGIN {OFS = FS} $1 == "type" {print; next} {$3 = "inherited from tank/wal"; print}' "$(at "${1%/*}")" >"$(at "$1")"
    printf '%s' "$pairs" | while IFS== read -r k v; do put "$1" "$k" "$v" local; done
    [ ! -e "$STATE/other" ] || put "$1" compression zstd default
    put "$1" mounted no -;;
  mount)
    [ $# = 2 ] || bad "$@"; need "$2"
    [ ! -e "$STATE/no-mount" ] || fail "cannot mount '$2': Operation not permitted"
    mount -t tmpfs walprobe-test "$(value "$2" mountpoint)"; put "$2" mounted yes -;;
  unmount)
    [ $# = 2 ] || bad "$@"; need "$2"
    umount "$(value "$2" mountpoint)" 2>/dev/null || fail "cannot unmount '$(value "$2" mountpoint)': pool or dataset is busy"
    put "$2" mounted no -;;
  destroy)
    [ $# = 2 ] || bad "$@"; need "$2"
    [ "$(value "$2" mounted)" = no ] || fail "cannot destroy '$2': it is mounted"
    [ ! -e "$STATE/children" ] || fail "cannot destroy '$2': filesystem has children"
    if [ -s "$STATE/busy" ]; then sed -i 1d "$STATE/busy"; fail "cannot destroy '$2': dataset is busy"; fi
    rm "$(at "$2")";;
  set)
    [ $# = 3 ] || bad "$@"; need "$3"
    put "$3" "${2%%=*}" "${2#*=}" local;;
  inherit)
    [ $# = 3 ] || bad "$@"; need "$3"
    [ -e "$STATE/no-inherit" ] || put "$3" "$2" "$(value "${3%/*}" "$2")" "inherited from ${3%/*}";;
  *) bad "$@";;
esac
"#;

const ZPOOL: &str = r#"
case "$*" in
  "get -H -o value altroot tank") cat "$STATE/altroot" 2>/dev/null || echo -;;
  "sync tank") ;;
  *) echo "unrecognized command '$*'" >&2; exit 2;;
esac
"#;

/// The dataset that holds the directory.
pub(crate) const PARENT: &str = "tank/wal";

/// OpenZFS as this thread finds it.
pub(crate) struct Fake {
    state: tempfile::TempDir,
}

impl Fake {
    pub(crate) fn new() -> Self {
        let fake = Self {
            state: tempfile::tempdir().unwrap(),
        };
        fake.parent(&[]);
        for (name, body) in [("zfs", ZFS), ("zpool", ZPOOL)] {
            let state = fake.state.path().display();
            let head = format!(
                "#!/bin/sh\nset -eu\nSTATE='{state}'\necho \"{name} $*\" >>\"$STATE/calls\"\n"
            );
            fs::write(fake.at(name), head + body).unwrap();
            fs::set_permissions(fake.at(name), Permissions::from_mode(0o755)).unwrap();
        }
        look_in(Some(fake.state.path()));
        fake
    }

    fn at(&self, name: &str) -> PathBuf {
        self.state.path().join(name)
    }

    /// The parent's properties, some of them other than usual.
    pub(crate) fn parent(&self, other: &[(&str, &str)]) {
        let usual = [
            ("type", "filesystem"),
            ("mountpoint", "/tank/wal"),
            ("canmount", "on"),
            ("mounted", "yes"),
            ("recordsize", "131072"),
            ("compression", "lz4"),
            ("primarycache", "all"),
            ("encryption", "off"),
            ("zoned", "off"),
        ];
        let line = |(name, usual): (&str, &str)| {
            let other = other.iter().find(|(n, _)| *n == name);
            format!("{name}\t{}\tlocal\n", other.map_or(usual, |(_, v)| *v))
        };
        let text: String = usual.into_iter().map(line).collect();
        fs::write(self.at("set-tank:wal"), text).unwrap();
    }

    /// Sets a state that a program looks at.
    pub(crate) fn on(&self, what: &str) {
        fs::write(self.at(what), "1\n1\n").unwrap();
    }

    /// Ends it.
    pub(crate) fn off(&self, what: &str) {
        fs::remove_file(self.at(what)).unwrap();
    }

    /// Plays a change by hand.
    pub(crate) fn zfs(&self, words: &[&str]) {
        let done = std::process::Command::new(self.at("zfs"))
            .args(words)
            .env("BY_HAND", "1")
            .status()
            .unwrap();
        assert!(done.success(), "{words:?}");
    }

    /// Datasets besides the parent.
    pub(crate) fn datasets(&self) -> Vec<String> {
        let names = fs::read_dir(self.state.path()).unwrap().flatten();
        names
            .filter_map(|e| {
                Some(
                    e.file_name()
                        .to_str()?
                        .strip_prefix("set-")?
                        .replace(':', "/"),
                )
            })
            .filter(|name| name != PARENT)
            .collect()
    }

    /// The calls so far, the questions left out, without options.
    pub(crate) fn changes(&self) -> Vec<String> {
        let text = fs::read_to_string(self.at("calls")).unwrap_or_default();
        text.lines()
            .filter(|line| !line.contains(" get ") && !line.contains(" list "))
            .map(|line| match line.strip_prefix("zfs create ") {
                Some(_) => "zfs create".to_owned(),
                None => line.to_owned(),
            })
            .collect()
    }

    /// The words that made the last dataset.
    pub(crate) fn creation(&self) -> String {
        let text = fs::read_to_string(self.at("calls")).unwrap_or_default();
        let line = text.lines().rfind(|l| l.starts_with("zfs create "));
        line.unwrap_or_default().to_owned()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        look_in(None);
    }
}

/// Nothing is mounted below.
pub(crate) fn no_mount(dir: &Path) -> bool {
    let table = fs::read_to_string("/proc/self/mounts").unwrap();
    !table.contains(&format!("{}/", dir.display()))
}

/// Whether this test can be done.
pub(crate) fn may_mount(test: &str) -> bool {
    let may = rustix::process::geteuid().is_root();
    if !may {
        eprintln!("skipped: {test}: needs root");
    }
    may
}
