//! Differences between two trees, entry by entry, and the units to swap in.

use std::ops::Range;

use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::tree_path::TreePath;

/// Mask of the permission bits of a mode.
const PERMISSION_BITS: u32 = 0o7777;
/// Mask of the file type bits of a mode, and their value for a directory.
const FILE_TYPE_BITS: u32 = 0o170_000;
const DIR_TYPE_BITS: u32 = 0o040_000;

/// The type of an entry in a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeEntryKind {
    /// A file.
    File,
    /// A directory.
    #[serde(alias = "folder")]
    Directory,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Pipe,
}

/// The compared state of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EntryState {
    pub(super) kind: TreeEntryKind,
    pub(super) mode: u32,
    pub(super) size: u64,
    /// Target of a link.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) target: Option<TreePath>,
    /// Hash of the content, if it changed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) content: Option<String>,
}

/// A difference between two trees: one entry before and after.
#[derive(Debug, Clone)]
pub(super) struct EntryChange {
    pub(super) path: TreePath,
    pub(super) before: Option<EntryState>,
    pub(super) after: Option<EntryState>,
}

/// The file system metadata that identifies an unchanged entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StatFingerprint {
    device: i128,
    inode: u64,
    mode: u32,
    size: i64,
    modified: i128,
    pub(super) changed: i128,
}

/// An entry affected by a change, with its planned state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TouchedPath {
    pub(super) path: TreePath,
    pub(super) before: Option<StatFingerprint>,
    pub(super) after: PlannedEntryState,
}

/// The planned state of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PlannedEntryState {
    /// The entry is absent.
    #[serde(alias = "gone")]
    Absent,
    /// The entry stays the same, byte for byte.
    #[serde(alias = "same")]
    Unchanged,
    /// The entry is replaced.
    #[serde(alias = "other")]
    Replaced(EntryState),
    /// The directory stays, with other permissions.
    #[serde(alias = "permitted")]
    ModeChanged(PermissionBitsChange),
}

/// The way a change is swapped in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SwapMode {
    /// Create at a free name.
    #[serde(alias = "put")]
    Create,
    /// Exchange with the existing entry.
    Exchange,
    /// Remove the existing entry.
    #[serde(alias = "take")]
    Remove,
}

/// A path that is swapped in as one unit.
#[derive(Debug, Clone)]
pub(super) struct SwapUnit {
    pub(super) path: TreePath,
    pub(super) how: SwapMode,
    /// Range of its own entries in the list of touched paths.
    pub(super) touched: Range<usize>,
}

/// A change of the permissions of a directory that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PermissionBitsChange {
    pub(super) before: u32,
    pub(super) after: u32,
}

/// Files in a directory that were rewritten unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FilesRewrittenUnchanged {
    pub(super) folder: TreePath,
    pub(super) files: u64,
}

/// All changes that a command would make.
#[derive(Debug, Clone, Default)]
pub(super) struct ChangeSet {
    pub(super) changes: Vec<EntryChange>,
    pub(super) units: Vec<SwapUnit>,
    pub(super) mode_changes: Vec<(TreePath, PermissionBitsChange)>,
    pub(super) touched: Vec<TouchedPath>,
    pub(super) rewritten: Vec<FilesRewrittenUnchanged>,
    /// Protected paths that were created or changed nevertheless.
    pub(super) protected: Vec<TreePath>,
}

impl TreeEntryKind {
    /// Returns the type of an entry, or `None` for types that cannot be kept.
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
                // The size of a directory adds nothing to its entries.
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

    /// True if it is the same entry, possibly renamed since.
    pub(super) fn is_same_after_rename(&self, earlier: &Self) -> bool {
        let changed = earlier.changed;
        Self { changed, ..*self } == *earlier
    }
}

impl EntryChange {
    /// Returns the type to display: the new one, or the old one if the entry was deleted.
    pub(super) fn kind(&self) -> Option<TreeEntryKind> {
        let thing = self.after.as_ref().or(self.before.as_ref());
        thing.map(|thing| thing.kind)
    }
}

impl ChangeSet {
    /// Returns the paths that a unit touches.
    pub(super) fn touched_by(&self, unit: &SwapUnit) -> &[TouchedPath] {
        self.touched.get(unit.touched.clone()).unwrap_or_default()
    }
}

/// Returns the hash of all touched paths with their planned states.
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

/// Returns the permission bits of an entry.
pub(super) fn permissions(data: &Stat) -> u32 {
    mode_bits(data.st_mode) & PERMISSION_BITS
}

/// Returns the device and inode numbers of an entry.
pub(super) fn identity(data: &Stat) -> (i128, u64) {
    (data.st_dev.into(), data.st_ino)
}

/// Returns mode bits in one type, since it differs between systems.
fn mode_bits(bits: impl Into<u32>) -> u32 {
    bits.into()
}

/// Returns bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
