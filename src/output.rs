//! Output files: refused or accepted before the first measurement, whole at every moment.
//!
//! A regular file is replaced as a whole, so that a reader or a crash finds the old document
//! or the new one; what walprobe did not write is replaced with `--force` only, and what
//! others put there during the run never ([`file`]). A child does it, with a limit on its
//! time (`output/writer.rs`). FIFOs, character devices and descriptors of ours (`/dev/fd/63`) are
//! written once, at the end (`output/direct.rs`). Nothing is ever written to a block device.

mod aside;
mod direct;
mod file;
pub(crate) mod writer;

use std::{
    fs, io,
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::{clock::Stopwatch, error::Failure};
use file::{Checked, Save, Stamp};
use writer::{Answer, Ask, Unanswered, ask};

/// What a check may take, for each file.
const CHECKING: Duration = Duration::from_secs(10);
/// What a save during the run may take.
const SAVING: Duration = Duration::from_secs(5);
/// What the last saves may take together.
const FINISHING: Duration = Duration::from_secs(10);

/// One file that was asked for.
#[derive(Debug)]
struct Output {
    /// Name of the renderer.
    format: &'static str,
    /// As the user gave it.
    given: String,
    place: Place,
    /// The message of the last attempt to save, if it failed.
    trouble: Option<String>,
}

#[derive(Debug)]
enum Place {
    /// Replaced as a whole.
    File {
        path: PathBuf,
        /// What we know to be there.
        stamp: Option<Stamp>,
        /// Leftovers of killed runs were looked for.
        swept: bool,
        /// A save did not come back; only the last is tried again.
        hangs: bool,
    },
    /// Written as it is.
    Direct { path: PathBuf, descriptor: bool },
}

/// All of them.
#[derive(Debug, Default)]
pub struct Outputs {
    all: Vec<Output>,
    began_s: i64,
}

/// What came of the last saves.
#[derive(Debug, Default)]
pub struct Finished {
    /// A message for each file that could not be written.
    pub failed: Vec<String>,
    /// A signal ended the wait for one.
    pub interrupted: bool,
}

impl Outputs {
    /// Checks `(format, path)` pairs; leaves nothing behind.
    ///
    /// # Errors
    /// The first that cannot be used.
    pub fn check(asked: &[(&'static str, &str)], force: bool) -> Result<Self, Failure> {
        let mut all: Vec<Output> = Vec::new();
        let stdout = identity(Path::new("/proc/self/fd/1"));
        for &(format, given) in asked {
            let place = place(format, given, force)?;
            if stdout.is_some() && place.identity() == stdout {
                return Err(is_stdout(format, given));
            }
            if let Some(other) = all.iter().find(|o| o.place.is(&place)) {
                let message = match other.given == given {
                    true => format!("{given} is asked for twice"),
                    false => format!("{} and {given} are the same file", other.given),
                };
                return Err(Failure::refused(message).hint("each output needs its own file"));
            }
            all.push(Output {
                format,
                given: given.to_owned(),
                place,
                trouble: None,
            });
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let began_s = now.map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or(0));
        Ok(Self { all, began_s })
    }

    /// Each output's format.
    pub fn formats(&self) -> impl Iterator<Item = &'static str> {
        self.all.iter().map(|o| o.format)
    }

    /// The files that lie in one of `dirs`, as the user gave them.
    pub fn inside<'a>(&'a self, dirs: &'a [String]) -> impl Iterator<Item = &'a str> {
        let within = |o: &&Output| match &o.place {
            Place::File { path, .. } => dirs.iter().any(|d| path.starts_with(d)),
            Place::Direct { .. } => false,
        };
        self.all.iter().filter(within).map(|o| o.given.as_str())
    }

    /// Saves a document that is not the last. A failure is kept for [`Self::trouble`].
    /// `stop`: give up.
    pub fn save(&mut self, format: &str, text: &str, stop: &dyn Fn() -> bool) {
        let began_s = self.began_s;
        for output in self.all.iter_mut().filter(|o| o.format == format) {
            if matches!(output.place, Place::File { hangs: false, .. }) {
                let mut clock = Stopwatch::start();
                let saved = output.ask(text, false, began_s).and_then(|asked| {
                    let answer = asked.answer(&mut clock, SAVING, stop);
                    if answer.is_err()
                        && let Place::File { hangs, .. } = &mut output.place
                    {
                        *hangs = true;
                    }
                    answer
                });
                output.trouble = output.take(saved).err().map(|e| e.why);
            }
        }
    }

    /// The failures of the last [`Self::save`].
    pub fn trouble(&self) -> impl Iterator<Item = &str> {
        self.all.iter().filter_map(|o| o.trouble.as_deref())
    }

    /// Writes the last documents, `(format, text)`. `stop`: give up.
    pub fn finish(&mut self, documents: &[(&str, String)], stop: &dyn Fn() -> bool) -> Finished {
        let mut finished = Finished::default();
        let text = |format: &str| documents.iter().find(|(f, _)| *f == format).map(|(_, t)| t);
        let began_s = self.began_s;
        // All at once: one that hangs takes nothing of the others' time.
        let mut clock = Stopwatch::start();
        let mut saves = Vec::new();
        for output in &mut self.all {
            if let (Place::File { .. }, Some(text)) = (&output.place, text(output.format)) {
                let asked = output.ask(text, true, began_s);
                saves.push((output, asked));
            }
        }
        for (output, asked) in saves {
            let answer = asked.and_then(|asked| asked.answer(&mut clock, FINISHING, stop));
            if let Err(e) = output.take(answer) {
                finished.failed.push(e.why);
                finished.interrupted |= e.interrupted;
            }
        }
        for output in &self.all {
            if let (Place::Direct { path, descriptor }, Some(text)) =
                (&output.place, text(output.format))
                && let Err(e) = direct::write(path, *descriptor, text, stop)
            {
                finished.failed.push(cannot_write(&output.given, &e));
                finished.interrupted |= stop();
            }
        }
        finished
    }
}

impl Output {
    /// Starts to save a document.
    fn ask(&mut self, text: &str, last: bool, began_s: i64) -> Result<writer::Asked, Unanswered> {
        let Place::File {
            path, stamp, swept, ..
        } = &mut self.place
        else {
            return Err(Unanswered::because("it is not a file"));
        };
        ask(&Ask::Save(Save {
            format: self.format.to_owned(),
            path: path.clone(),
            text: text.to_owned(),
            expected: *stamp,
            last,
            sweep_before_s: (!std::mem::replace(swept, true)).then_some(began_s),
        }))
    }

    /// Takes in how a save ended; the message names the file.
    fn take(&mut self, answer: Result<Answer, Unanswered>) -> Result<(), Unanswered> {
        let failed = match answer {
            Ok(Answer::Saved(Ok(new))) => {
                if let Place::File { stamp, .. } = &mut self.place {
                    *stamp = Some(new);
                }
                return Ok(());
            }
            Ok(Answer::Saved(Err(why))) => Unanswered::because(why),
            Ok(_) => Unanswered::because("the writer's answer makes no sense"),
            Err(e) => e,
        };
        Err(Unanswered {
            why: cannot_write(&self.given, &failed.why),
            ..failed
        })
    }
}

impl Place {
    /// Device and inode of what is there, unless any number of writers may share it.
    fn identity(&self) -> Option<(u64, u64)> {
        match self {
            Self::File { stamp, .. } => stamp.map(|s| (s.dev, s.ino)),
            Self::Direct { path, .. } => identity(path),
        }
    }

    fn is(&self, other: &Self) -> bool {
        let same = match (self, other) {
            (Self::File { path: a, .. }, Self::File { path: b, .. }) => a == b,
            _ => false,
        };
        same || self.identity().is_some() && self.identity() == other.identity()
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::metadata(path).ok()?;
    let shared = metadata.file_type().is_char_device();
    (!shared).then(|| (metadata.dev(), metadata.ino()))
}

/// Where a document goes, if it may.
fn place(format: &'static str, given: &str, force: bool) -> Result<Place, Failure> {
    let refuse = |why: &dyn std::fmt::Display| Failure::refused(cannot_write(given, why));
    if given.is_empty() {
        return Err(Failure::refused("an output file needs a name"));
    }
    if given == "-" {
        return Err(is_stdout(format, given));
    }
    if let Some(descriptor) = direct::descriptor(Path::new(given)) {
        if descriptor == 1 {
            return Err(is_stdout(format, given));
        }
        direct::check(descriptor).map_err(|e: io::Error| refuse(&e))?;
        return Ok(Place::Direct {
            path: format!("/proc/self/fd/{descriptor}").into(),
            descriptor: true,
        });
    }
    let asked = ask(&Ask::Check {
        format: format.to_owned(),
        given: given.to_owned(),
        force,
    });
    let answer = asked.and_then(|asked| asked.answer(&mut Stopwatch::start(), CHECKING, &|| false));
    match answer.map_err(|e| refuse(&e.why))? {
        Answer::Checked(Checked::File { path, stamp }) => Ok(Place::File {
            path,
            stamp,
            swept: false,
            hangs: false,
        }),
        Answer::Checked(Checked::Direct { path }) => Ok(Place::Direct {
            path,
            descriptor: false,
        }),
        Answer::Checked(Checked::Refused { message, hint }) => Err(Failure {
            hints: hint.into_iter().collect(),
            ..Failure::refused(message)
        }),
        _ => Err(refuse(&"the writer's answer makes no sense")),
    }
}

fn is_stdout(format: &str, given: &str) -> Failure {
    let message = format!("--{format} {given}: standard output gets the report");
    Failure::refused(message).hint(match format {
        "conf" => "give --conf a file".to_owned(),
        _ => format!("use --format {format} for stdout"),
    })
}

fn cannot_write(given: &str, why: &dyn std::fmt::Display) -> String {
    format!("cannot write {given}: {why}")
}

/// Refuses a directory that is given twice, by whatever names.
///
/// # Errors
/// Two are the same.
pub fn each_once(dirs: &[String]) -> Result<(), Failure> {
    if dirs.len() < 2 {
        return Ok(());
    }
    let asked = ask(&Ask::Identify(dirs.to_vec()));
    let answer = asked.and_then(|asked| asked.answer(&mut Stopwatch::start(), CHECKING, &|| false));
    // One that does not answer is told of when it is looked at.
    let Ok(Answer::Identities(identities)) = answer else {
        return Ok(());
    };
    for (at, (dir, identity)) in dirs.iter().zip(&identities).enumerate() {
        let mut before = dirs.iter().zip(&identities).take(at);
        if let Some((other, _)) = before.find(|(_, i)| i.is_some() && *i == identity) {
            let message = match other == dir {
                true => format!("{dir} is given twice"),
                false => format!("{other} and {dir} are the same directory"),
            };
            return Err(Failure::refused(message).hint("give each directory once"));
        }
    }
    Ok(())
}
