//! `host.*`: kernel, processors, memory, limits, virtualisation, what is preloaded.
//!
//! The cost of reading the clock is measured, not read: the engine puts it in place of
//! the null here.

use std::thread::available_parallelism;

use sysinfo::{MemoryRefreshKind, RefreshKind, System};

use super::{
    Roots, absent, cgroup, either, known, preload, put,
    virtualised::{container, hypervisor},
};
use crate::{
    report::{Fact, FactMap},
    sys::libc_version,
};

const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

pub(super) fn read(roots: &Roots) -> FactMap {
    let mut facts = FactMap::new();
    let mut fact = |name: &str, fact: Fact| put(&mut facts, name, fact);
    let uname = rustix::system::uname();
    fact(
        "host.kernel",
        known(uname.release().to_string_lossy(), "uname"),
    );
    let cpus = available_parallelism()
        .map(|n| n.get())
        .map_err(|e| e.to_string());
    fact("host.cpus", either(cpus, "sched_getaffinity, cgroup quota"));
    fact("host.memory_bytes", memory());
    fact("host.cgroup_memory_bytes", cgroup::memory(roots));
    fact("host.cgroup_io", cgroup::io(roots));
    fact("host.dirty_ratio", dirty_ratio(roots));
    fact("host.virtual", hypervisor(roots));
    fact("host.container", container(roots));
    fact("host.preload", preload::fact(roots));
    fact("host.timer_ns", absent("measured", "not measured yet"));
    fact(
        "host.clocksource",
        either(roots.text(CLOCKSOURCE), CLOCKSOURCE),
    );
    fact("host.libc", known(libc_version::name(), "libc"));
    facts
}

fn memory() -> Fact {
    let kind = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let source = "/proc/meminfo";
    match System::new_with_specifics(kind).map(|system| system.total_memory()) {
        Ok(0) => absent(source, "not told"),
        Ok(bytes) => known(bytes, source),
        Err(e) => absent(source, e.to_string()),
    }
}

/// The share of memory that may be dirty before writers are made to wait.
fn dirty_ratio(roots: &Roots) -> Fact {
    let source = "/proc/sys/vm/dirty_ratio";
    // One of the two is in force; setting one zeroes the other.
    let bytes = roots.text("/proc/sys/vm/dirty_bytes");
    match (roots.text(source), bytes.as_deref()) {
        (Ok(ratio), Ok("0") | Err(_)) => match ratio.parse::<u64>() {
            Ok(pct) => known(pct, source),
            Err(_) => absent(source, format!("not a number: {ratio}")),
        },
        (Ok(_), Ok(bytes)) => absent(source, format!("vm.dirty_bytes = {bytes} is in force")),
        (Err(why), _) => absent(source, why),
    }
}
