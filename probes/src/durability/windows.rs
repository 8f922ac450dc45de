//! What was counted during the syncs, and during writes between them that send no flush.
//!
//! Where others flush the same device their flushes are counted with ours, and they slow
//! down while we sync, so no rate tells them apart. A write that is waited for without a
//! flush (sync_file_range(2)) can: a sync that sends no flush would see those of others
//! just as often as such a write beside it.

use serde_json::json;

use crate::contract::{Clock, Counters, Counts, Observations};

/// See the module docs.
#[derive(Debug)]
pub(super) struct Windows {
    devices: Vec<Device>,
    has_device: bool,
    device_writes: u64,
    elapsed_ns: u64,
    beside: u64,
    at: Vec<(String, u64)>,
    before: Counts,
    from: u64,
}

#[derive(Debug, Default)]
struct Device {
    name: String,
    flushes: u64,
    /// Syncs during which it counted a flush.
    flushed_syncs: u64,
    /// Writes without a sync during which it did.
    flushed_writes: u64,
}

impl Windows {
    pub(super) fn new(counters: &dyn Counters) -> Self {
        let at = counters.flushes_by_device();
        let named = |(name, _): &(String, u64)| Device {
            name: name.clone(),
            ..Device::default()
        };
        Self {
            devices: at.iter().map(named).collect(),
            has_device: counters.has_device(),
            device_writes: 0,
            elapsed_ns: 0,
            beside: 0,
            at,
            before: Counts::default(),
            from: 0,
        }
    }

    /// A commit begins.
    pub(super) fn open(&mut self, counters: &dyn Counters, clock: &dyn Clock) {
        self.at = counters.flushes_by_device();
        self.before = counters.read();
        self.from = clock.now_ns();
    }

    /// It has returned.
    pub(super) fn close(&mut self, counters: &dyn Counters, clock: &dyn Clock) {
        self.elapsed_ns += clock.now_ns() - self.from;
        for (device, flushes) in self.moved(counters) {
            device.flushes += flushes;
            device.flushed_syncs += u64::from(flushes > 0);
        }
        self.device_writes += counters.read().since(&self.before).device_writes;
    }

    /// A write that is only waited for begins.
    pub(super) fn open_beside(&mut self, counters: &dyn Counters) {
        self.at = counters.flushes_by_device();
    }

    /// It has returned.
    pub(super) fn close_beside(&mut self, counters: &dyn Counters) {
        self.beside += 1;
        for (device, flushes) in self.moved(counters) {
            device.flushed_writes += u64::from(flushes > 0);
        }
    }

    fn moved(&mut self, counters: &dyn Counters) -> impl Iterator<Item = (&mut Device, u64)> {
        let now = counters.flushes_by_device();
        let moved: Vec<u64> = now
            .iter()
            .zip(&self.at)
            .map(|((_, now), (_, then))| now.saturating_sub(*then))
            .collect();
        self.devices.iter_mut().zip(moved)
    }

    pub(super) fn tell(self, seen: &mut Observations) {
        let mut put = |name: String, value| seen.insert(name, value);
        put("elapsed_ms".to_owned(), json!(self.elapsed_ns as f64 / 1e6));
        if self.has_device {
            put("device_writes".to_owned(), json!(self.device_writes));
        }
        if self.beside > 0 {
            put("writes_beside".to_owned(), json!(self.beside));
        }
        for device in self.devices {
            let name = &device.name;
            put(format!("flushes.{name}"), json!(device.flushes));
            if self.beside > 0 {
                let (syncs, writes) = (device.flushed_syncs, device.flushed_writes);
                put(format!("flushed_syncs.{name}"), json!(syncs));
                put(format!("flushed_writes.{name}"), json!(writes));
            }
        }
    }
}
