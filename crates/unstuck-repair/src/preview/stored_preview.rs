//! A stored preview, kept until it is applied or discarded.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, fstat, openat};
use serde::{Deserialize, Serialize};

use crate::project_lock::ProjectRepairLock;

use super::apply_journal::{ApplyJournal, write_durably};
use super::change_set::{ChangeSet, TouchedPath, identity};
use super::error::{PreviewApplyError, PreviewError};
use super::limits::PreviewLimits;
use super::remove_tree::remove_tree;
use super::report::PreviewReport;
use super::tree_path::TreePath;

/// File names of a stored preview.
pub(super) const UPPER_DIR: &str = "upper";
pub(super) const WORK_DIR: &str = "work";
const LOCK_FILE: &str = "lock";
pub(super) const RECORD_FILE: &str = "preview.json";
const TOUCHED_FILE: &str = "touched.jsonl";
/// Number of hash letters in an id.
const ID_LENGTH: usize = 12;

/// A stored preview, kept until it is applied or discarded.
#[derive(Debug)]
pub struct Preview {
    folder: PathBuf,
    record: PreviewRecord,
    /// Held while the preview is in use.
    _lock: File,
}

/// The stored record of a preview.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PreviewRecord {
    pub(super) report: PreviewReport,
    /// Device and inode of the project's root.
    pub(super) root: (i128, u64),
    /// Protected paths.
    #[serde(rename = "guarded")]
    pub(super) protected: Vec<TreePath>,
    pub(super) bounds: PreviewLimits,
}

impl Preview {
    /// Returns the report.
    pub fn report(&self) -> &PreviewReport {
        &self.record.report
    }

    /// Removes the preview. The project stays unchanged.
    pub fn discard(self) -> Result<(), PreviewError> {
        remove_preview_dir(&self.folder)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the store of previews is in the state directory, never in a project"
    )]
    pub(super) fn open(folder: PathBuf, id: &str) -> Result<Self, PreviewError> {
        let damaged = || PreviewError::Damaged { id: id.to_owned() };
        let busy = || PreviewError::Busy { id: id.to_owned() };
        let lock = try_lock(&folder).map_err(|source| PreviewError::Storage {
            path: folder.clone(),
            source,
        })?;
        let lock = lock.ok_or_else(busy)?;
        let kept = fs::read(folder.join(RECORD_FILE)).map_err(|_| damaged())?;
        let kept: PreviewRecord = serde_json::from_slice(&kept).map_err(|_| damaged())?;
        let preview = Self {
            folder,
            record: kept,
            _lock: lock,
        };
        let touched = preview.read_touched()?;
        let is_whole = preview_id(&preview.record, &touched).is_ok_and(|whole| whole == id);
        is_whole.then_some(preview).ok_or_else(damaged)
    }

    /// Stores the contents of a directory under an id derived from them.
    #[expect(
        clippy::disallowed_methods,
        reason = "the store of previews is in the state directory, never in a project"
    )]
    pub(super) fn store(
        draft: &Path,
        lock: File,
        mut kept: PreviewRecord,
        changes: &ChangeSet,
    ) -> Result<Self, PreviewError> {
        let keeping = |source| PreviewError::Storage {
            path: draft.to_owned(),
            source,
        };
        let id = preview_id(&kept, &changes.touched).map_err(|error| keeping(error.into()))?;
        kept.report.id = id.clone();
        let mut lines = Vec::new();
        for touched in &changes.touched {
            let line = serde_json::to_vec(touched).map_err(|error| keeping(error.into()))?;
            lines.extend(line);
            lines.push(b'\n');
        }
        let written = serde_json::to_vec(&kept).map_err(|error| keeping(error.into()))?;
        let folder = draft.with_file_name(&id);
        write_durably(&draft.join(TOUCHED_FILE), &lines)
            .and_then(|()| write_durably(&draft.join(RECORD_FILE), &written))
            .and_then(|()| fs::rename(draft, &folder))
            .map_err(keeping)?;
        Ok(Self {
            folder,
            record: kept,
            _lock: lock,
        })
    }

    /// Reads the recorded touched paths.
    #[expect(
        clippy::disallowed_methods,
        reason = "the store of previews is in the state directory, never in a project"
    )]
    pub(super) fn read_touched(&self) -> Result<Vec<TouchedPath>, PreviewError> {
        let damaged = || PreviewError::Damaged {
            id: self.report().id.clone(),
        };
        let lines = fs::read(self.folder.join(TOUCHED_FILE)).map_err(|_| damaged())?;
        let lines = lines.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_slice(line).map_err(|_| damaged()))
            .collect()
    }

    /// Opens the project's root if it is still the directory of the preview.
    pub(super) fn open_project(&self) -> Result<OwnedFd, PreviewApplyError> {
        let path = &self.report().project;
        let another = || PreviewApplyError::ProjectReplaced { path: path.clone() };
        let root = open_dir(path).map_err(|_| another())?;
        let data = fstat(&root).map_err(|_| another())?;
        if identity(&data) == self.record.root {
            Ok(root)
        } else {
            Err(another())
        }
    }

    /// Acquires the project lock.
    pub(super) fn lock_project(&self) -> Result<ProjectRepairLock, PreviewApplyError> {
        // The preview directory is in the state directory.
        let state = self.folder.ancestors().nth(2).unwrap_or(&self.folder);
        let lock = ProjectRepairLock::try_acquire(state, &self.report().project);
        lock.map_err(|source| self.storage_error(source))?
            .ok_or(PreviewApplyError::Busy)
    }

    pub(super) fn open_upper(&self) -> Result<OwnedFd, PreviewError> {
        open_dir(&self.folder.join(UPPER_DIR)).map_err(|source| self.damaged_error(source))
    }

    fn damaged_error(&self, source: io::Error) -> PreviewError {
        PreviewError::Storage {
            path: self.folder.clone(),
            source,
        }
    }

    pub(super) fn storage_error(&self, source: io::Error) -> PreviewApplyError {
        PreviewApplyError::Preview(self.damaged_error(source))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the store of previews is in the state directory, never in a project"
    )]
    pub(super) fn remove_journal(&self) -> io::Result<()> {
        fs::remove_file(ApplyJournal::path_in(&self.folder))
    }

    pub(super) fn dir(&self) -> &Path {
        &self.folder
    }

    pub(super) fn protected(&self) -> &[TreePath] {
        &self.record.protected
    }

    pub(super) fn bounds(&self) -> PreviewLimits {
        self.record.bounds
    }
}

/// Returns the id of a record and all paths it touches.
fn preview_id(kept: &PreviewRecord, touched: &[TouchedPath]) -> Result<String, serde_json::Error> {
    let mut kept = kept.clone();
    kept.report.id.clear();
    let head = serde_json::to_vec(&kept)?;
    let mut id = super::change_set::digest(&head, touched)?;
    id.truncate(ID_LENGTH);
    Ok(id)
}

/// Locks a preview directory; returns `None` if another process holds the lock.
pub(super) fn try_lock(folder: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(CWD, folder.join(LOCK_FILE), flags, Mode::RUSR | Mode::WUSR)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file.into())),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens a directory by its path; everything below it is opened without following links.
pub(super) fn open_dir(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

/// Removes a preview directory and its contents.
pub(super) fn remove_preview_dir(folder: &Path) -> Result<(), PreviewError> {
    let keeping = |source| PreviewError::Storage {
        path: folder.to_owned(),
        source,
    };
    let parent = folder.parent().unwrap_or(Path::new("."));
    let parent = open_dir(parent).map_err(keeping)?;
    let name = folder.file_name().unwrap_or_default().as_encoded_bytes();
    remove_tree(&parent, name).map_err(|error| keeping(error.into()))
}
