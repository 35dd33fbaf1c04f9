//! The directory of previews: outside of every project, private to the owner, and with an expiry.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Gid, Mode, Uid, fchmod, fchown, fstat};
use unstuck_core::Timestamp;

use super::apply_journal::ApplyJournal;
use super::change_set::{StatFingerprint, identity};
use super::compare::{CompareInput, compare};
use super::disk_usage;
use super::error::PreviewError;
use super::limits::PreviewLimits;
use super::mounts_in_project;
use super::report::{PreviewCommandExecution, PreviewReport};
use super::report_builder::{ReportInput, build_report};
use super::stored_preview::{
    Preview, PreviewRecord, RECORD_FILE, UPPER_DIR, WORK_DIR, open_dir, remove_preview_dir,
    try_lock,
};
use super::tree_path::TreePath;

/// Maximum age of a preview.
pub const MAX_AGE: Duration = Duration::from_secs(24 * 3600);
/// Maximum number of previews.
pub const MAX_PREVIEWS: usize = 8;
/// Name prefix of pending previews.
const DRAFT_PREFIX: &str = "draft-";

type Result<T> = std::result::Result<T, PreviewError>;

/// The store of previews.
#[derive(Debug, Clone)]
pub struct PreviewStore {
    folder: PathBuf,
}

/// An empty overlay for the command to preview. Removed on drop unless finished.
#[derive(Debug)]
pub struct UnfinishedPreview {
    folder: PathBuf,
    project: PathBuf,
    root: OwnedFd,
    bounds: PreviewLimits,
    /// Start time; later changes of the project are detected.
    start_time: i128,
    lock: Option<File>,
}

impl PreviewStore {
    /// Returns the preview store of a state directory.
    pub fn in_state_dir(state: &Path) -> Self {
        Self {
            folder: state.join("previews"),
        }
    }

    /// Creates an empty overlay for a project. Removes stale previews first.
    #[expect(
        clippy::disallowed_methods,
        reason = "the list of mounts is a file of the kernel"
    )]
    pub fn prepare(
        &self,
        project: &Path,
        bounds: PreviewLimits,
        now: Timestamp,
    ) -> Result<UnfinishedPreview> {
        let no_project = |source| PreviewError::NoProject {
            path: project.to_owned(),
            source,
        };
        let project = project.canonicalize().map_err(no_project)?;
        let root = open_dir(&project).map_err(no_project)?;
        self.create_dir()
            .map_err(|source| storage_error(&self.folder, source))?;
        let state = self.folder.canonicalize();
        let state = state.map_err(|source| storage_error(&self.folder, source))?;
        if state.starts_with(&project) {
            return Err(PreviewError::StateInsideProject { state });
        }
        let mounted = fs::read("/proc/self/mountinfo").unwrap_or_default();
        if let Some(path) = mounts_in_project::mount_below(&project, &mounted) {
            return Err(PreviewError::Mounted { path });
        }
        self.remove_stale(now);
        let draft = UnfinishedPreview::create(&state, project, root, bounds);
        draft.map_err(|source| storage_error(&state, source))
    }

    /// Returns all previews, the newest first.
    pub fn list(&self) -> Vec<PreviewReport> {
        let mut reports: Vec<_> = self.ids().iter().filter_map(|id| self.report(id)).collect();
        reports.sort_by_key(|report| std::cmp::Reverse(report.made_at));
        reports
    }

    /// Opens the preview whose id begins with these letters, to apply or discard it.
    pub fn find(&self, letters: &str) -> Result<Preview> {
        let id = letters.to_owned();
        let fits = |id: &String| !letters.is_empty() && id.starts_with(letters);
        let mut several: Vec<_> = self.ids().into_iter().filter(fits).collect();
        match several.as_slice() {
            [] => Err(PreviewError::NotFound { id }),
            [id] => Preview::open(self.folder.join(id), id),
            _ => {
                several.sort();
                Err(PreviewError::Ambiguous { id, several })
            }
        }
    }

    /// Returns the report of a preview, even while it is locked.
    #[expect(
        clippy::disallowed_methods,
        reason = "the store of previews is in the state directory, never in a project"
    )]
    fn report(&self, id: &str) -> Option<PreviewReport> {
        let kept = fs::read(self.folder.join(id).join(RECORD_FILE)).ok()?;
        let kept: PreviewRecord = serde_json::from_slice(&kept).ok()?;
        (kept.report.id == id).then_some(kept.report)
    }

    pub(super) fn ids(&self) -> Vec<String> {
        let mut names = self.names();
        names.retain(|name| !name.starts_with(DRAFT_PREFIX));
        names
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the store of previews is in the state directory, never in a project"
    )]
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.collect()
    }

    pub(super) fn preview_dir(&self, id: &str) -> PathBuf {
        self.folder.join(id)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the store of previews is in the state directory, never in a project"
    )]
    fn create_dir(&self) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&self.folder)?;
        let mode = Mode::from_raw_mode(0o700);
        Ok(fchmod(open_dir(&self.folder)?, mode)?)
    }

    /// Removes previews that are expired, too many, or left by a crash; never a locked or half-applied one.
    fn remove_stale(&self, now: Timestamp) {
        let kept = self.list().into_iter().take(MAX_PREVIEWS - 1);
        let kept = kept.filter(|report| now.since(report.made_at) < MAX_AGE);
        let kept: Vec<_> = kept.map(|report| report.id).collect();
        for name in self.names() {
            let folder = self.folder.join(&name);
            if kept.contains(&name) || ApplyJournal::path_in(&folder).exists() {
                continue;
            }
            if let Ok(Some(_lock)) = try_lock(&folder) {
                // A preview that cannot be removed is tried again next time.
                let _ = remove_preview_dir(&folder);
            }
        }
    }
}

impl UnfinishedPreview {
    #[expect(
        clippy::disallowed_methods,
        reason = "an overlay is in the state directory, and no command writes to it yet"
    )]
    fn create(
        state: &Path,
        project: PathBuf,
        root: OwnedFd,
        bounds: PreviewLimits,
    ) -> io::Result<Self> {
        let folder = create_draft_dir(state)?;
        let lock = try_lock(&folder)?;
        let owner = fstat(&root)?;
        let mut draft = Self {
            folder,
            project,
            root,
            bounds,
            start_time: 0,
            lock,
        };
        for name in [UPPER_DIR, WORK_DIR] {
            let path = draft.folder.join(name);
            DirBuilder::new().mode(0o700).create(&path)?;
            let made = open_dir(&path)?;
            let (user, group) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
            // Only root can, and only root has to.
            let _ = fchown(&made, Some(user), Some(group));
        }
        let upper = open_dir(&draft.upper())?;
        // The root of the project is seen with the permissions of this directory.
        fchmod(&upper, Mode::from_raw_mode(owner.st_mode))?;
        draft.start_time = StatFingerprint::from_stat(&fstat(&upper)?).changed;
        Ok(draft)
    }

    /// Returns the path of the project.
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// Returns the upper directory of the overlay.
    pub fn upper(&self) -> PathBuf {
        self.folder.join(UPPER_DIR)
    }

    /// Returns the work directory of the overlay.
    pub fn work(&self) -> PathBuf {
        self.folder.join(WORK_DIR)
    }

    /// True if the command has already exceeded the limits of a preview.
    pub fn is_full(&self) -> bool {
        disk_usage::exceeds_limits(&self.upper(), self.bounds)
    }

    /// Compares the command's result with the project, and stores the preview.
    ///
    /// The overlay must be unmounted. `protected_paths` are the sandbox's own placeholders in the project; they are not
    /// changes.
    pub fn finish(
        mut self,
        ran: PreviewCommandExecution,
        guarded: &[PathBuf],
        now: Timestamp,
    ) -> Result<Preview> {
        let guarded: Vec<_> = guarded
            .iter()
            .map(|path| TreePath::from_path(path))
            .collect();
        let unusable = |source| storage_error(&self.folder, source);
        let upper = open_dir(&self.upper()).map_err(unusable)?;
        let compared = CompareInput {
            lower: &self.root,
            upper: &upper,
            protected: &guarded,
            bounds: self.bounds,
        };
        let changes = compare(&compared)?;
        let told = ReportInput {
            project: &self.project,
            made_at: now,
            start_time: self.start_time,
            ran,
        };
        let root = fstat(&self.root).map_err(|error| unusable(error.into()))?;
        let kept = PreviewRecord {
            report: build_report(&compared, &changes, told)?,
            root: identity(&root),
            protected: guarded.clone(),
            bounds: self.bounds,
        };
        // The kernel's work directory is not part of it.
        let _ = remove_preview_dir(&self.work());
        let missing = || storage_error(&self.folder, io::ErrorKind::NotFound.into());
        let lock = self.lock.take().ok_or_else(missing)?;
        Preview::store(&self.folder, lock, kept, &changes)
    }
}

impl Drop for UnfinishedPreview {
    fn drop(&mut self) {
        // A finished preview has another name by now. Leftovers are removed when the next one is made.
        if self.folder.exists() {
            let _ = remove_preview_dir(&self.folder);
        }
    }
}

/// Creates a new directory for a pending preview.
#[expect(
    clippy::disallowed_methods,
    reason = "the store of previews is in the state directory, never in a project"
)]
fn create_draft_dir(state: &Path) -> io::Result<PathBuf> {
    for number in 1_u64.. {
        let folder = state.join(format!("{DRAFT_PREFIX}{number}"));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            done => return done.map(|()| folder),
        }
    }
    Err(io::ErrorKind::StorageFull.into())
}

fn storage_error(path: &Path, source: io::Error) -> PreviewError {
    PreviewError::Storage {
        path: path.to_owned(),
        source,
    }
}
