//! Output files: refused or accepted before the first measurement, whole at every moment.
//!
//! A file is replaced by rename, so that a reader or a crash finds the old document or the
//! new one. What walprobe did not write is replaced with `--force` only. Paths that are no
//! regular files (`/dev/stdout`, a FIFO) are written once, at the end.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::error::Failure;

/// Files larger than this are not ours.
const OURS_BYTES: u64 = 256 << 20;
/// How a CSV file of ours begins, in every version of the format.
const CSV_START: &str = "schema,run_id,";

/// How a postgresql.conf fragment of ours begins.
const CONF_START: &str = "# walprobe ";

/// One file that was asked for.
#[derive(Debug)]
pub struct Output {
    /// Name of the renderer.
    pub format: &'static str,
    /// As the user gave it.
    given: String,
    place: Place,
    /// The message of the last attempt to save, if it failed.
    trouble: Option<String>,
}

#[derive(Debug)]
enum Place {
    /// Written aside and renamed.
    File(PathBuf),
    /// Written as it is.
    Direct(PathBuf),
}

/// All of them.
#[derive(Debug, Default)]
pub struct Outputs(Vec<Output>);

impl Outputs {
    /// Checks `(format, path)` pairs; leaves nothing behind.
    ///
    /// # Errors
    /// The first that cannot be used.
    pub fn check(asked: &[(&'static str, &str)], force: bool) -> Result<Self, Failure> {
        let mut outputs: Vec<Output> = Vec::new();
        for &(format, given) in asked {
            let place = place(format, given, force)?;
            if outputs.iter().any(|o| o.place.path() == place.path()) {
                let message = format!("{given} is asked for twice");
                return Err(Failure::refused(message).hint("each output needs its own file"));
            }
            outputs.push(Output {
                format,
                given: given.to_owned(),
                place,
                trouble: None,
            });
        }
        Ok(Self(outputs))
    }

    /// Each output's format.
    pub fn formats(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|o| o.format)
    }

    /// The files that lie in one of `dirs`, as the user gave them.
    pub fn inside<'a>(&'a self, dirs: &'a [String]) -> impl Iterator<Item = &'a str> {
        let within = |o: &&Output| match &o.place {
            Place::File(path) => dirs.iter().any(|d| path.starts_with(d)),
            Place::Direct(_) => false,
        };
        self.0.iter().filter(within).map(|o| o.given.as_str())
    }

    /// Saves a document that is not the last. A failure is kept for [`Self::trouble`].
    pub fn save(&mut self, format: &str, text: &str) {
        for output in self.0.iter_mut().filter(|o| o.format == format) {
            if let Place::File(path) = &output.place {
                output.trouble = replace(path, text, false)
                    .err()
                    .map(|e| cannot_write(&output.given, &e));
            }
        }
    }

    /// The failures of the last [`Self::save`].
    pub fn trouble(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|o| o.trouble.as_deref())
    }

    /// Writes the last document of one format.
    ///
    /// # Errors
    /// The message for each file that could not be written.
    pub fn finish(&self, format: &str, text: &str) -> Result<(), Vec<String>> {
        let failed: Vec<String> = self
            .0
            .iter()
            .filter(|o| o.format == format)
            .filter_map(|o| {
                let written = match &o.place {
                    Place::File(path) => replace(path, text, true),
                    Place::Direct(path) => write_direct(path, text),
                };
                Some(cannot_write(&o.given, &written.err()?))
            })
            .collect();
        if failed.is_empty() {
            Ok(())
        } else {
            Err(failed)
        }
    }
}

impl Place {
    fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Direct(path) => path,
        }
    }
}

/// Where a document goes, if it may.
fn place(format: &str, given: &str, force: bool) -> Result<Place, Failure> {
    let refuse = |e: io::Error| Failure::refused(cannot_write(given, &e));
    let path = Path::new(given);
    if given.is_empty() {
        return Err(Failure::refused("an output file needs a name"));
    }
    // Descriptors of ours by name: what they lead to is not to be replaced.
    if path.starts_with("/dev") || path.starts_with("/proc") {
        return fs::metadata(path)
            .map(|_| Place::Direct(path.to_owned()))
            .map_err(refuse);
    }
    let whole = match path.symlink_metadata() {
        Ok(_) => path.canonicalize().map_err(refuse)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let name = path
                .file_name()
                .ok_or_else(|| refuse(io::ErrorKind::IsADirectory.into()))?;
            let parent = parent(path).canonicalize().map_err(refuse)?;
            let whole = parent.join(name);
            temporary(&whole).map_err(refuse)?;
            return Ok(Place::File(whole));
        }
        Err(e) => return Err(refuse(e)),
    };
    let kind = whole.metadata().map_err(refuse)?.file_type();
    if kind.is_dir() {
        return Err(refuse(io::ErrorKind::IsADirectory.into()));
    }
    if kind.is_fifo() || kind.is_char_device() || kind.is_block_device() || kind.is_socket() {
        if kind.is_block_device() {
            return Err(Failure::refused(format!(
                "cannot write {given}: it is a block device"
            )));
        }
        return Ok(Place::Direct(whole));
    }
    if !force && !ours(format, &whole).map_err(refuse)? {
        let message = format!("cannot write {given}: it exists, and no walprobe wrote it");
        return Err(Failure::refused(message).hint("--force replaces it"));
    }
    temporary(&whole).map_err(refuse)?;
    Ok(Place::File(whole))
}

/// Whether walprobe wrote the file. An empty one holds nothing to lose.
fn ours(format: &str, path: &Path) -> io::Result<bool> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    if length == 0 {
        return Ok(true);
    }
    if length > OURS_BYTES {
        return Ok(false);
    }
    let mut reader = BufReader::new(file);
    if format == "json" {
        let Ok(document) = serde_json::from_reader::<_, Value>(reader) else {
            return Ok(false);
        };
        return Ok(document["schema"].is_u64() && document["tool"]["name"] == "walprobe");
    }
    let mut line = Vec::new();
    io::Read::take(&mut reader, 4096).read_until(b'\n', &mut line)?;
    let line = String::from_utf8_lossy(&line);
    Ok(match format {
        "csv" => line.starts_with(CSV_START),
        _ => line.starts_with(CONF_START),
    })
}

/// A file beside `path`, gone when dropped.
fn temporary(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mode = path
        .metadata()
        .map_or(0o666, |m| m.permissions().mode() & 0o777);
    tempfile::Builder::new()
        .prefix(&format!(".{name}.walprobe-"))
        // The umask applies, as it would to the file itself.
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(parent(path))
        .map_err(|e| io::Error::new(e.kind(), system_part(&e)))
}

fn replace(path: &Path, text: &str, last: bool) -> io::Result<()> {
    let mut file = temporary(path)?;
    file.write_all(text.as_bytes())?;
    if last {
        file.as_file().sync_all()?;
    }
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

fn write_direct(path: &Path, text: &str) -> io::Result<()> {
    // A FIFO that nobody reads fails instead of waiting for ever.
    let nonblock = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let mut file = OpenOptions::new()
        .write(true)
        .append(path.metadata()?.is_file())
        .custom_flags(nonblock)
        .open(path)?;
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - rustix::fs::OFlags::NONBLOCK)?;
    file.write_all(text.as_bytes())
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    }
}

fn cannot_write(given: &str, e: &io::Error) -> String {
    format!("cannot write {given}: {e}")
}

/// tempfile adds the temporary's path, which is not what the user asked for.
fn system_part(e: &io::Error) -> io::Error {
    let source = e.get_ref().and_then(|inner| inner.source());
    match source.and_then(|s| s.downcast_ref::<io::Error>()) {
        Some(inner) => inner
            .raw_os_error()
            .map_or_else(|| inner.kind().into(), io::Error::from_raw_os_error),
        None => e.kind().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{"schema": 1, "tool": {"name": "walprobe"}}"#;

    fn check(format: &'static str, path: &Path, force: bool) -> Result<Outputs, String> {
        Outputs::check(&[(format, path.to_str().unwrap())], force).map_err(|f| f.message)
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn only_what_walprobe_wrote_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        for (format, mine, other) in [
            ("json", JSON, r#"{"schema": 1, "tool": {"name": "x"}}"#),
            ("csv", "schema,run_id,started_at\n1,2,3\n", "a,b\n"),
            ("conf", "# walprobe 0.1.0\n", "# my settings\n"),
        ] {
            let path = dir.path().join(format);
            fs::write(&path, mine).unwrap();
            assert!(check(format, &path, false).is_ok(), "{format}");
            fs::write(&path, other).unwrap();
            let refused = check(format, &path, false).unwrap_err();
            assert!(refused.contains("no walprobe wrote it"), "{refused}");
            assert!(check(format, &path, true).is_ok(), "{format}");
            assert_eq!(fs::read_to_string(&path).unwrap(), other);
        }
        assert_eq!(names(dir.path()), ["conf", "csv", "json"]);
    }

    #[test]
    fn a_document_replaces_the_old_one_and_keeps_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.json");
        fs::write(&path, JSON).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let mut outputs = check("json", &path, false).unwrap();
        outputs.save("csv", "not this one");
        outputs.save("json", "one");
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        outputs.finish("json", "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(names(dir.path()), ["r.json"]);
    }

    #[test]
    fn a_link_stays_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        check("csv", &link, false)
            .unwrap()
            .finish("csv", "x")
            .unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "x");
    }

    #[test]
    fn places_that_cannot_be_written_are_refused_with_their_path() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("no/such/r.json");
        let message = check("json", &missing, false).unwrap_err();
        assert!(
            message.contains("no/such/r.json: No such file"),
            "{message}"
        );
        let message = check("json", dir.path(), true).unwrap_err();
        assert!(message.contains("is a directory"), "{message}");
        let twice = dir.path().join("x");
        let twice = twice.to_str().unwrap();
        let failure = Outputs::check(&[("json", twice), ("csv", twice)], false).unwrap_err();
        assert!(failure.message.contains("twice"), "{}", failure.message);
        assert_eq!(names(dir.path()), [""; 0]);
    }

    #[test]
    fn devices_are_written_as_they_are() {
        let full = check("json", Path::new("/dev/full"), false).unwrap();
        let failed = full.finish("json", "x").unwrap_err();
        assert!(failed[0].contains("/dev/full: No space left"), "{failed:?}");
        let mut null = check("json", Path::new("/dev/null"), false).unwrap();
        null.save("json", "x");
        assert_eq!(null.finish("json", "x"), Ok(()));
    }

    #[test]
    fn a_fifo_without_a_reader_is_an_error_and_not_a_hang() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(
            check("csv", &fifo, false)
                .unwrap()
                .finish("csv", "x")
                .is_err()
        );
    }

    #[test]
    fn files_in_a_measured_directory_are_known() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        let outputs = check("csv", &real.join("x.csv"), false).unwrap();
        let dirs = vec![real.to_str().unwrap().to_owned()];
        assert_eq!(outputs.inside(&dirs).count(), 1);
        assert_eq!(outputs.inside(&["/nowhere".to_owned()]).count(), 0);
    }
}
