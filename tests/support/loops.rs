//! Loop devices: ties an image to a free one, and unties it for certain.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::command::run;
use crate::stopwatch::poll;

/// Ties the image to a free loop device. Another process may take the one that
/// `losetup` found free: then it is asked again.
///
/// # Errors
/// losetup refuses.
pub fn attach(image: &Path) -> Result<String, String> {
    let image = image.display().to_string();
    let mut last = String::new();
    for _ in 0..20 {
        match run("losetup", &["--find", "--show", &image]) {
            Ok(device) => return Ok(device),
            Err(error) => last = error,
        }
        thread::sleep(Duration::from_millis(100));
    }
    Err(last)
}

/// Unties a loop device from our image and waits until that has happened: the
/// kernel puts it off while the device is open somewhere.
///
/// # Errors
/// The device is still tied.
pub fn detach(device: &str, image: &Path) -> Result<(), String> {
    if !backs(device, image) {
        return Ok(());
    }
    run("losetup", &["--detach", device])?;
    poll(Duration::from_secs(10), || {
        (!backs(device, image)).then_some(())
    })
    .ok_or_else(|| format!("{device} still holds {}", image.display()))
}

fn backs(device: &str, image: &Path) -> bool {
    let name = device.trim_start_matches("/dev/");
    fs::read_to_string(format!("/sys/block/{name}/loop/backing_file")).is_ok_and(|backing| {
        let backing = backing.trim_end();
        Path::new(backing.trim_end_matches(" (deleted)")) == image
    })
}

/// Loop devices whose image lies below a folder, with the image.
///
/// # Errors
/// `/sys/block` cannot be read.
pub fn loops_below(folder: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let mut found = Vec::new();
    let blocks =
        fs::read_dir("/sys/block").map_err(|error| format!("cannot read /sys/block: {error}"))?;
    for block in blocks.flatten() {
        let Ok(backing) = fs::read_to_string(block.path().join("loop/backing_file")) else {
            continue;
        };
        let image = PathBuf::from(backing.trim_end().trim_end_matches(" (deleted)"));
        if image.starts_with(folder) {
            found.push((format!("/dev/{}", block.file_name().display()), image));
        }
    }
    Ok(found)
}
