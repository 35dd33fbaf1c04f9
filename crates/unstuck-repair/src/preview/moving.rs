//! Puts staged copies in place, or brings back what was there.

use std::os::fd::OwnedFd;

use rustix::io::{Errno, Result};

use super::change::{Print, Touched};
use super::error::ApplyError;
use super::handle;
use super::journal::{Folder, Journal, Move, Standing};
use super::path::TreePath;
use super::remove::remove;

/// A project in which something is put in place.
#[derive(Debug)]
pub(super) struct Moving<'a> {
    pub(super) root: &'a OwnedFd,
    pub(super) journal: &'a Journal,
}

impl Moving<'_> {
    /// Does all moves that were not done yet; if one cannot be done, undoes all.
    ///
    /// What was taken away is looked at once more when nobody else can reach it by its name: it must be what was shown.
    pub(super) fn all<'t>(
        &self,
        touched: impl Fn(&Move) -> &'t [Touched],
    ) -> std::result::Result<(), ApplyError> {
        for step in &self.journal.moves {
            let Err(error) = self.one(step, touched(step)) else {
                continue;
            };
            let left = self.undo();
            return Err(match left.is_empty() {
                true => error,
                false => ApplyError::Half { left },
            });
        }
        Ok(())
    }

    fn one(&self, step: &Move, touched: &[Touched]) -> std::result::Result<(), ApplyError> {
        let failed = |error: Errno| ApplyError::Failed {
            path: step.path.shown(),
            source: error.into(),
        };
        let changed = |path: &TreePath| ApplyError::Changed {
            paths: vec![path.shown()],
        };
        let folder = step.folder(self.root).map_err(failed)?;
        match step.standing(&folder).map_err(failed)? {
            Standing::Done => {}
            Standing::Apart | Standing::Lost => return Err(changed(&step.path)),
            Standing::Waiting => match step.perform(&folder) {
                Err(Errno::EXIST | Errno::NOENT) => return Err(changed(&step.path)),
                done => done.map_err(failed)?,
            },
        }
        match different(&folder, step, touched) {
            Ok(None) => Ok(()),
            // What was taken away in this moment may be somebody else's, so it goes back before anything else.
            Ok(Some(path)) => Err(step.undo(&folder).err().map_or(changed(path), failed)),
            Err(error) => Err(failed(step.undo(&folder).err().unwrap_or(error))),
        }
    }

    /// Brings back what was there and removes the copies; tells what could not be.
    pub(super) fn undo(&self) -> Vec<String> {
        let mut left = Vec::new();
        for step in self.journal.moves.iter().rev() {
            let undone = self.undo_one(step);
            if !matches!(undone, Ok(true)) {
                let (path, beside) = (step.path.shown(), step.beside().shown());
                left.push(format!("{path} (what was there may be in {beside})"));
            }
        }
        self.permit(|folder| folder.before);
        left
    }

    fn undo_one(&self, step: &Move) -> Result<bool> {
        let folder = step.folder(self.root)?;
        match step.standing(&folder)? {
            Standing::Done => step.undo(&folder)?,
            Standing::Waiting | Standing::Apart => {}
            Standing::Lost => return Ok(false),
        }
        remove(&folder, step.beside_name())?;
        Ok(true)
    }

    /// Removes all that lies beside, whatever it is; tells what could not be.
    pub(super) fn clear(&self) -> Vec<String> {
        let clear = |step: &&Move| {
            let folder = step.folder(self.root);
            folder
                .and_then(|folder| remove(&folder, step.beside_name()))
                .is_err()
        };
        let left = self.journal.moves.iter().filter(clear);
        left.map(|step| step.beside().shown()).collect()
    }

    /// Gives folders that stay their permissions.
    pub(super) fn permit(&self, mode: fn(&Folder) -> u32) {
        for folder in self.journal.folders.iter().rev() {
            // One that is no longer there needs none.
            let _ = set(self.root, folder, mode(folder));
        }
    }
}

/// Gives a folder that stays other permissions.
pub(super) fn set(root: &OwnedFd, folder: &Folder, mode: u32) -> Result<()> {
    match folder.path.split() {
        Some((parent, name)) => handle::set_mode(handle::folder_at(root, &parent)?, name, mode),
        None => handle::set_mode(root, b".", mode),
    }
}

/// What is not as it was in what was taken away.
fn different<'t>(
    folder: &OwnedFd,
    step: &Move,
    touched: &'t [Touched],
) -> Result<Option<&'t TreePath>> {
    let mut open: Option<(TreePath, OwnedFd)> = None;
    for one in touched {
        let Some(before) = &one.before else { continue };
        let inner = one.path.below(&step.path);
        let data = match inner.split() {
            None => handle::look(folder, step.beside_name())?,
            Some((parent, name)) => {
                if open.as_ref().is_none_or(|(path, _)| *path != parent) {
                    let top = handle::folder(folder, step.beside_name())?;
                    open = Some((parent.clone(), handle::folder_at(top, &parent)?));
                }
                match &open {
                    Some((_, parent)) => handle::look(parent, name)?,
                    None => None,
                }
            }
        };
        let is_same = data.is_some_and(|data| {
            let now = Print::of(&data);
            // To be renamed changes the time of a thing itself, but of nothing in it.
            now == *before || inner.split().is_none() && now.is_renamed(before)
        });
        if !is_same {
            return Ok(Some(&one.path));
        }
    }
    Ok(None)
}
