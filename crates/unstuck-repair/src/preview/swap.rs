//! Swaps staged copies in, or restores the old entries.

use std::os::fd::OwnedFd;

use rustix::io::{Errno, Result};

use super::apply_journal::{ApplyJournal, DirPermissionChange, MoveState, PlannedMove};
use super::change_set::{StatFingerprint, TouchedPath};
use super::error::PreviewApplyError;
use super::nofollow_access;
use super::remove_tree::remove_tree;
use super::tree_path::TreePath;

/// A swap operation on a project.
#[derive(Debug)]
pub(super) struct SwapOperation<'a> {
    pub(super) root: &'a OwnedFd,
    pub(super) journal: &'a ApplyJournal,
}

impl SwapOperation<'_> {
    /// Makes all remaining moves; if one fails, undoes all of them.
    ///
    /// Each removed entry is checked once more when nobody can reach it by its name: it must match the preview.
    pub(super) fn perform_all<'t>(
        &self,
        touched: impl Fn(&PlannedMove) -> &'t [TouchedPath],
    ) -> std::result::Result<(), PreviewApplyError> {
        for step in &self.journal.moves {
            let Err(error) = self.perform_one(step, touched(step)) else {
                continue;
            };
            let left = self.undo_all();
            return Err(if left.is_empty() {
                error
            } else {
                PreviewApplyError::PartiallyApplied { left }
            });
        }
        Ok(())
    }

    fn perform_one(
        &self,
        step: &PlannedMove,
        touched: &[TouchedPath],
    ) -> std::result::Result<(), PreviewApplyError> {
        let failed = |error: Errno| PreviewApplyError::Failed {
            path: step.path.display(),
            source: error.into(),
        };
        let changed = |path: &TreePath| PreviewApplyError::Changed {
            paths: vec![path.display()],
        };
        let folder = step.open_dir(self.root).map_err(failed)?;
        match step.state(&folder).map_err(failed)? {
            MoveState::Done => {}
            MoveState::Foreign | MoveState::Lost => return Err(changed(&step.path)),
            MoveState::Waiting => match step.perform(&folder) {
                Err(Errno::EXIST | Errno::NOENT) => return Err(changed(&step.path)),
                done => done.map_err(failed)?,
            },
        }
        match first_difference(&folder, step, touched) {
            Ok(None) => Ok(()),
            // An entry changed at this moment may be somebody else's, so it is restored first.
            Ok(Some(path)) => Err(step.undo(&folder).err().map_or(changed(path), failed)),
            Err(error) => Err(failed(step.undo(&folder).err().unwrap_or(error))),
        }
    }

    /// Restores the old entries and removes the copies; returns the paths for which that failed.
    pub(super) fn undo_all(&self) -> Vec<String> {
        let mut left = Vec::new();
        for step in self.journal.moves.iter().rev() {
            let undone = self.undo_one(step);
            if !matches!(undone, Ok(true)) {
                let (path, beside) = (step.path.display(), step.staging_path().display());
                left.push(format!("{path} (the original may be in {beside})"));
            }
        }
        self.set_dir_modes(|folder| folder.before);
        left
    }

    fn undo_one(&self, step: &PlannedMove) -> Result<bool> {
        let folder = step.open_dir(self.root)?;
        match step.state(&folder)? {
            MoveState::Done => step.undo(&folder)?,
            MoveState::Waiting | MoveState::Foreign => {}
            MoveState::Lost => return Ok(false),
        }
        remove_tree(&folder, step.staging_file_name())?;
        Ok(true)
    }

    /// Removes all staged entries; returns those that remain.
    pub(super) fn remove_staged(&self) -> Vec<String> {
        let clear = |step: &&PlannedMove| {
            let folder = step.open_dir(self.root);
            folder
                .and_then(|folder| remove_tree(&folder, step.staging_file_name()))
                .is_err()
        };
        let left = self.journal.moves.iter().filter(clear);
        left.map(|step| step.staging_path().display()).collect()
    }

    /// Sets the permissions of directories that stay.
    pub(super) fn set_dir_modes(&self, mode: fn(&DirPermissionChange) -> u32) {
        for folder in self.journal.folders.iter().rev() {
            // A missing directory needs none.
            let _ = set_dir_mode(self.root, folder, mode(folder));
        }
    }
}

/// Sets the permissions of one directory that stays.
pub(super) fn set_dir_mode(root: &OwnedFd, folder: &DirPermissionChange, mode: u32) -> Result<()> {
    match folder.path.split() {
        Some((parent, name)) => {
            nofollow_access::set_mode(nofollow_access::open_dir_at(root, &parent)?, name, mode)
        }
        None => nofollow_access::set_mode(root, b".", mode),
    }
}

/// Returns the first path in a removed entry that differs from the preview.
fn first_difference<'t>(
    folder: &OwnedFd,
    step: &PlannedMove,
    touched: &'t [TouchedPath],
) -> Result<Option<&'t TreePath>> {
    let mut open: Option<(TreePath, OwnedFd)> = None;
    for one in touched {
        let Some(before) = &one.before else { continue };
        let inner = one.path.strip_ancestor(&step.path);
        let data = match inner.split() {
            None => nofollow_access::stat_entry(folder, step.staging_file_name())?,
            Some((parent, name)) => {
                if open.as_ref().is_none_or(|(path, _)| *path != parent) {
                    let top = nofollow_access::open_dir(folder, step.staging_file_name())?;
                    open = Some((parent.clone(), nofollow_access::open_dir_at(top, &parent)?));
                }
                match &open {
                    Some((_, parent)) => nofollow_access::stat_entry(parent, name)?,
                    None => None,
                }
            }
        };
        let is_same = data.is_some_and(|data| {
            let now = StatFingerprint::from_stat(&data);
            // A rename changes the times of the entry itself, but not of its contents.
            now == *before || inner.split().is_none() && now.is_same_after_rename(before)
        });
        if !is_same {
            return Ok(Some(&one.path));
        }
    }
    Ok(None)
}
