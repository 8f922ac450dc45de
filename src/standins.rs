//! Stands in for parts that are not in this branch: replaced at the merge by
//! `walprobe_probes::{clean, worker}` and by `crate::{advise, render}`.

pub mod worker {
    //! The measuring half's flow.
    use std::sync::atomic::AtomicBool;

    use walprobe_probes::{event::Event, request::Request};

    /// Knows nothing, measures nothing.
    pub fn run(request: Request, sink: &mut dyn FnMut(&Event), _stop: &AtomicBool) {
        if !std::path::Path::new(&request.dir).is_dir() {
            sink(&Event::Refused {
                message: format!("cannot use {}: not a directory", request.dir),
                hint: None,
            });
            return;
        }
        sink(&Event::Facts {
            dir: request.dir,
            host: Default::default(),
            target: Default::default(),
            devices: Vec::new(),
        });
        sink(&Event::Plan { cases: Vec::new() });
        sink(&Event::Done {
            bytes_written: 0,
            left_behind: Vec::new(),
            fault: None,
            ended_by: None,
        });
    }
}

pub mod clean {
    //! Cleaning up.
    use std::path::Path;

    /// Why a directory is not used.
    #[derive(Debug)]
    pub struct Refused {
        /// For the user.
        pub message: String,
        /// What to do.
        pub hint: Option<String>,
    }

    /// What a clean-up did.
    #[derive(Debug, Default)]
    pub struct CleanReport {
        /// Removed paths.
        pub removed: Vec<String>,
        /// Paths that stayed, and why.
        pub left: Vec<(String, String)>,
        /// Folders of running processes.
        pub running: Vec<String>,
    }

    /// Finds nothing.
    ///
    /// # Errors
    /// It is no directory.
    pub fn clean(dir: &Path) -> Result<CleanReport, Refused> {
        if dir.is_dir() {
            return Ok(CleanReport::default());
        }
        Err(Refused {
            message: format!("cannot use {}: not a directory", dir.display()),
            hint: None,
        })
    }

    /// Finds nothing.
    ///
    /// # Errors
    /// It is no directory.
    pub fn clean_run(dir: &Path, _run_id: &str) -> Result<CleanReport, Refused> {
        clean(dir)
    }
}

pub mod render {
    //! Formats.
    use walprobe_probes::report::Report;

    /// What the caller decides.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Options {
        /// Columns.
        pub width: Option<u16>,
        /// Escape sequences may be used.
        pub color: bool,
    }

    /// One format.
    pub trait Render: Sync {
        /// Its name.
        fn name(&self) -> &'static str;
        /// The text.
        ///
        /// # Errors
        /// A number is not finite.
        fn render(&self, report: &Report, options: &Options) -> anyhow::Result<String>;
    }

    struct Format(&'static str);

    impl Render for Format {
        fn name(&self) -> &'static str {
            self.0
        }
        fn render(&self, report: &Report, _options: &Options) -> anyhow::Result<String> {
            Ok(match self.0 {
                "json" => serde_json::to_string_pretty(report)? + "\n",
                "csv" => "schema,run_id,started_at,host\n".to_owned(),
                "conf" => "# walprobe 0\n".to_owned(),
                _ => format!("{} targets\n", report.targets.len()),
            })
        }
    }

    /// Every format.
    pub const RENDERERS: &[&dyn Render] = &[
        &Format("table"),
        &Format("json"),
        &Format("csv"),
        &Format("conf"),
    ];

    /// A format by its name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static dyn Render> {
        RENDERERS.iter().copied().find(|r| r.name() == name)
    }

    /// The width to render for.
    #[must_use]
    pub fn choose_width(
        asked: Option<u16>,
        columns: Option<&str>,
        terminal: Option<u16>,
    ) -> Option<u16> {
        asked
            .or_else(|| columns.and_then(|c| c.parse().ok()))
            .or(terminal)
    }
}

pub mod advise {
    //! Rules.
    use walprobe_probes::report::Report;

    /// Says nothing.
    pub const fn advise(_report: &mut Report) {}
}
