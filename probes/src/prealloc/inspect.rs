//! What a segment is after each step: its length, its content, the space it holds and how.

use std::{collections::BTreeMap, io};

use serde_json::{Value, json};

use crate::{
    contract::{Fault, Observations, Pulse, Series},
    files::{FILL_BYTES, WalFile},
    segment::Maker,
    sys::{errno, fiemap},
};

/// What is seen of one life.
pub(super) type Seen = BTreeMap<Series, Observations>;

/// Free bytes of the filesystem.
pub(super) fn free_bytes(maker: &Maker) -> Result<u64, Fault> {
    let stat = maker.folder().statvfs()?;
    Ok(stat.f_bfree.saturating_mul(stat.f_frsize))
}

/// Looks at a new segment, which is to have `length` bytes, all zero.
pub(super) fn created(
    file: &WalFile,
    length: u64,
    free_gone: u64,
    pulse: &Pulse,
    seen: &mut Seen,
) -> Result<(), Fault> {
    let zero = all_zero(file, length, pulse)?;
    let mut own = Observations::new();
    step(file, length, length, free_gone, &mut own)?;
    let value = |name: &str| own.get(name).cloned().unwrap_or(Value::Null);
    let common = seen.entry("").or_default();
    let mut put = |name: &str, value: Value| common.insert(name.to_owned(), value);
    put("supported", json!(true));
    put("content_zero", json!(zero));
    put("create_unwritten_pct", value("unwritten_pct"));
    put("create_allocated_bytes", value("allocated_bytes"));
    put("create_free_bytes_gone", value("free_bytes_gone"));
    seen.insert("create", own);
    Ok(())
}

/// Looks at the segment after a step: it is to have `length` bytes; the extents are those of its
/// first `bytes`.
pub(super) fn step(
    file: &WalFile,
    length: u64,
    bytes: u64,
    free_gone: u64,
    seen: &mut Observations,
) -> Result<(), Fault> {
    let stat = file.stat()?;
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let mut put = |name: &str, value: Value| seen.insert(name.to_owned(), value);
    put("size_bytes", json!(size));
    put("length_right", json!(size == length));
    put("free_bytes_gone", json!(free_gone));
    // btrfs counts what is compressed at its full length.
    let encoded = encoded_bytes(file, size)?;
    if encoded > 0 {
        let pct = 100.0 * encoded as f64 / size as f64;
        put("encoded_pct", json!((pct * 100.0).round() / 100.0));
    } else {
        put("allocated_bytes", json!(allocated(&stat)));
    }
    let bytes = bytes.min(size);
    if bytes == 0 {
        put("extents", json!(0));
        return Ok(());
    }
    match fiemap::extents(file.fd(), bytes) {
        Ok(extents) => {
            let pct = 100.0 * extents.unwritten_bytes as f64 / bytes as f64;
            put("extents", json!(extents.count));
            put("unwritten_pct", json!((pct * 100.0).round() / 100.0));
        }
        // Such a filesystem says nothing about extents.
        Err(e) if is_silent(&e) => {
            put("fiemap", json!("unsupported"));
        }
        Err(e) => return Err(failed(file, &e)),
    }
    Ok(())
}

/// Bytes of the file that are stored compressed; 0 where the filesystem does not tell.
fn encoded_bytes(file: &WalFile, size: u64) -> Result<u64, Fault> {
    match fiemap::extents(file.fd(), size) {
        Ok(extents) => Ok(extents.encoded_bytes),
        Err(e) if is_silent(&e) => Ok(0),
        Err(e) => Err(failed(file, &e)),
    }
}

fn is_silent(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(errno::is_unsupported)
}

fn failed(file: &WalFile, error: &io::Error) -> Fault {
    let errno = error.raw_os_error().unwrap_or(libc::EIO);
    file.fault("ioctl(FS_IOC_FIEMAP)", errno)
}

/// A file whose allocation is counted late holds less, by its own account, than was written to it
/// durably and cannot be compressed: then the account is worth nothing.
pub(super) fn believe(allocated_bytes: u64, written_bytes: u64, seen: &mut Seen) {
    if allocated_bytes >= written_bytes {
        return;
    }
    let pct = 100.0 * allocated_bytes as f64 / written_bytes as f64;
    for own in seen.values_mut() {
        own.remove("allocated_bytes");
    }
    let common = seen.entry("").or_default();
    common.insert("create_allocated_bytes".to_owned(), Value::Null);
    let pct = (pct * 10.0).round() / 10.0;
    common.insert("allocated_of_written_pct".to_owned(), json!(pct));
}

/// Allocated bytes as stat(2) tells.
pub(super) fn allocated(stat: &rustix::fs::Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or(0) * 512
}

fn all_zero(file: &WalFile, length: u64, pulse: &Pulse) -> Result<bool, Fault> {
    let size = u64::try_from(file.stat()?.st_size).unwrap_or(0);
    let mut piece = vec![0; FILL_BYTES as usize];
    let mut at = 0;
    while at < size.min(length) {
        let part = (size.min(length) - at).min(FILL_BYTES) as usize;
        file.pread_all(&mut piece[..part], at)?;
        if piece[..part].iter().any(|b| *b != 0) {
            return Ok(false);
        }
        at += part as u64;
        pulse.beat();
    }
    Ok(true)
}
