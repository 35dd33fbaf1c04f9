//! What differs, entry by entry, and what has to be put in place to make it so.

use std::ops::Range;

use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::path::TreePath;

/// The bits of a mode that say who may do what.
const PERMISSIONS: u32 = 0o7777;
/// The bits of a mode that say what something is, and what they are for a folder.
const KIND: u32 = 0o170_000;
const FOLDER: u32 = 0o040_000;

/// What a thing in a project is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A file.
    File,
    /// A folder.
    #[serde(rename = "folder")]
    Folder,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Pipe,
}

/// A thing in a project: all that counts as a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Thing {
    pub(super) kind: Kind,
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
pub(super) struct Change {
    pub(super) path: TreePath,
    pub(super) before: Option<Thing>,
    pub(super) after: Option<Thing>,
}

/// What the file system says about something; as long as this is the same, so is the thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Print {
    device: i128,
    inode: u64,
    mode: u32,
    size: i64,
    modified: i128,
    pub(super) changed: i128,
}

/// Something that lies where a change will be put, and what there will be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Touched {
    pub(super) path: TreePath,
    pub(super) before: Option<Print>,
    pub(super) after: After,
}

/// What there will be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum After {
    /// Nothing.
    #[serde(rename = "gone")]
    Gone,
    /// What there is, to the byte.
    #[serde(rename = "same")]
    Same,
    /// Something else.
    #[serde(rename = "other")]
    Other(Thing),
    /// The same folder with other permissions.
    #[serde(rename = "permitted")]
    Permitted(Permitted),
}

/// How a change is put in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum How {
    /// Where nothing is.
    #[serde(rename = "put")]
    Put,
    /// In exchange for what is there.
    Exchange,
    /// Only what is there is taken away.
    #[serde(rename = "take")]
    Take,
}

/// A path that is put in place as one.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) path: TreePath,
    pub(super) how: How,
    /// Where in the list of what is touched its own part is.
    pub(super) touched: Range<usize>,
}

/// Permissions of a folder that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Permitted {
    pub(super) before: u32,
    pub(super) after: u32,
}

/// Files in a folder that were written again as they were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rewritten {
    pub(super) folder: TreePath,
    pub(super) files: u64,
}

/// All that a command would change.
#[derive(Debug, Clone, Default)]
pub(super) struct Changes {
    pub(super) changes: Vec<Change>,
    pub(super) units: Vec<Unit>,
    pub(super) permitted: Vec<(TreePath, Permitted)>,
    pub(super) touched: Vec<Touched>,
    pub(super) rewritten: Vec<Rewritten>,
    /// What was made or changed although no repair may.
    pub(super) refused: Vec<TreePath>,
}

impl Kind {
    /// What a thing is; none for what cannot be kept.
    pub(super) fn of(data: &Stat) -> Option<Self> {
        match FileType::from_raw_mode(data.st_mode) {
            FileType::RegularFile => Some(Self::File),
            FileType::Directory => Some(Self::Folder),
            FileType::Symlink => Some(Self::Link),
            FileType::Fifo => Some(Self::Pipe),
            _ => None,
        }
    }
}

impl Thing {
    pub(super) fn is_folder(&self) -> bool {
        self.kind == Kind::Folder
    }
}

impl Print {
    pub(super) fn of(data: &Stat) -> Self {
        let nanos = |seconds: i128, nanos: i128| seconds * 1_000_000_000 + nanos;
        Self {
            device: data.st_dev.into(),
            inode: data.st_ino,
            mode: widened(data.st_mode),
            size: match Kind::of(data) {
                // The size of a folder tells nothing that its entries do not.
                Some(Kind::Folder) => 0,
                _ => data.st_size,
            },
            modified: nanos(data.st_mtime.into(), data.st_mtime_nsec.into()),
            changed: nanos(data.st_ctime.into(), data.st_ctime_nsec.into()),
        }
    }

    pub(super) fn is_folder(&self) -> bool {
        self.mode & KIND == FOLDER
    }

    pub(super) fn permissions(&self) -> u32 {
        self.mode & PERMISSIONS
    }

    /// Whether it is the same thing, which may have been renamed since.
    pub(super) fn is_renamed(&self, earlier: &Self) -> bool {
        let changed = earlier.changed;
        Self { changed, ..*self } == *earlier
    }
}

impl Change {
    /// The kind that counts for people: that after, or before where nothing is left.
    pub(super) fn kind(&self) -> Option<Kind> {
        let thing = self.after.as_ref().or(self.before.as_ref());
        thing.map(|thing| thing.kind)
    }
}

impl Changes {
    /// What a unit touches.
    pub(super) fn touched_by(&self, unit: &Unit) -> &[Touched] {
        self.touched.get(unit.touched.clone()).unwrap_or_default()
    }
}

/// The hash of all that would be touched, and of what there will be.
pub(super) fn digest(head: &[u8], touched: &[Touched]) -> Result<String, serde_json::Error> {
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
    widened(data.st_mode) & PERMISSIONS
}

/// Which thing it is: its device and its number there.
pub(super) fn identity(data: &Stat) -> (i128, u64) {
    (data.st_dev.into(), data.st_ino)
}

/// The bits of a mode, which not all systems count alike.
fn widened(bits: impl Into<u32>) -> u32 {
    bits.into()
}

/// Bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
