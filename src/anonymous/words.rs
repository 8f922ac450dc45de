//! Names in mount options and on the command line.

use clap::{Arg, Command, ValueHint};

use super::directory;
use crate::cli;

/// Mount sources that are nobody's.
pub(super) const NO_SOURCES: &[&str] = &["none", "overlay", "tmpfs", "shm", "rootfs", "/dev/root"];

/// Mount options whose values are no names of people, hosts or places.
const PLAIN: &[&str] = &[
    "acdirmax",
    "acdirmin",
    "acregmax",
    "acregmin",
    "allocsize",
    "barrier",
    "blksize",
    "cache",
    "commit",
    "compress",
    "compress-force",
    "compression",
    "data",
    "discard",
    "errors",
    "fsc",
    "hard",
    "huge",
    "index",
    "inode32",
    "inode64",
    "journal_ioprio",
    "local_lock",
    "logbsize",
    "logbufs",
    "lookupcache",
    "max_read",
    "metacopy",
    "minorversion",
    "mode",
    "msize",
    "namlen",
    "nconnect",
    "nfs_export",
    "nr_blocks",
    "nr_inodes",
    "proto",
    "recordsize",
    "redirect_dir",
    "retrans",
    "rsize",
    "sec",
    "size",
    "soft",
    "space_cache",
    "stripe",
    "subvolid",
    "sunit",
    "swidth",
    "timeo",
    "trans",
    "vers",
    "wsize",
    "xino",
];

/// Mount options, each other value as `HIDDEN`.
pub(super) fn options(options: &str) -> String {
    let plain = |option: &str| match option.split_once('=') {
        Some((key, _)) if !PLAIN.contains(&key) => format!("{key}=HIDDEN"),
        _ if option.contains('/') => "HIDDEN".to_owned(),
        _ => option.to_owned(),
    };
    let all: Vec<String> = options.split(',').map(plain).collect();
    all.join(",")
}

/// The command line: what to do stays, where does not.
pub(super) fn argv(argv: &[String]) -> Vec<String> {
    let command = cli::command();
    let sub = argv.get(1).and_then(|name| command.find_subcommand(name));
    let Some(sub) = sub else {
        return vec!["walprobe".to_owned()];
    };
    let mut out = vec!["walprobe".to_owned(), argv[1].clone()];
    let mut dirs = 0;
    let mut value_of: Option<&Arg> = None;
    let mut only_dirs = false;
    for word in &argv[2..] {
        if let Some(option) = value_of.take() {
            out.push(value(option, word));
        } else if word == "--" && !only_dirs {
            only_dirs = true;
            out.push(word.clone());
        } else if let Some(long) = word.strip_prefix("--").filter(|_| !only_dirs) {
            let (name, given) = match long.split_once('=') {
                Some((name, given)) => (name, Some(given)),
                None => (long, None),
            };
            let option = find(sub, name);
            match (option, given) {
                (Some(option), Some(given)) => {
                    out.push(format!("--{name}={}", value(option, given)));
                }
                (option, None) => {
                    out.push(word.clone());
                    value_of = option.filter(|o| o.get_action().takes_values());
                }
                (None, Some(_)) => out.push(format!("--{name}=HIDDEN")),
            }
        } else {
            out.push(directory(dirs));
            dirs += 1;
        }
    }
    out
}

fn find<'a>(command: &'a Command, long: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|a| a.get_long() == Some(long))
}

fn value(option: &Arg, word: &str) -> String {
    let command = option.get_long().is_some_and(|l| l.ends_with("-cmd"));
    match option.get_value_hint() {
        _ if command => "COMMAND".to_owned(),
        ValueHint::FilePath | ValueHint::DirPath | ValueHint::AnyPath => "FILE".to_owned(),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_keep_what_is_no_name() {
        assert_eq!(
            options("rw,data=ordered,addr=10.0.0.1,subvol=/bob,compress=zstd:3,upperdir=/x"),
            "rw,data=ordered,addr=HIDDEN,subvol=HIDDEN,compress=zstd:3,upperdir=HIDDEN"
        );
    }

    #[test]
    fn the_command_line_keeps_what_was_asked() {
        let line = "/home/bob/walprobe all --json /tmp/db1.json --only sync/* --csv=x.csv \
                    --anonymous /mnt/a b -- --c";
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        assert_eq!(
            argv(&words).join(" "),
            "walprobe all --json FILE --only sync/* --csv=FILE --anonymous DIR-1 DIR-2 -- DIR-3"
        );
        assert_eq!(argv(&["/x/y".to_owned()]), ["walprobe"]);
    }
}
