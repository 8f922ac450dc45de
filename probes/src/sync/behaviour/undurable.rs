//! For scale: writes that nothing makes durable, and writes that are only written back.

use serde_json::json;

use crate::{
    contract::{Lab, Observations, Stop, Study},
    engine::{case::stop_of, lap::Lap},
    files::PAGE_BYTES,
    folder::Folder,
    sys::sync_range,
};

use super::{SERIES, WRITES, prepared};

/// Plain writes, or writes with sync_file_range after each.
pub(super) struct Undurable {
    pub(super) folder: Folder,
    pub(super) write_back: bool,
}

impl Study for Undurable {
    fn run(
        &mut self,
        lab: &mut Lab<'_>,
        lap: &mut Lap<'_>,
        seen: &mut Observations,
    ) -> Result<(), Stop> {
        let name = if self.write_back {
            "file-write-back"
        } else {
            "file-write-only"
        };
        let (file, mut page) = prepared(&self.folder, name, lab)?;
        seen.insert("durable".to_owned(), json!(false));
        lap.leg(SERIES, 1.0);
        for n in 0..WRITES {
            if lap.interrupted() {
                return Err(Stop::Interrupted);
            }
            page.stamp(n + 1);
            lap.start();
            file.pwrite_all(&page, n * PAGE_BYTES)?;
            lap.mark("write");
            if self.write_back {
                sync_range::write_and_wait(file.fd(), n * PAGE_BYTES, PAGE_BYTES).map_err(|e| {
                    let errno = e.raw_os_error().unwrap_or(libc::EIO);
                    stop_of(file.fault("sync_file_range", errno))
                })?;
                lap.mark("write_back");
            }
            lap.done();
            lap.wrote(PAGE_BYTES);
        }
        lap.leg("", 0.0);
        drop(file);
        Ok(self.folder.unlink(name)?)
    }
}
