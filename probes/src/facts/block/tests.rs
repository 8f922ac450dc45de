//! Devices as sysfs shows them.

use super::*;

/// A device directory with these attributes.
fn device(name: &str, attributes: &[(&str, &str)]) -> (tempfile::TempDir, Block) {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join(name);
    fs::create_dir_all(&dir).unwrap();
    for (path, text) in attributes {
        let at = dir.join(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, format!("{text}\n")).unwrap();
    }
    let block = Block::at(&dir).unwrap();
    (root, block)
}

#[test]
fn a_cache_that_either_calls_write_back_is_one() {
    for (kernel, own, told) in [
        (Some("write back"), None, Some("write back")),
        (Some("write through"), None, Some("write through")),
        (
            Some("write through"),
            Some("write back"),
            Some("write back"),
        ),
        (
            Some("write through"),
            Some("write through"),
            Some("write through"),
        ),
        (None, Some("write back"), Some("write back")),
        (None, None, None),
    ] {
        let mut attributes = Vec::new();
        attributes.extend(kernel.map(|k| ("queue/write_cache", k)));
        attributes.extend(own.map(|o| ("cache_type", o)));
        let (_root, block) = device("vda", &attributes);
        assert_eq!(block.describe(false).write_cache.as_deref(), told);
    }
    let (_root, block) = device(
        "sda",
        &[
            ("queue/write_cache", "write through"),
            (
                "device/scsi_disk/0:0:0:0/cache_type",
                "write back, no read (daft)",
            ),
        ],
    );
    assert_eq!(
        block.describe(false).write_cache.as_deref(),
        Some("write back")
    );
}

#[test]
fn kinds_are_told_by_what_the_directory_holds() {
    for (name, attribute, value, kind) in [
        ("sda1", "partition", "1", "partition"),
        ("loop7", "loop/backing_file", "/x", "loop"),
        ("dm-0", "dm/uuid", "LVM-abc", "lvm"),
        ("dm-1", "dm/uuid", "CRYPT-LUKS2-abc", "crypt"),
        ("dm-2", "dm/uuid", "mpath-abc", "dm"),
        ("md127", "md/level", "raid1", "md"),
        ("zram0", "size", "8", "other"),
        ("ram1", "size", "8", "other"),
        ("nbd0", "size", "8", "other"),
        ("zd16", "size", "8", "other"),
        ("bcache0", "slaves/sda/size", "8", "other"),
        ("sda", "size", "8", "disk"),
        ("nvme0n1", "size", "8", "disk"),
    ] {
        let (_root, block) = device(name, &[(attribute, value)]);
        assert_eq!(block.describe(false).kind, kind, "{name}");
    }
}

#[test]
fn members_of_an_array_that_take_no_writes_are_left_out() {
    let (_root, md) = device(
        "md0",
        &[
            ("md/level", "raid1"),
            ("md/dev-sda/state", "in_sync"),
            ("md/dev-sdb/state", "in_sync,write_mostly"),
            ("md/dev-sdc/state", "spare"),
            ("md/dev-sdd/state", "faulty,write_error"),
            ("slaves/sda/size", "8"),
            ("slaves/sdb/size", "8"),
            ("slaves/sdc/size", "8"),
            ("slaves/sdd/size", "8"),
        ],
    );
    let names: Vec<String> = md.slaves().into_iter().map(|s| s.name).collect();
    assert_eq!(names, ["sda", "sdb"]);
    assert_eq!(md.describe(false).level.as_deref(), Some("raid1"));
}

#[test]
fn what_lies_below_a_virtual_disk_is_not_claimed_to_be_known() {
    let model = |model: &str, on_vm: bool| {
        let (_root, block) = device("sda", &[("device/model", model)]);
        block.describe(on_vm).is_virtual
    };
    assert_eq!(model("QEMU HARDDISK", false), Some(true));
    assert_eq!(model("Virtual disk", true), Some(true));
    assert_eq!(model("Amazon Elastic Block Store", true), Some(true));
    assert_eq!(model("WDC WD40EFRX", false), Some(false));
    assert_eq!(model("WDC WD40EFRX", true), None);
    let (_root, block) = device("nvme0n1", &[("device/transport", "tcp")]);
    assert_eq!(block.describe(false).is_virtual, Some(true));
    let (_root, block) = device("devices/virtio1/block/vda", &[("size", "8")]);
    assert_eq!(block.describe(false).is_virtual, Some(true));
    let (_root, block) = device("loop0", &[("loop/backing_file", "/x")]);
    assert_eq!(block.describe(true).is_virtual, Some(false));
}

#[test]
fn attributes_are_numbers_flags_and_the_active_scheduler() {
    let (_root, block) = device(
        "sda",
        &[
            ("queue/scheduler", "none [mq-deadline] kyber"),
            ("queue/rotational", "1"),
            ("queue/fua", "0"),
            ("queue/logical_block_size", "512"),
            ("queue/physical_block_size", "4096"),
            ("queue/atomic_write_unit_max_bytes", "0"),
            ("device/vendor", "SEAGATE"),
            ("device/model", "ST4000"),
        ],
    );
    let told = block.describe(false);
    assert_eq!(told.scheduler.as_deref(), Some("mq-deadline"));
    assert_eq!((told.rotational, told.fua), (Some(true), Some(false)));
    assert_eq!(told.logical_block_bytes, Some(512));
    assert_eq!(told.physical_block_bytes, Some(4096));
    assert_eq!(told.atomic_write_max_bytes, None);
    assert_eq!(told.model.as_deref(), Some("SEAGATE ST4000"));
    assert_eq!(active("none"), "none");
}

#[test]
fn memory_is_known_by_whole_names() {
    for name in ["zram0", "ram15", "nullb0"] {
        assert!(in_memory(name), "{name}");
    }
    for name in ["zram", "rama", "ramdisk0", "sda", "dram0"] {
        assert!(!in_memory(name), "{name}");
    }
}

#[test]
fn an_nvme_disk_of_several_paths_lies_on_them() {
    let root = tempfile::tempdir().unwrap();
    let at = |path: &str| root.path().join(path);
    for dir in [
        "virtual/nvme-subsystem/nvme-subsys0/nvme0n1/queue",
        "virtual/nvme-subsystem/nvme-subsys0/nvme0n12",
        "pci/nvme/nvme0/nvme0c0n1",
        "pci/nvme/nvme0/nvme0c0n12",
        "pci/nvme/nvme1/nvme0c1n1",
        "pci/nvme/nvme1/hwmon1",
        "pci/nvme/nvme2/nvme2n1",
    ] {
        fs::create_dir_all(at(dir)).unwrap();
    }
    for name in ["nvme0", "nvme1"] {
        let link = at("virtual/nvme-subsystem/nvme-subsys0").join(name);
        std::os::unix::fs::symlink(at("pci/nvme").join(name), link).unwrap();
    }
    let paths = |dir: &str| -> Vec<String> {
        let paths = Block::at(&at(dir)).unwrap().paths();
        paths.into_iter().map(|path| path.name).collect()
    };
    let head = "virtual/nvme-subsystem/nvme-subsys0/nvme0n1";
    assert_eq!(paths(head), ["nvme0c0n1", "nvme0c1n1"]);
    assert_eq!(Block::at(&at(head)).unwrap().describe(false).kind, "other");
    assert_eq!(
        paths("virtual/nvme-subsystem/nvme-subsys0/nvme0n12"),
        ["nvme0c0n12"]
    );
    assert!(paths("pci/nvme/nvme2/nvme2n1").is_empty());
    assert!(paths("pci/nvme/nvme0/nvme0c0n1").is_empty());
}
