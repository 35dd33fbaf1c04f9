//! Crash recovery: a half-applied preview is finished if possible, otherwise rolled back.

use std::path::PathBuf;

use super::apply_journal::{ApplyJournal, ApplyPhase, PlannedMove};
use super::error::{PreviewApplyError, PreviewError};
use super::preview_store::PreviewStore;
use super::stored_preview::{Preview, remove_preview_dir};
use super::swap::SwapOperation;

/// A half-applied preview that was recovered after a crash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrashRecoveredPreview {
    /// Id of the preview.
    pub id: String,
    /// Path of the project.
    pub project: PathBuf,
    /// Outcome of the recovery.
    pub outcome: PreviewCrashRecoveryOutcome,
}

/// The outcome of recovering a half-applied preview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreviewCrashRecoveryOutcome {
    /// The preview is fully applied.
    Finished,
    /// The project is unchanged, and the preview is kept.
    RolledBack,
    /// Another process changed these paths meanwhile, so neither was possible; sanitized for display.
    Conflicted(Vec<String>),
}

impl PreviewStore {
    /// Finishes or rolls back previews that a crash left half-applied. Usually there are none.
    pub fn recover(&self) -> Vec<CrashRecoveredPreview> {
        let half = |id: &String| ApplyJournal::path_in(&self.preview_dir(id)).exists();
        let ids = self.ids().into_iter().filter(half);
        ids.filter_map(|id| self.recover_one(&id).ok()).collect()
    }

    fn recover_one(&self, id: &str) -> Result<CrashRecoveredPreview, PreviewApplyError> {
        // A running process holds the lock of its preview.
        let preview = Preview::open(self.preview_dir(id), id)?;
        let project = preview.report().project.clone();
        let _claim = preview.lock_project()?;
        let keeping = |source| preview.storage_error(source);
        let journal = ApplyJournal::read(preview.dir()).map_err(keeping)?;
        let journal = journal.ok_or_else(|| PreviewError::NotFound { id: id.to_owned() })?;
        let root = match preview.open_project() {
            Ok(root) => root,
            Err(gone) => {
                // Nothing is left to recover.
                preview.remove_journal().map_err(keeping)?;
                return Err(gone);
            }
        };
        let moving = SwapOperation {
            root: &root,
            journal: &journal,
        };
        let end = match journal.phase {
            ApplyPhase::Staging => {
                moving.remove_staged();
                moving.set_dir_modes(|folder| folder.before);
                PreviewCrashRecoveryOutcome::RolledBack
            }
            ApplyPhase::Moving => finish_moves(&moving, &preview)?,
            ApplyPhase::Clearing => remove_leftovers(&moving),
        };
        match end {
            PreviewCrashRecoveryOutcome::Finished => remove_preview_dir(preview.dir())?,
            PreviewCrashRecoveryOutcome::RolledBack
            | PreviewCrashRecoveryOutcome::Conflicted(_) => {
                preview.remove_journal().map_err(keeping)?;
            }
        }
        Ok(CrashRecoveredPreview {
            id: id.to_owned(),
            project,
            outcome: end,
        })
    }
}

/// Removes staged and old entries.
fn remove_leftovers(moving: &SwapOperation<'_>) -> PreviewCrashRecoveryOutcome {
    moving.remove_staged();
    moving.set_dir_modes(|folder| folder.after);
    PreviewCrashRecoveryOutcome::Finished
}

/// Makes the remaining moves.
fn finish_moves(
    moving: &SwapOperation<'_>,
    preview: &Preview,
) -> Result<PreviewCrashRecoveryOutcome, PreviewApplyError> {
    let touched = preview.read_touched()?;
    let of = |step: &PlannedMove| {
        let is_of = |one: &super::change_set::TouchedPath| one.path.is_within(&step.path);
        let from = touched.iter().position(is_of).unwrap_or_default();
        let rest = &touched[from..];
        &rest[..rest.iter().take_while(|one| is_of(one)).count()]
    };
    Ok(match moving.perform_all(of) {
        Ok(()) => remove_leftovers(moving),
        Err(PreviewApplyError::PartiallyApplied { left }) => {
            PreviewCrashRecoveryOutcome::Conflicted(left)
        }
        Err(_) => PreviewCrashRecoveryOutcome::RolledBack,
    })
}

#[cfg(test)]
mod tests;
