//! A preview that is kept until somebody applies or drops it.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, fstat, openat};
use serde::{Deserialize, Serialize};

use crate::lock::ProjectLock;

use super::bounds::Bounds;
use super::change::{Changes, Touched, identity};
use super::error::{ApplyError, PreviewError};
use super::journal::{Journal, write};
use super::path::TreePath;
use super::remove::remove;
use super::report::Report;

/// The names of what a preview consists of.
pub(super) const UPPER: &str = "upper";
pub(super) const WORK: &str = "work";
const LOCK: &str = "lock";
pub(super) const KEPT: &str = "preview.json";
const TOUCHED: &str = "touched.jsonl";
/// How many letters of the hash are its id.
const ID: usize = 12;

/// A preview that is kept until somebody applies or drops it.
#[derive(Debug)]
pub struct Preview {
    folder: PathBuf,
    kept: Kept,
    /// Held as long as somebody works on it.
    _lock: File,
}

/// What is written down of a preview.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) report: Report,
    /// The device and number of the root of the project.
    pub(super) root: (i128, u64),
    /// What no repair may make or change.
    #[serde(rename = "guarded")]
    pub(super) guarded: Vec<TreePath>,
    pub(super) bounds: Bounds,
}

impl Preview {
    /// What a person is shown of it.
    pub fn report(&self) -> &Report {
        &self.kept.report
    }

    /// Removes it. The project stays as it is.
    pub fn discard(self) -> Result<(), PreviewError> {
        remove_folder(&self.folder)
    }

    pub(super) fn open(folder: PathBuf, id: &str) -> Result<Self, PreviewError> {
        let damaged = || PreviewError::Damaged { id: id.to_owned() };
        let busy = || PreviewError::Busy { id: id.to_owned() };
        let lock = lock(&folder).map_err(|source| PreviewError::Keeping {
            path: folder.clone(),
            source,
        })?;
        let lock = lock.ok_or_else(busy)?;
        let kept = fs::read(folder.join(KEPT)).map_err(|_| damaged())?;
        let kept: Kept = serde_json::from_slice(&kept).map_err(|_| damaged())?;
        let preview = Self {
            folder,
            kept,
            _lock: lock,
        };
        let touched = preview.touched()?;
        let is_whole = id_of(&preview.kept, &touched).is_ok_and(|whole| whole == id);
        is_whole.then_some(preview).ok_or_else(damaged)
    }

    /// Keeps what is in a folder, under the id that stands for exactly this.
    pub(super) fn keep(
        draft: &Path,
        lock: File,
        mut kept: Kept,
        changes: &Changes,
    ) -> Result<Self, PreviewError> {
        let keeping = |source| PreviewError::Keeping {
            path: draft.to_owned(),
            source,
        };
        let id = id_of(&kept, &changes.touched).map_err(|error| keeping(error.into()))?;
        kept.report.id = id.clone();
        let mut lines = Vec::new();
        for touched in &changes.touched {
            let line = serde_json::to_vec(touched).map_err(|error| keeping(error.into()))?;
            lines.extend(line);
            lines.push(b'\n');
        }
        let written = serde_json::to_vec(&kept).map_err(|error| keeping(error.into()))?;
        let folder = draft.with_file_name(&id);
        write(&draft.join(TOUCHED), &lines)
            .and_then(|()| write(&draft.join(KEPT), &written))
            .and_then(|()| fs::rename(draft, &folder))
            .map_err(keeping)?;
        Ok(Self {
            folder,
            kept,
            _lock: lock,
        })
    }

    /// What it touches, as it was written down.
    pub(super) fn touched(&self) -> Result<Vec<Touched>, PreviewError> {
        let damaged = || PreviewError::Damaged {
            id: self.report().id.clone(),
        };
        let lines = fs::read(self.folder.join(TOUCHED)).map_err(|_| damaged())?;
        let lines = lines.split(|byte| *byte == b'\n');
        let lines = lines.filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_slice(line).map_err(|_| damaged()))
            .collect()
    }

    /// The root of the project, if it is still the folder that the preview was made of.
    pub(super) fn project(&self) -> Result<OwnedFd, ApplyError> {
        let path = &self.report().project;
        let another = || ApplyError::AnotherProject { path: path.clone() };
        let root = open_folder(path).map_err(|_| another())?;
        let data = fstat(&root).map_err(|_| another())?;
        match identity(&data) == self.kept.root {
            true => Ok(root),
            false => Err(another()),
        }
    }

    /// The right to change the project.
    pub(super) fn claim(&self) -> Result<ProjectLock, ApplyError> {
        // The folder of previews lies in the state folder.
        let state = self.folder.ancestors().nth(2).unwrap_or(&self.folder);
        let lock = ProjectLock::take(state, &self.report().project);
        lock.map_err(|source| self.keeping(source))?
            .ok_or(ApplyError::Busy)
    }

    pub(super) fn upper(&self) -> Result<OwnedFd, PreviewError> {
        open_folder(&self.folder.join(UPPER)).map_err(|source| self.lost(source))
    }

    fn lost(&self, source: io::Error) -> PreviewError {
        PreviewError::Keeping {
            path: self.folder.clone(),
            source,
        }
    }

    pub(super) fn keeping(&self, source: io::Error) -> ApplyError {
        ApplyError::Preview(self.lost(source))
    }

    pub(super) fn forget_journal(&self) -> io::Result<()> {
        fs::remove_file(Journal::at(&self.folder))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn guarded(&self) -> &[TreePath] {
        &self.kept.guarded
    }

    pub(super) fn bounds(&self) -> Bounds {
        self.kept.bounds
    }
}

/// The id that stands for all that is kept, and all that it touches.
fn id_of(kept: &Kept, touched: &[Touched]) -> Result<String, serde_json::Error> {
    let mut kept = kept.clone();
    kept.report.id.clear();
    let head = serde_json::to_vec(&kept)?;
    let mut id = super::change::digest(&head, touched)?;
    id.truncate(ID);
    Ok(id)
}

/// Claims a folder of a preview; none if somebody else works on it.
pub(super) fn lock(folder: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(CWD, folder.join(LOCK), flags, Mode::RUSR | Mode::WUSR)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file.into())),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens a folder by its path; only what is below it is never reached through links.
pub(super) fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

/// Removes a folder of a preview and all that is in it.
pub(super) fn remove_folder(folder: &Path) -> Result<(), PreviewError> {
    let keeping = |source| PreviewError::Keeping {
        path: folder.to_owned(),
        source,
    };
    let parent = folder.parent().unwrap_or(Path::new("."));
    let parent = open_folder(parent).map_err(keeping)?;
    let name = folder.file_name().unwrap_or_default().as_encoded_bytes();
    remove(&parent, name).map_err(|error| keeping(error.into()))
}
