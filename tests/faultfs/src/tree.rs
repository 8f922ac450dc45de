//! Names and nodes. Directories have a durable image too: the names that an honoured fsync of
//! the directory has seen.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::io::Errno;

use crate::disk::Disk;
use crate::image::Image;

/// The root's number.
pub(crate) const ROOT: u64 = 1;

pub(crate) type Names = BTreeMap<OsString, u64>;

#[derive(Debug)]
pub(crate) enum Body {
    File(Image),
    Folder { live: Names, durable: Names },
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) body: Body,
    pub(crate) mode: u16,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) links: u32,
    pub(crate) changed: SystemTime,
    /// Open descriptors.
    pub(crate) opened: u32,
}

#[derive(Debug)]
pub(crate) struct Tree {
    nodes: BTreeMap<u64, Node>,
    next: u64,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let mut tree = Self {
            nodes: BTreeMap::new(),
            next: ROOT,
        };
        tree.add(folder(), 0o755, 0, 0);
        tree
    }

    pub(crate) fn add(&mut self, body: Body, mode: u16, uid: u32, gid: u32) -> u64 {
        let number = self.next;
        self.next += 1;
        let node = Node {
            links: if matches!(body, Body::File(_)) { 1 } else { 2 },
            body,
            mode,
            uid,
            gid,
            changed: SystemTime::now(),
            opened: 0,
        };
        self.nodes.insert(number, node);
        number
    }

    pub(crate) fn node(&mut self, number: u64) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&number).ok_or(Errno::STALE)
    }

    pub(crate) fn image(&mut self, number: u64) -> Result<&mut Image, Errno> {
        match &mut self.node(number)?.body {
            Body::File(image) => Ok(image),
            Body::Folder { .. } => Err(Errno::ISDIR),
        }
    }

    pub(crate) fn images(&mut self) -> impl Iterator<Item = &mut Image> {
        self.nodes
            .values_mut()
            .filter_map(|node| match &mut node.body {
                Body::File(image) => Some(image),
                Body::Folder { .. } => None,
            })
    }

    pub(crate) fn names(&mut self, number: u64) -> Result<&mut Names, Errno> {
        match &mut self.node(number)?.body {
            Body::Folder { live, .. } => Ok(live),
            Body::File(_) => Err(Errno::NOTDIR),
        }
    }

    pub(crate) fn find(&mut self, parent: u64, name: &OsStr) -> Result<u64, Errno> {
        self.names(parent)?.get(name).copied().ok_or(Errno::NOENT)
    }

    pub(crate) fn insert(
        &mut self,
        parent: u64,
        name: &OsStr,
        make: impl FnOnce(&mut Self) -> u64,
    ) -> Result<u64, Errno> {
        if self.names(parent)?.contains_key(name) {
            return Err(Errno::EXIST);
        }
        let number = make(self);
        self.names(parent)?.insert(name.to_owned(), number);
        Ok(number)
    }

    pub(crate) fn remove(
        &mut self,
        parent: u64,
        name: &OsStr,
        is_folder: bool,
        disk: &mut Disk,
    ) -> Result<(), Errno> {
        let number = self.find(parent, name)?;
        match (&self.node(number)?.body, is_folder) {
            (Body::File(_), true) => return Err(Errno::NOTDIR),
            (Body::Folder { .. }, false) => return Err(Errno::ISDIR),
            (Body::Folder { live, .. }, true) if !live.is_empty() => return Err(Errno::NOTEMPTY),
            _ => {}
        }
        self.names(parent)?.remove(name);
        self.unlinked(number, disk)
    }

    pub(crate) fn rename(
        &mut self,
        from: (u64, &OsStr),
        to: (u64, &OsStr),
        disk: &mut Disk,
    ) -> Result<(), Errno> {
        let number = self.find(from.0, from.1)?;
        let old = self.names(to.0)?.insert(to.1.to_owned(), number);
        if old != Some(number) {
            self.names(from.0)?.remove(from.1);
            old.map_or(Ok(()), |old| self.unlinked(old, disk))?;
        }
        Ok(())
    }

    fn unlinked(&mut self, number: u64, disk: &mut Disk) -> Result<(), Errno> {
        let node = self.node(number)?;
        node.links = 0;
        self.forget(number, disk)
    }

    /// Gives back the room of a file that has neither a name nor a descriptor. The node stays
    /// for the directories whose durable image names it.
    pub(crate) fn forget(&mut self, number: u64, disk: &mut Disk) -> Result<(), Errno> {
        let node = self.node(number)?;
        if let Body::File(image) = &mut node.body
            && node.links == 0
            && node.opened == 0
        {
            image.release(disk);
        }
        Ok(())
    }

    pub(crate) fn sync_names(&mut self, number: u64) -> Result<(), Errno> {
        match &mut self.node(number)?.body {
            Body::Folder { live, durable } => {
                durable.clone_from(live);
                Ok(())
            }
            Body::File(_) => Err(Errno::NOTDIR),
        }
    }

    /// Files that a crash would leave, with their content.
    pub(crate) fn durable(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut left = BTreeMap::new();
        let mut folders = vec![(PathBuf::new(), ROOT)];
        while let Some((path, number)) = folders.pop() {
            match self.nodes.get(&number).map(|node| &node.body) {
                Some(Body::Folder { durable, .. }) => {
                    let below = durable.iter().map(|(name, is)| (path.join(name), *is));
                    folders.extend(below);
                }
                Some(Body::File(image)) => {
                    left.insert(path, image.durable());
                }
                None => {}
            }
        }
        left
    }

    /// The node at a path below the root.
    pub(crate) fn at(&mut self, path: &Path) -> Result<u64, Errno> {
        path.iter()
            .try_fold(ROOT, |number, name| self.find(number, name))
    }
}

pub(crate) const fn folder() -> Body {
    Body::Folder {
        live: Names::new(),
        durable: Names::new(),
    }
}
