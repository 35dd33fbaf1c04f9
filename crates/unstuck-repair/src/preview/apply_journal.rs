//! What is being put in place, on disk before anything moves, so that it can be finished or undone after a crash.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::{Errno, Result};
use serde::{Deserialize, Serialize};

use super::change::{StatFingerprint, SwapMode};
use super::dir_handle;
use super::tree_path::TreePath;

/// What is written before anything moves.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ApplyJournal {
    pub(super) phase: ApplyPhase,
    pub(super) moves: Vec<PlannedMove>,
    pub(super) folders: Vec<DirModeChange>,
}

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ApplyPhase {
    /// Copies are made beside what is there. Nothing of the project is touched.
    Staging,
    /// The copies take the places of what is there.
    Moving,
    /// All are in place; what was there before is removed.
    Clearing,
}

/// One path that is put in place.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PlannedMove {
    pub(super) path: TreePath,
    pub(super) how: SwapMode,
    /// The name beside it: of the copy before, of what was there afterwards.
    #[serde(rename = "beside")]
    staging_name: String,
    /// What is there. Its number alone would not do: it is given again to what others make.
    pub(super) old: Option<StatFingerprint>,
    /// The copy.
    pub(super) new: Option<StatFingerprint>,
}

/// A folder that stays, with other permissions meanwhile or afterwards.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct DirModeChange {
    pub(super) path: TreePath,
    pub(super) before: u32,
    pub(super) after: u32,
}

/// Where a move stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MoveState {
    Waiting,
    Done,
    /// Nothing of it is in place, and somebody else's thing is there.
    Foreign,
    /// It is neither in place nor beside it.
    Lost,
}

impl ApplyJournal {
    pub(super) fn path_in(preview: &Path) -> PathBuf {
        preview.join("journal.json")
    }

    /// What a crash left; none if nothing was under way.
    pub(super) fn read(preview: &Path) -> io::Result<Option<Self>> {
        match fs::read(Self::path_in(preview)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes it so that it survives a power loss.
    pub(super) fn write(&self, preview: &Path) -> io::Result<()> {
        write_durably(&Self::path_in(preview), &serde_json::to_vec(self)?)
    }
}

/// Replaces a file so that it survives a power loss, old or new but never half.
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

/// What is at a name; none if there is nothing.
pub(super) fn fingerprint_at(folder: &OwnedFd, name: &[u8]) -> Result<Option<StatFingerprint>> {
    Ok(dir_handle::stat_entry(folder, name)?
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

    /// The path of what lies beside it.
    pub(super) fn staging_path(&self) -> TreePath {
        let folder = self.path.split().map(|(folder, _)| folder);
        folder
            .unwrap_or_default()
            .join(self.staging_name.as_bytes())
    }

    /// The folder that both names are in.
    pub(super) fn open_dir(&self, root: &OwnedFd) -> Result<OwnedFd> {
        let (folder, _) = self.path.split().ok_or(Errno::INVAL)?;
        dir_handle::open_dir_at(root, &folder)
    }

    pub(super) fn name(&self) -> &[u8] {
        self.path.split().map_or(b"", |(_, name)| name)
    }

    pub(super) fn staging_file_name(&self) -> &[u8] {
        self.staging_name.as_bytes()
    }

    /// Puts the copy in place.
    pub(super) fn perform(&self, folder: &OwnedFd) -> Result<()> {
        self.rename(folder, self.how)
    }

    /// Brings back what was there.
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

    /// Where it stands, by what lies at both names.
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
