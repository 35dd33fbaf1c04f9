//! What differs, entry by entry, and what has to be put in place to make it so.

use std::ops::Range;

use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::tree_path::TreePath;

/// The bits of a mode that say who may do what.
const PERMISSION_BITS: u32 = 0o7777;
/// The bits of a mode that say what something is, and what they are for a folder.
const FILE_TYPE_BITS: u32 = 0o170_000;
const DIR_TYPE_BITS: u32 = 0o040_000;

/// What a thing in a project is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeEntryKind {
    /// A file.
    File,
    /// A folder.
    #[serde(rename = "folder")]
    Directory,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Pipe,
}

/// A thing in a project: all that counts as a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EntryState {
    pub(super) kind: TreeEntryKind,
    pub(super) mode: u32,
    pub(super) size: u64,
    /// Where a link points to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) target: Option<TreePath>,
    /// The hash of a content that is not the one before.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) content: Option<String>,
}

/// One difference.
#[derive(Debug, Clone)]
pub(super) struct EntryChange {
    pub(super) path: TreePath,
    pub(super) before: Option<EntryState>,
    pub(super) after: Option<EntryState>,
}

/// What the file system says about something; as long as this is the same, so is the thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StatFingerprint {
    device: i128,
    inode: u64,
    mode: u32,
    size: i64,
    modified: i128,
    pub(super) changed: i128,
}

/// Something that lies where a change will be put, and what there will be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TouchedPath {
    pub(super) path: TreePath,
    pub(super) before: Option<StatFingerprint>,
    pub(super) after: PlannedState,
}

/// What there will be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PlannedState {
    /// Nothing.
    #[serde(rename = "gone")]
    Absent,
    /// What there is, to the byte.
    #[serde(rename = "same")]
    Unchanged,
    /// Something else.
    #[serde(rename = "other")]
    Replaced(EntryState),
    /// The same folder with other permissions.
    #[serde(rename = "permitted")]
    ModeChanged(ModeChange),
}

/// How a change is put in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SwapMode {
    /// Where nothing is.
    #[serde(rename = "put")]
    Create,
    /// In exchange for what is there.
    Exchange,
    /// Only what is there is taken away.
    #[serde(rename = "take")]
    Remove,
}

/// A path that is put in place as one.
#[derive(Debug, Clone)]
pub(super) struct SwapUnit {
    pub(super) path: TreePath,
    pub(super) how: SwapMode,
    /// Where in the list of what is touched its own part is.
    pub(super) touched: Range<usize>,
}

/// Permissions of a folder that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ModeChange {
    pub(super) before: u32,
    pub(super) after: u32,
}

/// Files in a folder that were written again as they were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RewrittenFiles {
    pub(super) folder: TreePath,
    pub(super) files: u64,
}

/// All that a command would change.
#[derive(Debug, Clone, Default)]
pub(super) struct ChangeSet {
    pub(super) changes: Vec<EntryChange>,
    pub(super) units: Vec<SwapUnit>,
    pub(super) mode_changes: Vec<(TreePath, ModeChange)>,
    pub(super) touched: Vec<TouchedPath>,
    pub(super) rewritten: Vec<RewrittenFiles>,
    /// What was made or changed although no repair may.
    pub(super) protected: Vec<TreePath>,
}

impl TreeEntryKind {
    /// What a thing is; none for what cannot be kept.
    pub(super) fn from_stat(data: &Stat) -> Option<Self> {
        match FileType::from_raw_mode(data.st_mode) {
            FileType::RegularFile => Some(Self::File),
            FileType::Directory => Some(Self::Directory),
            FileType::Symlink => Some(Self::Link),
            FileType::Fifo => Some(Self::Pipe),
            _ => None,
        }
    }
}

impl EntryState {
    pub(super) fn is_dir(&self) -> bool {
        self.kind == TreeEntryKind::Directory
    }
}

impl StatFingerprint {
    pub(super) fn from_stat(data: &Stat) -> Self {
        let nanos = |seconds: i128, nanos: i128| seconds * 1_000_000_000 + nanos;
        Self {
            device: data.st_dev.into(),
            inode: data.st_ino,
            mode: mode_bits(data.st_mode),
            size: match TreeEntryKind::from_stat(data) {
                // The size of a folder tells nothing that its entries do not.
                Some(TreeEntryKind::Directory) => 0,
                _ => data.st_size,
            },
            modified: nanos(data.st_mtime.into(), data.st_mtime_nsec.into()),
            changed: nanos(data.st_ctime.into(), data.st_ctime_nsec.into()),
        }
    }

    pub(super) fn is_dir(&self) -> bool {
        self.mode & FILE_TYPE_BITS == DIR_TYPE_BITS
    }

    pub(super) fn permissions(&self) -> u32 {
        self.mode & PERMISSION_BITS
    }

    /// Whether it is the same thing, which may have been renamed since.
    pub(super) fn is_same_after_rename(&self, earlier: &Self) -> bool {
        let changed = earlier.changed;
        Self { changed, ..*self } == *earlier
    }
}

impl EntryChange {
    /// The kind that counts for people: that after, or before where nothing is left.
    pub(super) fn kind(&self) -> Option<TreeEntryKind> {
        let thing = self.after.as_ref().or(self.before.as_ref());
        thing.map(|thing| thing.kind)
    }
}

impl ChangeSet {
    /// What a unit touches.
    pub(super) fn touched_by(&self, unit: &SwapUnit) -> &[TouchedPath] {
        self.touched.get(unit.touched.clone()).unwrap_or_default()
    }
}

/// The hash of all that would be touched, and of what there will be.
pub(super) fn digest(head: &[u8], touched: &[TouchedPath]) -> Result<String, serde_json::Error> {
    let mut hash = Sha256::new();
    hash.update((head.len() as u64).to_le_bytes());
    hash.update(head);
    for touched in touched {
        hash.update(serde_json::to_vec(touched)?);
        hash.update(b"\n");
    }
    Ok(hex(&hash.finalize()))
}

/// Who may do what with a thing.
pub(super) fn permissions(data: &Stat) -> u32 {
    mode_bits(data.st_mode) & PERMISSION_BITS
}

/// Which thing it is: its device and its number there.
pub(super) fn identity(data: &Stat) -> (i128, u64) {
    (data.st_dev.into(), data.st_ino)
}

/// The bits of a mode, which not all systems count alike.
fn mode_bits(bits: impl Into<u32>) -> u32 {
    bits.into()
}

/// Bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
