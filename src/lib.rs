//! The talking half: arguments -> request -> worker -> report -> rules -> renderers.
//!
//! [`cli`] says what was asked. [`measure`] checks output files ([`output`]), has every
//! directory looked at and then measured, each in a child process ([`worker`], watched by
//! [`watch`]); the child's side is [`worker_child`]. What children tell becomes the report
//! ([`assemble`]); rules add what follows from it, renderers print it. Nothing here opens
//! anything on a target, and every way to end is in [`error`].

use std::{
    io::{self, Write as _},
    panic,
    process::ExitCode,
};

use walprobe_probes::sys::process::{close_all_on_exec, ignore_signals};

pub mod advise;
pub mod anonymous;
pub mod assemble;
pub mod clean;
pub mod cli;
pub mod clock;
pub mod error;
pub mod explain;
pub mod fail_on;
pub mod list;
pub mod measure;
pub mod output;
pub mod plan;
pub mod progress;
pub mod publish;
pub mod render;
mod rows;
mod run;
pub mod signals;
pub mod size;
pub mod stamp;
pub mod watch;
pub mod worker;
pub mod worker_child;

use cli::Job;
use error::{Exit, say};

/// Runs the command line.
#[must_use]
pub fn main() -> ExitCode {
    let job = match cli::parse(std::env::args_os()) {
        Ok(job) => job,
        Err(e) => {
            // Help goes to stdout, errors to stderr; a closed one changes nothing.
            let _ = e.print();
            return if e.use_stderr() {
                Exit::Refused.into()
            } else {
                Exit::Done.into()
            };
        }
    };
    match job {
        // A panic here is the parent's to report.
        Job::Worker => worker_child::measure().into(),
        Job::WorkerWrite => output::writer::serve().into(),
        Job::WorkerClean { dir, run_id } => worker_child::clean_up(&dir, run_id.as_deref()).into(),
        job => {
            close_all_on_exec();
            ignore_signals(&[worker_child::SIGXFSZ]);
            panic::catch_unwind(|| parent(job))
                .unwrap_or(Exit::Broken)
                .into()
        }
    }
}

fn parent(job: Job) -> Exit {
    let ended = match job {
        Job::Measure { probes, options } => measure::measure(probes, *options),
        Job::Facts(options) => measure::facts(*options),
        Job::List => Ok(stdout(&list::list())),
        Job::Explain(name) => explain::command(name.as_deref()),
        Job::Clean(dir) => clean::command(&dir),
        Job::Worker | Job::WorkerWrite | Job::WorkerClean { .. } => Ok(Exit::Broken),
    };
    ended.unwrap_or_else(|failure| {
        failure.say();
        failure.exit
    })
}

/// Writes the one document. A reader that has seen enough is no failure.
pub(crate) fn stdout(text: &str) -> Exit {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Exit::Done,
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
        Err(e) => {
            say(&format!("walprobe: cannot write to standard output: {e}"));
            Exit::Broken
        }
    }
}
