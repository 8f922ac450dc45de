//! The end of a run: rules, output files, stdout. Nothing here touches a target.
//!
//! A bug in a rule or a renderer must not take the measurements with it, so each runs
//! guarded, and the document is printed with what is there.

use std::{
    io::{self, IsTerminal as _},
    panic::{self, AssertUnwindSafe},
};

use walprobe_probes::report::Report;

use crate::{
    advise, anonymous,
    assemble::Draft,
    cli::Show,
    error::{Exit, say},
    output::Outputs,
    render::{self, Options, RENDERERS},
    signals::{self, Signals},
    stdout,
};

/// Finishes the report, writes the files that were asked for, and prints it. `given`: the
/// directories as they were given.
#[must_use]
pub fn publish(
    draft: Draft,
    mut outputs: Outputs,
    signals: &Signals,
    show: &Show,
    given: &[String],
) -> Exit {
    let mut signal = signals.first();
    let mut fine = !draft.broken() && !draft.littered();
    let mut report = draft.finish(signal);
    if let Some(signal) = signal {
        complain(&format!("interrupted by {}", signals::name(signal)));
    }
    match advised(&report) {
        Ok(advised) => report = advised,
        Err(e) => {
            complain(&format!("cannot derive recommendations: {e}"));
            fine = false;
        }
    }
    let failed = show.fail_on.map(|level| level.reasons(&report));
    if show.anonymous {
        report = match guarded(|| anonymous::anonymous(&report, given)).and_then(|done| done) {
            Ok(report) => report,
            // Nothing is better than a report with a name in it.
            Err(e) => {
                complain(&format!("cannot make the report anonymous: {e}"));
                return Exit::Broken;
            }
        };
    }
    let (written, interrupted) = write_files(&report, &mut outputs, signals);
    fine &= written;
    if interrupted {
        signal = signals.first();
    }
    // What was to be saved is saved: from here on a signal may end the process.
    signals.end_at_once();
    match document(&show.format, &report, &show.options()) {
        Ok(text) => fine &= stdout(&text) == Exit::Done,
        Err(e) => {
            complain(&e);
            fine = false;
        }
    }
    let failed = failed.unwrap_or_default();
    for reason in &failed {
        complain(&format!("--fail-on: {reason}"));
    }
    match signal {
        Some(signal) => Exit::Signal(signal),
        None if !fine => Exit::Broken,
        None if !failed.is_empty() => Exit::NotMet,
        None => Exit::Done,
    }
}

/// The report in one format.
///
/// # Errors
/// The renderer refuses it, or panicked.
pub fn document(format: &str, report: &Report, options: &Options) -> Result<String, String> {
    let renderer = render::by_name(format).ok_or_else(|| format!("there is no format {format}"))?;
    match guarded(|| renderer.render(report, options)) {
        Ok(Ok(text)) => Ok(text),
        Ok(Err(e)) => Err(format!("cannot print the report as {format}: {e:#}")),
        Err(e) => Err(format!("cannot print the report as {format}: {e}")),
    }
}

fn advised(report: &Report) -> Result<Report, String> {
    guarded(|| {
        let mut report = report.clone();
        advise::advise(&mut report);
        report
    })
}

/// Whether all could be written, and whether a signal ended the attempt.
fn write_files(report: &Report, outputs: &mut Outputs, signals: &Signals) -> (bool, bool) {
    let mut fine = true;
    let mut documents = Vec::new();
    for format in RENDERERS.iter().map(|r| r.name()) {
        if outputs.formats().all(|f| f != format) {
            continue;
        }
        match document(format, report, &Options::default()) {
            Ok(text) => documents.push((format, text)),
            Err(e) => {
                complain(&e);
                fine = false;
            }
        }
    }
    let before = signals.count();
    let finished = outputs.finish(&documents, &|| signals.count() > before);
    finished.failed.iter().for_each(|m| complain(m));
    (fine && finished.failed.is_empty(), finished.interrupted)
}

fn complain(message: &str) {
    say(&format!("walprobe: {message}"));
}

fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|_| "it panicked".to_owned())
}

impl Show {
    /// How to render for stdout.
    fn options(&self) -> Options {
        let out = io::stdout();
        let terminal = out.is_terminal();
        let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        let columns = std::env::var("COLUMNS").ok();
        let own = terminal
            .then(|| rustix::termios::tcgetwinsize(&out).ok().map(|w| w.ws_col))
            .flatten();
        Options {
            width: render::choose_width(self.width, columns.as_deref(), own),
            color: terminal && !dumb && !set("NO_COLOR"),
        }
    }
}
