//! A journal of the moves, written to disk before the first one, so that they can be finished or undone after a crash.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::{Errno, Result};
use serde::{Deserialize, Serialize};

use super::change_set::{StatFingerprint, SwapMode};
use super::nofollow_access;
use super::tree_path::TreePath;

/// The journal of an apply operation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ApplyJournal {
    pub(super) phase: ApplyPhase,
    pub(super) moves: Vec<PlannedMove>,
    pub(super) folders: Vec<DirPermissionChange>,
}

/// The phase of an apply operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ApplyPhase {
    /// Copies are being staged. The project is unchanged.
    Staging,
    /// The copies are being swapped in.
    Moving,
    /// All copies are in place; the old entries are being removed.
    Clearing,
}

/// A planned move of one path.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PlannedMove {
    pub(super) path: TreePath,
    pub(super) how: SwapMode,
    /// Name next to the target: of the copy before the move, of the old entry afterwards.
    #[serde(alias = "beside")]
    staging_name: String,
    /// Fingerprint of the old entry. An inode number alone would not do: it is reused.
    pub(super) old: Option<StatFingerprint>,
    /// Fingerprint of the copy.
    pub(super) new: Option<StatFingerprint>,
}

/// A directory that stays, with different permissions during or after the operation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct DirPermissionChange {
    pub(super) path: TreePath,
    pub(super) before: u32,
    pub(super) after: u32,
}

/// The state of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MoveState {
    Waiting,
    Done,
    /// The move is not done, and the target is somebody else's entry.
    Foreign,
    /// The copy is neither at its target nor staged.
    Lost,
}

impl ApplyJournal {
    pub(super) fn path_in(preview: &Path) -> PathBuf {
        preview.join("journal.json")
    }

    /// Reads the journal left by a crash, or returns `None` if there is none.
    #[expect(
        clippy::disallowed_methods,
        reason = "the journal is in the state directory, never in a project"
    )]
    pub(super) fn read(preview: &Path) -> io::Result<Option<Self>> {
        match fs::read(Self::path_in(preview)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the journal durably (survives a power loss).
    pub(super) fn write(&self, preview: &Path) -> io::Result<()> {
        write_durably(&Self::path_in(preview), &serde_json::to_vec(self)?)
    }
}

/// Replaces a file atomically and durably: it is old or new, never partial.
#[expect(
    clippy::disallowed_methods,
    reason = "files of a preview are in the state directory, never in a project"
)]
pub(super) fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// Returns the fingerprint of a name, or `None` if it does not exist.
pub(super) fn fingerprint_at(folder: &OwnedFd, name: &[u8]) -> Result<Option<StatFingerprint>> {
    Ok(nofollow_access::stat_entry(folder, name)?
        .as_ref()
        .map(StatFingerprint::from_stat))
}

impl PlannedMove {
    pub(super) fn new(id: &str, number: usize, path: &TreePath, how: SwapMode) -> Self {
        Self {
            path: path.clone(),
            how,
            staging_name: format!(".unstuck-{id}-{number}"),
            old: None,
            new: None,
        }
    }

    /// Returns the path of the staged entry.
    pub(super) fn staging_path(&self) -> TreePath {
        let folder = self.path.split().map(|(folder, _)| folder);
        folder
            .unwrap_or_default()
            .join(self.staging_name.as_bytes())
    }

    /// Opens the directory that contains both names.
    pub(super) fn open_dir(&self, root: &OwnedFd) -> Result<OwnedFd> {
        let (folder, _) = self.path.split().ok_or(Errno::INVAL)?;
        nofollow_access::open_dir_at(root, &folder)
    }

    pub(super) fn name(&self) -> &[u8] {
        self.path.split().map_or(b"", |(_, name)| name)
    }

    pub(super) fn staging_file_name(&self) -> &[u8] {
        self.staging_name.as_bytes()
    }

    /// Swaps the copy in.
    pub(super) fn perform(&self, folder: &OwnedFd) -> Result<()> {
        self.rename(folder, self.how)
    }

    /// Restores the old entry.
    pub(super) fn undo(&self, folder: &OwnedFd) -> Result<()> {
        self.rename(
            folder,
            match self.how {
                SwapMode::Create => SwapMode::Remove,
                SwapMode::Exchange => SwapMode::Exchange,
                SwapMode::Remove => SwapMode::Create,
            },
        )
    }

    fn rename(&self, folder: &OwnedFd, how: SwapMode) -> Result<()> {
        let (name, beside) = (self.name(), self.staging_file_name());
        let (from, to, flags) = match how {
            SwapMode::Create => (beside, name, RenameFlags::NOREPLACE),
            SwapMode::Exchange => (beside, name, RenameFlags::EXCHANGE),
            SwapMode::Remove => (name, beside, RenameFlags::NOREPLACE),
        };
        renameat_with(folder, from, folder, to, flags)
    }

    /// Determines the state of the move from the entries at both names.
    pub(super) fn state(&self, folder: &OwnedFd) -> Result<MoveState> {
        let there = fingerprint_at(folder, self.name())?;
        let beside = fingerprint_at(folder, self.staging_file_name())?;
        let is = |now: &Option<StatFingerprint>, then: &Option<StatFingerprint>| match (now, then) {
            (Some(now), Some(then)) => now.is_same_after_rename(then),
            (None, None) => true,
            _ => false,
        };
        Ok(if is(&there, &self.old) && is(&beside, &self.new) {
            MoveState::Waiting
        } else if is(&there, &self.new) && is(&beside, &self.old) {
            MoveState::Done
        } else if is(&beside, &self.new) {
            MoveState::Foreign
        } else {
            MoveState::Lost
        })
    }
}
