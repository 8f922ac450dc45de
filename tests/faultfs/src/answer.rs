//! FUSE's requests, each turned into a call of [`State`]; its answer is sent after the wait
//! that the script asks for.
//!
//! The kernel turns a write with `O_DSYNC` into a WRITE whose flags say so and an FSYNC on the
//! same descriptor (`generic_write_sync`); with `O_SYNC` the FSYNC is a whole one. So the sync
//! that follows such a write is told from a call of fsync(2) by the write before it.
//!
//! One thread answers: a wait makes the others wait too, as on one disk. A call that hangs
//! holds up nobody: its answer is only never sent.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use fuser::{
    Errno as Code, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow,
    WriteFlags,
};
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::disk::BLOCK_BYTES;
use crate::image::Image;
use crate::script::{Call, Direct};
use crate::state::{Refused, State};
use crate::tree::{Body, folder};

/// The control file: looked up by this name in the root, listed nowhere.
pub const CONTROL: &str = ".faultfs";
const CONTROL_NUMBER: u64 = u64::MAX - 1;
/// Nothing is remembered by the kernel: the next look sees what is.
const NOT_KEPT: Duration = Duration::ZERO;
/// The longest write that comes in one piece: one record of the largest size.
const MOST_BYTES: u32 = 1 << 20;
/// fallocate(2): keep the size.
const KEEP_SIZE: i32 = 1;

/// A name in a directory, with its node and that node's kind.
type Entry = (u64, FileType, OsString);

/// An open descriptor.
#[derive(Debug, Default)]
struct Handle {
    /// The sync that the last write asked for itself.
    pending: Option<Call>,
}

#[derive(Debug, Default)]
struct Handles {
    open: BTreeMap<u64, Handle>,
    last: u64,
}

/// Answers that are never sent; sent as errors when dropped.
#[derive(Debug, Default)]
pub(crate) struct Held {
    empty: Vec<ReplyEmpty>,
    write: Vec<ReplyWrite>,
    entry: Vec<ReplyEntry>,
    attr: Vec<ReplyAttr>,
    open: Vec<ReplyOpen>,
    create: Vec<ReplyCreate>,
    data: Vec<ReplyData>,
    directory: Vec<ReplyDirectory>,
    statfs: Vec<ReplyStatfs>,
}

pub(crate) type Shared = Arc<Mutex<State>>;

#[derive(Debug)]
pub(crate) struct Answers {
    state: Shared,
    handles: Mutex<Handles>,
    held: Arc<Mutex<Held>>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends the answer of a call, an errno, or nothing.
macro_rules! answer {
    ($self:ident, $reply:ident, $kind:ident, $done:expr, $ok:expr) => {
        match $self.paid($done) {
            Ok(value) => $ok(value),
            Err(Refused::Errno(errno)) => $reply.error(Code::from_i32(errno.raw_os_error())),
            Err(Refused::Hang) => lock(&$self.held).$kind.push($reply),
        }
    };
}

impl Answers {
    pub(crate) fn new(state: Shared, held: Arc<Mutex<Held>>) -> Self {
        Self {
            state,
            handles: Mutex::default(),
            held,
        }
    }

    /// Does a call, then waits what it costs, with nothing locked.
    fn paid<T>(&self, call: impl FnOnce(&mut State) -> Result<T, Refused>) -> Result<T, Refused> {
        let (done, owed) = {
            let mut state = lock(&self.state);
            let done = call(&mut state);
            (done, state.owed())
        };
        if !owed.is_zero() {
            thread::sleep(owed);
        }
        done
    }

    fn open_handle(&self) -> FileHandle {
        let mut handles = lock(&self.handles);
        handles.last += 1;
        let number = handles.last;
        handles.open.insert(number, Handle::default());
        FileHandle(number)
    }

    fn pending(&self, handle: FileHandle) -> Option<Call> {
        lock(&self.handles)
            .open
            .get_mut(&handle.0)
            .and_then(|handle| handle.pending.take())
    }
}

fn attr(state: &mut State, number: u64) -> Result<FileAttr, Refused> {
    let blksize = state.script.blksize_bytes;
    let node = state.tree.node(number)?;
    let (size, allocated, kind) = match &node.body {
        Body::File(image) => (image.len(), image.allocated_bytes(), FileType::RegularFile),
        Body::Folder { .. } => (BLOCK_BYTES, BLOCK_BYTES, FileType::Directory),
    };
    Ok(FileAttr {
        ino: INodeNo(number),
        size,
        blocks: allocated / 512,
        atime: node.changed,
        mtime: node.changed,
        ctime: node.changed,
        crtime: node.changed,
        kind,
        perm: node.mode,
        nlink: node.links,
        uid: node.uid,
        gid: node.gid,
        rdev: 0,
        blksize,
        flags: 0,
    })
}

fn control_attr() -> FileAttr {
    let now = SystemTime::now();
    FileAttr {
        ino: INodeNo(CONTROL_NUMBER),
        size: 0,
        blocks: 0,
        atime: now,
        mtime: now,
        ctime: now,
        crtime: now,
        kind: FileType::RegularFile,
        perm: 0o600,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 512,
        flags: 0,
    }
}

fn flags(raw: i32) -> OFlags {
    OFlags::from_bits_retain(raw.cast_unsigned())
}

/// The sync that a write asks for itself. `O_SYNC` has the bit of `O_DSYNC` and one more.
/// rustix's `OFlags::DSYNC` is O_SYNC on Linux (1.1), so libc's are asked.
fn asked(flags: OFlags) -> Option<Call> {
    let flags = flags.bits().cast_signed();
    if flags & libc::O_SYNC == libc::O_SYNC {
        Some(Call::Osync)
    } else if flags & libc::O_DSYNC != 0 {
        Some(Call::Odsync)
    } else {
        None
    }
}

fn is_refused(state: &State, flags: OFlags, at: Direct) -> bool {
    flags.contains(OFlags::DIRECT) && state.script.direct == at
}

fn opened(state: &mut State, number: u64, with: OFlags) -> Result<(), Refused> {
    if is_refused(state, with, Direct::RefusedAtOpen) {
        return Err(Errno::INVAL.into());
    }
    if with.contains(OFlags::TRUNC) {
        state.truncate(number, 0)?;
    }
    state.tree.node(number)?.opened += 1;
    Ok(())
}

impl Filesystem for Answers {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        config
            .set_max_write(MOST_BYTES)
            .map(drop)
            .map_err(|most| std::io::Error::other(format!("max_write is at most {most}")))
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == CONTROL {
            reply.entry(&NOT_KEPT, &control_attr(), Generation(0));
            return;
        }
        let done = |state: &mut State| {
            state.begin(Call::Lookup)?;
            let number = state.tree.find(parent.0, name)?;
            attr(state, number)
        };
        answer!(self, reply, entry, done, |attr| reply.entry(
            &NOT_KEPT,
            &attr,
            Generation(0)
        ));
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        if ino.0 == CONTROL_NUMBER {
            reply.attr(&NOT_KEPT, &control_attr());
            return;
        }
        let done = |state: &mut State| {
            state.begin(Call::Getattr)?;
            attr(state, ino.0)
        };
        answer!(self, reply, attr, done, |attr| reply.attr(&NOT_KEPT, &attr));
    }

    fn setattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        if ino.0 == CONTROL_NUMBER {
            reply.attr(&NOT_KEPT, &control_attr());
            return;
        }
        let done = |state: &mut State| {
            state.begin(Call::Setattr)?;
            if let Some(size) = size {
                state.truncate(ino.0, size)?;
            }
            let node = state.tree.node(ino.0)?;
            node.mode = mode.map_or(node.mode, permissions);
            node.uid = uid.unwrap_or(node.uid);
            node.gid = gid.unwrap_or(node.gid);
            node.changed = SystemTime::now();
            attr(state, ino.0)
        };
        answer!(self, reply, attr, done, |attr| reply.attr(&NOT_KEPT, &attr));
    }

    fn mkdir(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let (uid, gid) = (req.uid(), req.gid());
        let done = |state: &mut State| {
            state.begin(Call::Mkdir)?;
            let mode = permissions(mode & !umask);
            let number = state
                .tree
                .insert(parent.0, name, |tree| tree.add(folder(), mode, uid, gid))?;
            attr(state, number)
        };
        answer!(self, reply, entry, done, |attr| reply.entry(
            &NOT_KEPT,
            &attr,
            Generation(0)
        ));
    }

    fn unlink(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let done = |state: &mut State| {
            state.begin(Call::Unlink)?;
            Ok(state.tree.remove(parent.0, name, false, &mut state.disk)?)
        };
        answer!(self, reply, empty, done, |()| reply.ok());
    }

    fn rmdir(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let done = |state: &mut State| {
            state.begin(Call::Rmdir)?;
            Ok(state.tree.remove(parent.0, name, true, &mut state.disk)?)
        };
        answer!(self, reply, empty, done, |()| reply.ok());
    }

    fn rename(
        &self,
        _req: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let done = |state: &mut State| {
            state.begin(Call::Rename)?;
            if flags.contains(RenameFlags::RENAME_EXCHANGE) {
                return Err(Errno::INVAL.into());
            }
            if flags.contains(RenameFlags::RENAME_NOREPLACE)
                && state.tree.find(newparent.0, newname).is_ok()
            {
                return Err(Errno::EXIST.into());
            }
            let (from, to) = ((parent.0, name), (newparent.0, newname));
            Ok(state.tree.rename(from, to, &mut state.disk)?)
        };
        answer!(self, reply, empty, done, |()| reply.ok());
    }

    fn open(&self, _req: &Request, ino: INodeNo, with: OpenFlags, reply: ReplyOpen) {
        if ino.0 == CONTROL_NUMBER {
            reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
            return;
        }
        let done = |state: &mut State| {
            state.begin(Call::Open)?;
            opened(state, ino.0, flags(with.0))
        };
        answer!(self, reply, open, done, |()| reply
            .opened(self.open_handle(), FopenFlags::FOPEN_KEEP_CACHE));
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        with: i32,
        reply: ReplyCreate,
    ) {
        let (uid, gid) = (req.uid(), req.gid());
        let done = |state: &mut State| {
            state.begin(Call::Create)?;
            if is_refused(state, flags(with), Direct::RefusedAtOpen) {
                return Err(Errno::INVAL.into());
            }
            let mode = permissions(mode & !umask);
            let body = Body::File(Image::default());
            let number = state
                .tree
                .insert(parent.0, name, |tree| tree.add(body, mode, uid, gid))?;
            opened(state, number, flags(with))?;
            attr(state, number)
        };
        answer!(self, reply, create, done, |attr| reply.created(
            &NOT_KEPT,
            &attr,
            Generation(0),
            self.open_handle(),
            FopenFlags::FOPEN_KEEP_CACHE
        ));
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        with: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if ino.0 == CONTROL_NUMBER {
            let text = lock(&self.state).counts.text();
            let from = usize::try_from(offset).map_or(text.len(), |from| from.min(text.len()));
            let to = text.len().min(from + size as usize);
            reply.data(&text.as_bytes()[from..to]);
            return;
        }
        let done = |state: &mut State| {
            state.begin(Call::Read)?;
            if is_refused(state, flags(with.0), Direct::RefusedAtUse) {
                return Err(Errno::INVAL.into());
            }
            Ok(state.read(ino.0, offset, u64::from(size))?)
        };
        answer!(self, reply, data, done, |data: Vec<u8>| reply.data(&data));
    }

    fn write(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        with: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let whole = data.len() as u32;
        if ino.0 == CONTROL_NUMBER {
            match data {
                b"drop" | b"drop\n" => {
                    lock(&self.state).drop_caches();
                    reply.written(whole);
                }
                _ => reply.error(Code::EINVAL),
            }
            return;
        }
        let with = flags(with.0);
        if let Some(handle) = lock(&self.handles).open.get_mut(&fh.0) {
            handle.pending = asked(with);
        }
        let done = |state: &mut State| {
            let is_short = state.begin(Call::Write)?;
            if is_refused(state, with, Direct::RefusedAtUse) {
                return Err(Errno::INVAL.into());
            }
            let part = if is_short { whole / 2 } else { whole };
            state.write(ino.0, offset, &data[..part as usize])?;
            Ok(part)
        };
        answer!(self, reply, write, done, |part| reply.written(part));
    }

    fn flush(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        if ino.0 == CONTROL_NUMBER {
            reply.ok();
            return;
        }
        let done = |state: &mut State| {
            state.begin(Call::Close)?;
            Ok(state.close(ino.0)?)
        };
        answer!(self, reply, empty, done, |()| reply.ok());
    }

    fn release(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        lock(&self.handles).open.remove(&fh.0);
        let state = &mut *lock(&self.state);
        if let Ok(node) = state.tree.node(ino.0) {
            node.opened = node.opened.saturating_sub(1);
            // A node that is there can be forgotten.
            let _ = state.tree.forget(ino.0, &mut state.disk);
        }
        reply.ok();
    }

    fn fsync(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        datasync: bool,
        reply: ReplyEmpty,
    ) {
        if ino.0 == CONTROL_NUMBER {
            reply.ok();
            return;
        }
        let call = self.pending(fh).unwrap_or(if datasync {
            Call::Fdatasync
        } else {
            Call::Fsync
        });
        let done = |state: &mut State| {
            state.begin(call)?;
            Ok(state.sync(ino.0, call)?)
        };
        answer!(self, reply, empty, done, |()| reply.ok());
    }

    fn fsyncdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        let done = |state: &mut State| {
            state.begin(Call::Fsyncdir)?;
            Ok(state.sync_names(ino.0)?)
        };
        answer!(self, reply, empty, done, |()| reply.ok());
    }

    fn readdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let done = |state: &mut State| {
            state.begin(Call::Readdir)?;
            let names = state.tree.names(ino.0)?.clone();
            let mut list = vec![
                (ino.0, FileType::Directory, ".".into()),
                (ino.0, FileType::Directory, "..".into()),
            ];
            for (name, number) in names {
                let kind = match state.tree.node(number)?.body {
                    Body::File(_) => FileType::RegularFile,
                    Body::Folder { .. } => FileType::Directory,
                };
                list.push((number, kind, name));
            }
            Ok(list)
        };
        answer!(self, reply, directory, done, |list: Vec<Entry>| {
            let from = usize::try_from(offset).unwrap_or(usize::MAX);
            for (index, (number, kind, name)) in list.iter().enumerate().skip(from) {
                if reply.add(INodeNo(*number), index as u64 + 1, *kind, name) {
                    break;
                }
            }
            reply.ok();
        });
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let done = |state: &mut State| {
            state.begin(Call::Statfs)?;
            let bsize = state.script.bsize_bytes;
            let scaled = |blocks: u64| blocks * BLOCK_BYTES / u64::from(bsize);
            let (all, free) = state.room();
            Ok((scaled(all), scaled(free), bsize))
        };
        answer!(self, reply, statfs, done, |(all, free, bsize)| reply
            .statfs(all, free, free, 1 << 20, 1 << 20, bsize, 255, bsize));
    }

    fn fallocate(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let done = |state: &mut State| {
            state.begin(Call::Fallocate)?;
            if mode & !KEEP_SIZE != 0 {
                return Err(Errno::OPNOTSUPP.into());
            }
            state.allocate(ino.0, offset, length)?;
            let end = offset + length;
            if mode & KEEP_SIZE == 0 && state.tree.image(ino.0)?.len() < end {
                state.truncate(ino.0, end)?;
            }
            Ok(())
        };
        answer!(self, reply, empty, done, |()| reply.ok());
    }
}

fn permissions(mode: u32) -> u16 {
    (mode & 0o7777) as u16
}
