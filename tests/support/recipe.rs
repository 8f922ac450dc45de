//! How a test filesystem is made: plain data, read from an expectation file's head.
//!
//! What every filesystem of a kind gets besides (no lazy initialisation, whose
//! writes would be counted as ours) is in `mounts`.

/// A filesystem to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// Its type.
    pub kind: Kind,
    /// Where its image lies.
    pub on: Base,
    /// Further arguments of mkfs.
    pub mkfs: Vec<String>,
    /// Mount options.
    pub mount: Option<String>,
    /// Size of the image, or of the tmpfs.
    pub size_bytes: u64,
    /// ZFS: properties of the dataset, as `recordsize=8k`.
    pub properties: Vec<String>,
    /// ZFS: how many reads a second the disk gives; none: what it can.
    pub reads_per_s: Option<u32>,
}

/// A filesystem type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// ext4 on a loop device.
    Ext4,
    /// XFS on a loop device.
    Xfs,
    /// btrfs on a loop device.
    Btrfs,
    /// In memory.
    Tmpfs,
    /// Over an ext4 on a loop device.
    Overlay,
    /// A dataset of a pool in an emulated machine, see `lab`.
    Zfs,
}

/// What an image lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The disk of the work folder.
    Disk,
    /// A tmpfs.
    Tmpfs,
    /// An ext4 of so many bytes on a loop device of its own: too small for the whole image, as a
    /// thinly provisioned disk is.
    Small(u64),
}

/// What an image is big unless told otherwise: room for all three life cases at once.
pub const SIZE_BYTES: u64 = 1 << 30;

impl Recipe {
    /// A filesystem with all defaults.
    #[must_use]
    pub const fn new(kind: Kind) -> Self {
        Self {
            kind,
            on: Base::Disk,
            mkfs: Vec::new(),
            mount: None,
            size_bytes: SIZE_BYTES,
            properties: Vec::new(),
            reads_per_s: None,
        }
    }

    /// With mount options.
    #[must_use]
    pub fn mounted_with(mut self, options: &str) -> Self {
        self.mount = Some(options.to_owned());
        self
    }

    /// On something else than the disk.
    #[must_use]
    pub const fn on(mut self, base: Base) -> Self {
        self.on = base;
        self
    }

    /// Of another size.
    #[must_use]
    pub const fn sized(mut self, bytes: u64) -> Self {
        self.size_bytes = bytes;
        self
    }
}

impl Kind {
    /// As the kernel and mkfs call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::Tmpfs => "tmpfs",
            Self::Overlay => "overlay",
            Self::Zfs => "zfs",
        }
    }

    /// The type of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [
            Self::Ext4,
            Self::Xfs,
            Self::Btrfs,
            Self::Tmpfs,
            Self::Overlay,
            Self::Zfs,
        ]
        .into_iter()
        .find(|kind| kind.name() == name)
    }

    /// What statfs(2) says of it.
    #[must_use]
    pub const fn magic(self) -> u64 {
        match self {
            Self::Ext4 => 0xef53,
            Self::Xfs => 0x5846_5342,
            Self::Btrfs => 0x9123_683e,
            Self::Tmpfs => 0x0102_1994,
            Self::Overlay => 0x794c_7630,
            Self::Zfs => 0x2fc1_2fc1,
        }
    }
}
