//! overlayfs: the upper layer takes all writes, and all syncs unless it is mounted
//! `volatile` (Documentation/filesystems/overlayfs.rst).
//!
//! Newer kernels spell that option `fsync=volatile`. The upper layer is named by the path
//! given at the mount, which may be relative or of another mount namespace (in a container
//! it is): then it cannot be reached, and nothing is guessed.

use std::path::PathBuf;

use super::{Family, family};
use crate::{
    facts::{
        absent, known,
        place::{Layers, Place},
        put,
    },
    report::FactMap,
};

const MOUNTINFO: &str = "/proc/self/mountinfo";

fn is_overlay(place: &Place) -> bool {
    place.fs_type().map(family) == Some(Family::Overlay)
}

/// The upper layer of an overlay, or why it has none; none for other filesystems.
pub(in crate::facts) fn upper(place: &Place) -> Option<Result<PathBuf, String>> {
    if !is_overlay(place) {
        return None;
    }
    let mount = place.mount.as_ref().ok()?;
    Some(
        mount
            .super_path("upperdir")
            .ok_or_else(|| "no upper layer: the overlay is read-only".to_owned()),
    )
}

/// An overlay that answers syncs without doing them.
pub(in crate::facts) fn is_volatile(place: &Place) -> bool {
    is_overlay(place)
        && place.mount.as_ref().is_ok_and(|mount| {
            mount.super_option("volatile").is_some()
                || mount.super_option("fsync").as_deref() == Some("volatile")
        })
}

/// `overlay.*`, and the upper layer's type as `fs.subtype`.
pub(super) fn facts(layers: &Layers, facts: &mut FactMap) {
    let Some(upper) = upper(layers.top()) else {
        return;
    };
    let upper = match upper {
        Ok(path) => known(path.to_string_lossy(), MOUNTINFO),
        Err(why) => absent(MOUNTINFO, why),
    };
    put(facts, "overlay.upper", upper);
    let volatile = layers.iter().any(is_volatile);
    put(facts, "overlay.volatile", known(volatile, MOUNTINFO));
    let below = match (&layers.broken, layers.last().fs_type()) {
        (Some(why), _) => absent("upper layer", why),
        (None, Some(kind)) => known(kind, "upper layer"),
        (None, None) => absent("upper layer", "not known"),
    };
    put(facts, "fs.subtype", below);
}
