//! Makes a preview true: staged beside, then moved into place, never written over what is there.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

use rustix::fs::fstat;
use rustix::io::Errno;
use rustix::process::geteuid;

use super::change::{Changes, How, PERMISSIONS, Touched};
use super::compare::{Compared, compare};
use super::error::ApplyError;
use super::handle;
use super::journal::{Folder, Journal, Move, Phase, print};
use super::layers::Layers;
use super::moving::{Moving, set};
use super::path::TreePath;
use super::preview::Preview;
use super::report::Counts;
use super::stage::{Stage, times};

type Result<T> = std::result::Result<T, ApplyError>;

/// How many paths are named in an error.
const NAMED: usize = 5;
/// What an owner needs to put something into a folder.
const ENTRY: u32 = 0o300;

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// How many files were added, changed and deleted.
    pub counts: Counts,
    /// What could not be removed although nobody needs it any more, fit to be shown.
    pub left: Vec<String>,
}

impl Preview {
    /// What would be changed now.
    pub(super) fn compared(&self, root: &OwnedFd, upper: &OwnedFd) -> Result<Changes> {
        Ok(compare(&Compared {
            lower: root,
            upper,
            guarded: self.guarded(),
            bounds: self.bounds(),
        })?)
    }

    /// Makes true what was shown, all or nothing, and removes the preview.
    ///
    /// Refused if the project differs in what it would touch, or the preview from what was shown.
    pub fn apply(self) -> Result<Applied> {
        if !self.report().unsettled.is_empty() {
            let paths = self.report().unsettled.clone();
            return Err(ApplyError::Unsettled { paths });
        }
        let (root, upper) = (self.project()?, self.upper()?);
        let _claim = self.claim()?;
        let changes = self.compared(&root, &upper)?;
        let shown = self.touched()?;
        if changes.touched != shown {
            let paths = named(&changes.touched, &shown);
            return Err(ApplyError::Changed { paths });
        }
        let work = Work {
            preview: &self,
            root: &root,
            upper: &upper,
            changes: &changes,
        };
        let left = work.apply()?;
        let counts = self.report().counts;
        self.discard()?;
        Ok(Applied { counts, left })
    }
}

/// The paths in which two lists differ, the first few.
fn named(now: &[Touched], shown: &[Touched]) -> Vec<String> {
    let of = |list: &[Touched], other: &[Touched]| -> BTreeSet<TreePath> {
        let other: BTreeSet<_> = other.iter().map(key).collect();
        let new = list.iter().filter(|touched| !other.contains(&key(touched)));
        new.map(|touched| touched.path.clone()).collect()
    };
    let mut paths = of(now, shown);
    paths.extend(of(shown, now));
    paths.iter().take(NAMED).map(TreePath::shown).collect()
}

fn key(touched: &Touched) -> (TreePath, String) {
    (touched.path.clone(), format!("{touched:?}"))
}

/// What is applied, and where.
pub(super) struct Work<'a> {
    pub(super) preview: &'a Preview,
    pub(super) root: &'a OwnedFd,
    pub(super) upper: &'a OwnedFd,
    pub(super) changes: &'a Changes,
}

impl Work<'_> {
    fn apply(&self) -> Result<Vec<String>> {
        let folder = self.preview.folder();
        let keeping = |source| self.preview.keeping(source);
        let mut journal = self.planned()?;
        journal.write(folder).map_err(keeping)?;
        if let Err(error) = self.stage(&mut journal) {
            let moving = self.moving(&journal);
            moving.clear();
            moving.permit(|folder| folder.before);
            self.preview.forget_journal().map_err(keeping)?;
            return Err(error);
        }
        sync(self.root);
        journal.phase = Phase::Moving;
        journal.write(folder).map_err(keeping)?;
        let moved = self.moving(&journal).all(|step| self.touched(step));
        if let Err(error) = moved {
            if !matches!(error, ApplyError::Half { .. }) {
                self.preview.forget_journal().map_err(keeping)?;
            }
            return Err(error);
        }
        sync(self.root);
        journal.phase = Phase::Clearing;
        journal.write(folder).map_err(keeping)?;
        let left = self.moving(&journal).clear();
        // As long as something is removed from them, folders have to be open, and their times change.
        self.settle_folders(&journal);
        Ok(left)
    }

    fn moving<'a>(&'a self, journal: &'a Journal) -> Moving<'a> {
        Moving {
            root: self.root,
            journal,
        }
    }

    /// What has to be done, before anything is.
    pub(super) fn planned(&self) -> Result<Journal> {
        let id = &self.preview.report().id;
        let units = self.changes.units.iter().enumerate();
        let moves = units.map(|(number, unit)| Move::new(id, number, &unit.path, unit.how));
        let mut folders: Vec<Folder> = Vec::new();
        for (path, permitted) in &self.changes.permitted {
            folders.push(Folder {
                path: path.clone(),
                before: permitted.before,
                after: permitted.after,
            });
        }
        for path in self.parents() {
            let folder = handle::folder_at(self.root, &path).map_err(|e| failed(&path, e))?;
            let mode = fstat(&folder).map_err(|e| failed(&path, e))?.st_mode & PERMISSIONS;
            let known = folders.iter().any(|folder| folder.path == path);
            if mode & ENTRY != ENTRY && !known {
                let (before, after) = (mode, mode);
                folders.push(Folder {
                    path,
                    before,
                    after,
                });
            }
        }
        folders.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Journal {
            phase: Phase::Staging,
            moves: moves.collect(),
            folders,
        })
    }

    /// The folders in which something is put in place.
    fn parents(&self) -> BTreeSet<TreePath> {
        let units = self.changes.units.iter();
        units
            .filter_map(|unit| unit.path.split().map(|(folder, _)| folder))
            .collect()
    }

    /// Copies all beside their places.
    pub(super) fn stage(&self, journal: &mut Journal) -> Result<()> {
        for folder in &journal.folders {
            // Root needs no permission, and no wrong one must be seen meanwhile.
            if !geteuid().is_root() {
                let mode = folder.before | ENTRY;
                set(self.root, folder, mode).map_err(|e| failed(&folder.path, e))?;
            }
        }
        let mut stage = Stage::new(self.root);
        for step in &mut journal.moves {
            let path = step.path.clone();
            self.stage_one(step, &mut stage)
                .map_err(|source| ApplyError::Failed {
                    path: path.shown(),
                    source,
                })?;
        }
        Ok(())
    }

    fn stage_one(&self, step: &mut Move, stage: &mut Stage<'_>) -> std::io::Result<()> {
        let folder = step.folder(self.root)?;
        step.old = print(&folder, step.name())?;
        if step.how == How::Take {
            return Ok(());
        }
        let (parent, name) = step.path.split().ok_or(Errno::INVAL)?;
        let upper = handle::folder(self.upper, b".")?;
        let layers = Layers::merged(upper, handle::folder(self.root, b".")?);
        let layers = layers.at(&parent, self.root)?;
        let item = layers.item(name)?.ok_or(Errno::NOENT)?;
        stage.copy(&item, &step.beside())?;
        step.new = print(&folder, step.beside_name())?;
        Ok(())
    }

    fn touched(&self, step: &Move) -> &[Touched] {
        let mut units = self.changes.units.iter();
        let unit = units.find(|unit| unit.path == step.path);
        unit.map_or(&[], |unit| self.changes.touched_by(unit))
    }

    /// Folders that stay get the permissions and the times that the command left them with.
    fn settle_folders(&self, journal: &Journal) {
        for path in self.parents() {
            let folders = handle::folder_at(self.root, &path)
                .and_then(|lower| Ok((lower, handle::folder_at(self.upper, &path)?)));
            if let Ok((lower, upper)) = folders
                && let Ok(data) = fstat(&upper)
            {
                // The time of a folder is a courtesy to tools that compare it.
                let _ = rustix::fs::futimens(&lower, &times(&data));
            }
        }
        self.moving(journal).permit(|folder| folder.after);
    }
}

fn failed(path: &TreePath, error: Errno) -> ApplyError {
    ApplyError::Failed {
        path: path.shown(),
        source: error.into(),
    }
}

/// Brings all that was written to the disk.
fn sync(root: &OwnedFd) {
    #[cfg(target_os = "linux")]
    let _ = rustix::fs::syncfs(root);
    #[cfg(not(target_os = "linux"))]
    let _ = rustix::fs::fsync(root);
}
