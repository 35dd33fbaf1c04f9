//! Applies a preview: changes are staged next to their targets, then swapped in; nothing is overwritten in place.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::process::geteuid;

use super::apply_journal::{
    ApplyJournal, ApplyPhase, DirPermissionChange, PlannedMove, fingerprint_at,
};
use super::change_set::{ChangeSet, SwapMode, TouchedPath, permissions};
use super::compare::{CompareInput, compare};
use super::error::PreviewApplyError;
use super::nofollow_access;
use super::overlay_reader::OverlayDir;
use super::report::FileChangeCounts;
use super::staging::{StagingCopier, file_times};
use super::stored_preview::Preview;
use super::swap::{SwapOperation, set_dir_mode};
use super::tree_path::TreePath;

type Result<T> = std::result::Result<T, PreviewApplyError>;

/// Maximum number of paths named in an error.
const MAX_NAMED_PATHS: usize = 5;
/// Owner permissions needed to create entries in a directory.
const DIR_WRITE_MODE: u32 = 0o300;

/// The result of applying a preview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewApplyReport {
    /// Counts of added, changed and deleted files.
    pub counts: FileChangeCounts,
    /// Leftover files that could not be removed, sanitized for display.
    pub leftovers: Vec<String>,
}

impl Preview {
    /// Computes the current changes.
    pub(super) fn current_changes(&self, root: &OwnedFd, upper: &OwnedFd) -> Result<ChangeSet> {
        Ok(compare(&CompareInput {
            lower: root,
            upper,
            protected: self.protected(),
            bounds: self.bounds(),
        })?)
    }

    /// Applies the previewed changes, all or nothing, and removes the preview.
    ///
    /// Fails if the affected parts of the project or the preview differ from what was shown.
    pub fn apply(self) -> Result<PreviewApplyReport> {
        if !self.report().changed_during_run.is_empty() {
            let paths = self.report().changed_during_run.clone();
            return Err(PreviewApplyError::ChangedDuringRun { paths });
        }
        let (root, upper) = (self.open_project()?, self.open_upper()?);
        let _claim = self.lock_project()?;
        let changes = self.current_changes(&root, &upper)?;
        let shown = self.read_touched()?;
        if changes.touched != shown {
            let paths = differing_paths(&changes.touched, &shown);
            return Err(PreviewApplyError::Changed { paths });
        }
        let work = ApplyOperation {
            preview: &self,
            root: &root,
            upper: &upper,
            changes: &changes,
        };
        let left = work.apply()?;
        let counts = self.report().counts;
        self.discard()?;
        Ok(PreviewApplyReport {
            counts,
            leftovers: left,
        })
    }
}

/// Returns the first paths in which two lists differ.
fn differing_paths(now: &[TouchedPath], shown: &[TouchedPath]) -> Vec<String> {
    let of = |list: &[TouchedPath], other: &[TouchedPath]| -> BTreeSet<TreePath> {
        let other: BTreeSet<_> = other.iter().map(touched_key).collect();
        let new = list
            .iter()
            .filter(|touched| !other.contains(&touched_key(touched)));
        new.map(|touched| touched.path.clone()).collect()
    };
    let mut paths = of(now, shown);
    paths.extend(of(shown, now));
    paths
        .iter()
        .take(MAX_NAMED_PATHS)
        .map(TreePath::display)
        .collect()
}

fn touched_key(touched: &TouchedPath) -> (TreePath, String) {
    (touched.path.clone(), format!("{touched:?}"))
}

/// A running apply operation.
pub(super) struct ApplyOperation<'a> {
    pub(super) preview: &'a Preview,
    pub(super) root: &'a OwnedFd,
    pub(super) upper: &'a OwnedFd,
    pub(super) changes: &'a ChangeSet,
}

impl ApplyOperation<'_> {
    fn apply(&self) -> Result<Vec<String>> {
        let folder = self.preview.dir();
        let keeping = |source| self.preview.storage_error(source);
        let mut journal = self.plan_journal()?;
        journal.write(folder).map_err(keeping)?;
        if let Err(error) = self.stage_copies(&mut journal) {
            let moving = self.swap(&journal);
            moving.remove_staged();
            moving.set_dir_modes(|folder| folder.before);
            self.preview.remove_journal().map_err(keeping)?;
            return Err(error);
        }
        sync_filesystem(self.root);
        journal.phase = ApplyPhase::Moving;
        journal.write(folder).map_err(keeping)?;
        let moved = self
            .swap(&journal)
            .perform_all(|step| self.touched_by_move(step));
        if let Err(error) = moved {
            if !matches!(error, PreviewApplyError::PartiallyApplied { .. }) {
                self.preview.remove_journal().map_err(keeping)?;
            }
            return Err(error);
        }
        sync_filesystem(self.root);
        journal.phase = ApplyPhase::Clearing;
        journal.write(folder).map_err(keeping)?;
        let left = self.swap(&journal).remove_staged();
        // Directories have to stay writable while entries are removed from them, and their times change.
        self.restore_dir_metadata(&journal);
        Ok(left)
    }

    fn swap<'a>(&'a self, journal: &'a ApplyJournal) -> SwapOperation<'a> {
        SwapOperation {
            root: self.root,
            journal,
        }
    }

    /// Plans all moves before any is made.
    pub(super) fn plan_journal(&self) -> Result<ApplyJournal> {
        let id = &self.preview.report().id;
        let units = self.changes.units.iter().enumerate();
        let moves = units.map(|(number, unit)| PlannedMove::new(id, number, &unit.path, unit.how));
        let mut folders: Vec<DirPermissionChange> = Vec::new();
        for (path, permitted) in &self.changes.mode_changes {
            folders.push(DirPermissionChange {
                path: path.clone(),
                before: permitted.before,
                after: permitted.after,
            });
        }
        for path in self.parent_dirs() {
            let folder = nofollow_access::open_dir_at(self.root, &path)
                .map_err(|e| apply_failed(&path, e))?;
            let mode = permissions(&fstat(&folder).map_err(|e| apply_failed(&path, e))?);
            let known = folders.iter().any(|folder| folder.path == path);
            if mode & DIR_WRITE_MODE != DIR_WRITE_MODE && !known {
                let (before, after) = (mode, mode);
                folders.push(DirPermissionChange {
                    path,
                    before,
                    after,
                });
            }
        }
        folders.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(ApplyJournal {
            phase: ApplyPhase::Staging,
            moves: moves.collect(),
            folders,
        })
    }

    /// Returns the directories in which something is replaced.
    fn parent_dirs(&self) -> BTreeSet<TreePath> {
        let units = self.changes.units.iter();
        units
            .filter_map(|unit| unit.path.split().map(|(folder, _)| folder))
            .collect()
    }

    /// Stages copies of all changes next to their targets.
    pub(super) fn stage_copies(&self, journal: &mut ApplyJournal) -> Result<()> {
        for folder in &journal.folders {
            // Root needs no permission, and wrong ones must not be visible meanwhile.
            if !geteuid().is_root() {
                let mode = folder.before | DIR_WRITE_MODE;
                set_dir_mode(self.root, folder, mode).map_err(|e| apply_failed(&folder.path, e))?;
            }
        }
        let mut stage = StagingCopier::new(self.root);
        for step in &mut journal.moves {
            let path = step.path.clone();
            self.stage_one(step, &mut stage)
                .map_err(|source| PreviewApplyError::Failed {
                    path: path.display(),
                    source,
                })?;
        }
        Ok(())
    }

    fn stage_one(
        &self,
        step: &mut PlannedMove,
        stage: &mut StagingCopier<'_>,
    ) -> std::io::Result<()> {
        let folder = step.open_dir(self.root)?;
        step.old = fingerprint_at(&folder, step.name())?;
        if step.how == SwapMode::Remove {
            return Ok(());
        }
        let (parent, name) = step.path.split().ok_or(Errno::INVAL)?;
        let upper = nofollow_access::open_dir(self.upper, b".")?;
        let layers = OverlayDir::merged(upper, nofollow_access::open_dir(self.root, b".")?);
        let layers = layers.descend(&parent, self.root)?;
        let item = layers.entry(name)?.ok_or(Errno::NOENT)?;
        stage.copy(&item, &step.staging_path())?;
        step.new = fingerprint_at(&folder, step.staging_file_name())?;
        Ok(())
    }

    fn touched_by_move(&self, step: &PlannedMove) -> &[TouchedPath] {
        let mut units = self.changes.units.iter();
        let unit = units.find(|unit| unit.path == step.path);
        unit.map_or(&[], |unit| self.changes.touched_by(unit))
    }

    /// Gives remaining directories the permissions and times that the command left.
    fn restore_dir_metadata(&self, journal: &ApplyJournal) {
        for path in self.parent_dirs() {
            let folders = nofollow_access::open_dir_at(self.root, &path)
                .and_then(|lower| Ok((lower, nofollow_access::open_dir_at(self.upper, &path)?)));
            if let Ok((lower, upper)) = folders
                && let Ok(data) = fstat(&upper)
            {
                // Directory times only matter to tools that compare them, so errors are ignored.
                let _ = rustix::fs::futimens(&lower, &file_times(&data));
            }
        }
        self.swap(journal).set_dir_modes(|folder| folder.after);
    }
}

fn apply_failed(path: &TreePath, error: Errno) -> PreviewApplyError {
    PreviewApplyError::Failed {
        path: path.display(),
        source: error.into(),
    }
}

/// Flushes all writes to disk.
fn sync_filesystem(root: &OwnedFd) {
    #[cfg(target_os = "linux")]
    let _ = rustix::fs::syncfs(root);
    #[cfg(not(target_os = "linux"))]
    let _ = rustix::fs::fsync(root);
}
