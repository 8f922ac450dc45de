//! `--drop-caches-cmd`: a program of the user's. It is run once for the file and once for the
//! witness, each time with the path in `WALPROBE_FILE`; it may drop that file, everything, or
//! unmount the filesystem and mount it again.

use std::{ffi::OsStr, path::Path};

use super::{Pair, let_go, limit, proof::After, stop};
use crate::{
    contract::{Lab, Stop},
    program::{Program, find},
};

/// The environment variable that names the file.
const FILE: &str = "WALPROBE_FILE";

pub(super) fn run(command: &[String], pair: Pair<'_>, lab: &Lab<'_>) -> Result<After, Stop> {
    let Some((name, arguments)) = command.split_first() else {
        let why = "--drop-caches-cmd names no program".to_owned();
        return Err(Stop::Skip("need-option", why));
    };
    let Some(path) = find(OsStr::new(name)) else {
        let why = format!("--drop-caches-cmd: there is no program {name} in PATH");
        return Err(Stop::Skip("need-tool", why));
    };
    let_go(lab, |scratch| {
        let folder = scratch.place();
        for file in [pair.file, pair.witness] {
            for_file(&path, arguments, &folder.join(file), lab)?;
        }
        Ok(())
    })
}

fn for_file(path: &Path, arguments: &[String], file: &Path, lab: &Lab<'_>) -> Result<(), Stop> {
    Program::new(path, limit(lab.request))
        .args(arguments)
        .env(FILE, file)
        .run(lab.pulse)
        .map(drop)
        .map_err(stop)
}
