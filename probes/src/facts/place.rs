//! Where a directory or file lies: its mount, and below an overlay its upper layer's.

use std::{cell::OnceCell, path::Path};

use super::{
    Held, Roots, absent, either,
    fs::{overlay, pool::Leaf},
    known,
    mountinfo::{self, Mount},
    put,
};
use crate::report::FactMap;

const MOUNTINFO: &str = "/proc/self/mountinfo";

/// An overlay's upper layer may lie on an overlay, once; the rest is against surprises.
const MOST_LAYERS: usize = 8;

/// A held file and its mount.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// What its descriptor says.
    pub(super) held: Held,
    /// Its mount, or why that is not known.
    pub(super) mount: Result<Mount, String>,
    /// Devices of its pool, asked once: a pool that hangs takes its time.
    pub(super) pool: OnceCell<Result<Vec<Leaf>, String>>,
}

impl Place {
    pub(super) fn new(held: Held, roots: &Roots) -> Self {
        let mount = mount(&held, roots);
        Self {
            held,
            mount,
            pool: OnceCell::new(),
        }
    }

    pub(super) fn of_path(path: &Path, roots: &Roots) -> Result<Self, String> {
        Ok(Self::new(roots.held(path)?, roots))
    }

    /// `ext4`; `fuse` of `fuse.sshfs`.
    pub(super) fn fs_type(&self) -> Option<&str> {
        let whole = self.mount.as_ref().ok()?.fs_type.as_str();
        Some(whole.split_once('.').map_or(whole, |(kind, _)| kind))
    }
}

fn mount(held: &Held, roots: &Roots) -> Result<Mount, String> {
    let answers = held.statx.as_ref().map_err(Clone::clone)?;
    let id = answers
        .mnt_id
        .ok_or("neither statx nor fdinfo tells the mount")?;
    mountinfo::parse(&roots.bytes(MOUNTINFO)?)
        .into_iter()
        .find(|mount| mount.id == id)
        .ok_or_else(|| format!("mount {id} is not listed: it lies outside this root or namespace"))
}

/// The filesystems that a sync passes through: the target's, then each upper layer's.
#[derive(Clone, Debug)]
pub(super) struct Layers {
    places: Vec<Place>,
    /// An upper layer that cannot be reached, and why.
    pub(super) broken: Option<String>,
}

impl Layers {
    pub(super) fn of(held: Held, roots: &Roots) -> Self {
        let mut layers = Self {
            places: vec![Place::new(held, roots)],
            broken: None,
        };
        while let Some(upper) = overlay::upper(layers.last()) {
            let next = match upper {
                _ if layers.places.len() == MOST_LAYERS => Err("too many overlays".to_owned()),
                Ok(path) => directory(&path, roots),
                Err(why) => Err(why),
            };
            match next {
                Ok(place) => layers.places.push(place),
                Err(why) => {
                    layers.broken = Some(why);
                    break;
                }
            }
        }
        layers
    }

    /// The target's own place.
    pub(super) fn top(&self) -> &Place {
        &self.places[0]
    }

    /// The place where a sync ends.
    pub(super) fn last(&self) -> &Place {
        &self.places[self.places.len() - 1]
    }

    /// All, the target's first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Place> {
        self.places.iter()
    }
}

/// An upper layer is a directory; what is not was found under another layer's name.
fn directory(path: &Path, roots: &Roots) -> Result<Place, String> {
    let place = Place::of_path(path, roots)?;
    match &place.held.statx {
        Ok(answers) if answers.is_dir => Ok(place),
        Ok(_) => Err(format!("{} is no directory here", path.display())),
        Err(why) => Err(why.clone()),
    }
}

/// `mount.*`, `fs.type` and FUSE's `fs.subtype`.
pub(super) fn facts(place: &Place, facts: &mut FactMap) {
    let id = match place.held.statx.as_ref().map(|x| x.mnt_id) {
        Ok(Some(id)) => known(id, "statx"),
        Ok(None) => absent("statx", "not reported"),
        Err(why) => absent("statx", why),
    };
    put(facts, "mount.id", id);
    let mount = place.mount.as_ref();
    let field = |of: fn(&Mount) -> String| either(mount.map(of).map_err(Clone::clone), MOUNTINFO);
    put(
        facts,
        "mount.point",
        field(|m| m.point.to_string_lossy().into_owned()),
    );
    put(facts, "mount.source", field(|m| m.source.clone()));
    put(facts, "mount.options", field(Mount::all_options));
    let kind = place.fs_type().map(str::to_owned);
    put(
        facts,
        "fs.type",
        match (kind, mount) {
            (Some(kind), _) => known(kind, MOUNTINFO),
            (None, Err(why)) => absent(MOUNTINFO, why),
            (None, Ok(_)) => absent(MOUNTINFO, "empty"),
        },
    );
    let subtype = match mount {
        Err(why) => absent(MOUNTINFO, why),
        Ok(mount) => match mount.fs_type.split_once('.') {
            Some((_, subtype)) => known(subtype, MOUNTINFO),
            None => absent(MOUNTINFO, "none"),
        },
    };
    // An overlay puts its upper layer's type in its place.
    put(facts, "fs.subtype", subtype);
}
