//! Names: the scratch folder's, and those of the files in it.
//!
//! The folder's is `walprobe-RUNID-CHECK`. CHECK ties it to the directory it was made in:
//! FNV-1a (64 bits) over `walprobe scratch`, RUNID and the parent's inode number in decimal;
//! both halves xored, the low 30 bits as six Crockford base32 digits. A folder that was
//! copied or moved elsewhere, or named so by chance, does not verify. Where a filesystem
//! numbers its directories anew at each mount, nothing verifies after it: `clean` tells.

const PREFIX: &str = "walprobe-";
const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const RUN_ID_LEN: usize = 12;
const CHECK_LEN: usize = 6;

/// What a file's name in the scratch folder begins with.
pub const FILE_PREFIXES: [&str; 5] = ["seg-", "tmp-", "old-", "witness-", "file-"];

/// What the name of a folder in the scratch folder begins with that a dataset is mounted on.
pub const DATASET_PREFIX: &str = "dataset-";

/// Twelve upper-case Crockford base32 digits.
#[must_use]
pub fn is_run_id(text: &str) -> bool {
    text.len() == RUN_ID_LEN && text.bytes().all(|b| CROCKFORD.contains(&b))
}

/// The scratch folder's name for a run in the directory with this inode number.
#[must_use]
pub fn name_for(run_id: &str, parent_inode: u64) -> String {
    format!("{PREFIX}{run_id}-{}", check(run_id, parent_inode))
}

/// RUNID of a name that has the form, whether or not its CHECK verifies.
#[must_use]
pub fn run_id_of(name: &str) -> Option<&str> {
    let (run_id, check) = name.strip_prefix(PREFIX)?.split_once('-')?;
    let fits = check.len() == CHECK_LEN && check.bytes().all(|b| CROCKFORD.contains(&b));
    (is_run_id(run_id) && fits).then_some(run_id)
}

/// A name that walprobe gives to a file in its scratch folder: one of [`FILE_PREFIXES`],
/// then 1 to 60 of `a-z 0-9 + . @ _ -`.
#[must_use]
pub fn name_is_ours(name: &str) -> bool {
    FILE_PREFIXES
        .iter()
        .find_map(|p| name.strip_prefix(p))
        .is_some_and(|rest| {
            (1..=60).contains(&rest.len())
                && rest.bytes().all(
                    |b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'+' | b'.' | b'@' | b'_' | b'-'),
                )
        })
}

/// A name that walprobe gives to a folder in its scratch folder: [`DATASET_PREFIX`], then 1 to 20
/// of `a-z`.
#[must_use]
pub fn folder_is_ours(name: &str) -> bool {
    name.strip_prefix(DATASET_PREFIX).is_some_and(|rest| {
        (1..=20).contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_lowercase())
    })
}

fn check(run_id: &str, parent_inode: u64) -> String {
    let text = format!("walprobe scratch{run_id}{parent_inode}");
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    let folded = hash ^ (hash >> 32);
    (0..CHECK_LEN)
        .rev()
        .map(|i| char::from(CROCKFORD[(folded >> (5 * i)) as usize & 31]))
        .collect()
}
