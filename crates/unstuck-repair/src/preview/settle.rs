//! After a crash: what was half applied is finished if it still can be, otherwise undone.

use std::fs;
use std::path::PathBuf;

use super::error::{ApplyError, PreviewError};
use super::journal::{Journal, Move, Phase};
use super::moving::Moving;
use super::preview::{Preview, remove_folder};
use super::previews::Previews;

/// What was done about a preview that was half applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The id of the preview.
    pub id: String,
    /// The project.
    pub project: PathBuf,
    /// What was done.
    pub end: End,
}

/// How a preview that was half applied ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// All of it is in place.
    Finished,
    /// The project is as it was before, and the preview is kept.
    Undone,
    /// Somebody else changed the project meanwhile, so both were impossible for these paths, fit to be shown.
    Left(Vec<String>),
}

impl Previews {
    /// Finishes or undoes what a crash left half applied. Nothing to do is the usual case.
    pub fn settle(&self) -> Vec<Settled> {
        let half = |id: &String| Journal::at(&self.folder_of(id)).exists();
        let ids = self.ids().into_iter().filter(half);
        ids.filter_map(|id| self.settle_one(&id).ok()).collect()
    }

    fn settle_one(&self, id: &str) -> Result<Settled, ApplyError> {
        // Whoever works on it holds its lock.
        let preview = Preview::open(self.folder_of(id), id)?;
        let project = preview.report().project.clone();
        let _claim = preview.claim()?;
        let keeping = |source| preview.keeping(source);
        let journal = Journal::read(preview.folder()).map_err(keeping)?;
        let journal = journal.ok_or_else(|| PreviewError::None { id: id.to_owned() })?;
        let root = match preview.project() {
            Ok(root) => root,
            Err(gone) => {
                // There is nothing left to be settled.
                preview.forget_journal().map_err(keeping)?;
                return Err(gone);
            }
        };
        let moving = Moving {
            root: &root,
            journal: &journal,
        };
        let end = match journal.phase {
            Phase::Staging => {
                moving.clear();
                moving.permit(|folder| folder.before);
                End::Undone
            }
            Phase::Moving => finish(&moving, &preview)?,
            Phase::Clearing => clear(&moving),
        };
        match end {
            End::Finished => remove_folder(preview.folder())?,
            End::Undone | End::Left(_) => {
                fs::remove_file(Journal::at(preview.folder())).map_err(keeping)?;
            }
        }
        Ok(Settled {
            id: id.to_owned(),
            project,
            end,
        })
    }
}

/// Removes what nobody needs any more.
fn clear(moving: &Moving<'_>) -> End {
    moving.clear();
    moving.permit(|folder| folder.after);
    End::Finished
}

/// Does what was not done yet.
fn finish(moving: &Moving<'_>, preview: &Preview) -> Result<End, ApplyError> {
    let touched = preview.touched()?;
    let of = |step: &Move| {
        let is_of = |one: &super::change::Touched| one.path.is_within(&step.path);
        let from = touched.iter().position(is_of).unwrap_or_default();
        let rest = &touched[from..];
        &rest[..rest.iter().take_while(|one| is_of(one)).count()]
    };
    Ok(match moving.all(of) {
        Ok(()) => clear(moving),
        Err(ApplyError::Half { left }) => End::Left(left),
        Err(_) => End::Undone,
    })
}

#[cfg(test)]
mod tests;
