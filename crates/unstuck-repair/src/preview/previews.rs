//! The place where previews are kept: outside of every project, for their owner only, and not for ever.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Gid, Mode, Uid, fchmod, fchown, fstat};
use unstuck_core::Timestamp;

use super::bounds::Bounds;
use super::change::{Print, identity};
use super::compare::{Compared, compare};
use super::error::PreviewError;
use super::journal::Journal;
use super::mounts;
use super::path::TreePath;
use super::preview::{KEPT, Kept, Preview, UPPER, WORK, lock, open_folder, remove_folder};
use super::report::{Ran, Report};
use super::tell::{Told, report};
use super::usage;

/// How long a preview is kept.
pub const KEPT_FOR: Duration = Duration::from_secs(24 * 3600);
/// How many previews are kept.
pub const KEPT_AT_MOST: usize = 8;
/// What the name of a preview begins with as long as it is being made.
const DRAFT: &str = "draft-";

type Result<T> = std::result::Result<T, PreviewError>;

/// The place where previews are kept.
#[derive(Debug, Clone)]
pub struct Previews {
    folder: PathBuf,
}

/// An empty overlay for a command that is to be previewed. It is removed unless it is finished.
#[derive(Debug)]
pub struct Draft {
    folder: PathBuf,
    project: PathBuf,
    root: OwnedFd,
    bounds: Bounds,
    /// The moment from which on changes of the project are noticed.
    began: i128,
    lock: Option<File>,
}

impl Previews {
    /// The previews in a state folder.
    pub fn at(state: &Path) -> Self {
        Self {
            folder: state.join("previews"),
        }
    }

    /// An empty overlay for a project. What is old is removed first.
    pub fn prepare(&self, project: &Path, bounds: Bounds, now: Timestamp) -> Result<Draft> {
        let no_project = |source| PreviewError::NoProject {
            path: project.to_owned(),
            source,
        };
        let project = project.canonicalize().map_err(no_project)?;
        let root = open_folder(&project).map_err(no_project)?;
        self.make()
            .map_err(|source| keeping(&self.folder, source))?;
        let state = self.folder.canonicalize();
        let state = state.map_err(|source| keeping(&self.folder, source))?;
        if state.starts_with(&project) {
            return Err(PreviewError::StateInside { state });
        }
        let mounted = fs::read("/proc/self/mountinfo").unwrap_or_default();
        if let Some(path) = mounts::below(&project, &mounted) {
            return Err(PreviewError::Mounted { path });
        }
        self.clean(now);
        let draft = Draft::new(&state, project, root, bounds);
        draft.map_err(|source| keeping(&state, source))
    }

    /// All that are kept, the newest first.
    pub fn list(&self) -> Vec<Report> {
        let mut reports: Vec<_> = self.ids().iter().filter_map(|id| self.report(id)).collect();
        reports.sort_by_key(|report| std::cmp::Reverse(report.made_at));
        reports
    }

    /// The preview whose id begins with these letters, to be applied or dropped.
    pub fn find(&self, letters: &str) -> Result<Preview> {
        let id = letters.to_owned();
        let fits = |id: &String| !letters.is_empty() && id.starts_with(letters);
        let mut several: Vec<_> = self.ids().into_iter().filter(fits).collect();
        match several.as_slice() {
            [] => Err(PreviewError::None { id }),
            [id] => Preview::open(self.folder.join(id), id),
            _ => {
                several.sort();
                Err(PreviewError::Ambiguous { id, several })
            }
        }
    }

    /// What was shown of a preview, also while somebody works on it.
    fn report(&self, id: &str) -> Option<Report> {
        let kept = fs::read(self.folder.join(id).join(KEPT)).ok()?;
        let kept: Kept = serde_json::from_slice(&kept).ok()?;
        (kept.report.id == id).then_some(kept.report)
    }

    pub(super) fn ids(&self) -> Vec<String> {
        let mut names = self.names();
        names.retain(|name| !name.starts_with(DRAFT));
        names
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.collect()
    }

    pub(super) fn folder_of(&self, id: &str) -> PathBuf {
        self.folder.join(id)
    }

    fn make(&self) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&self.folder)?;
        let mode = Mode::from_raw_mode(0o700);
        Ok(fchmod(open_folder(&self.folder)?, mode)?)
    }

    /// Removes what is old, too many, or was left by a crash; never what somebody works on or what is half applied.
    fn clean(&self, now: Timestamp) {
        let kept = self.list().into_iter().take(KEPT_AT_MOST - 1);
        let kept = kept.filter(|report| now.since(report.made_at) < KEPT_FOR);
        let kept: Vec<_> = kept.map(|report| report.id).collect();
        for name in self.names() {
            let folder = self.folder.join(&name);
            if kept.contains(&name) || Journal::at(&folder).exists() {
                continue;
            }
            if let Ok(Some(_lock)) = lock(&folder) {
                // One that cannot be removed is tried again the next time.
                let _ = remove_folder(&folder);
            }
        }
    }
}

impl Draft {
    fn new(state: &Path, project: PathBuf, root: OwnedFd, bounds: Bounds) -> io::Result<Self> {
        let folder = fresh(state)?;
        let lock = lock(&folder)?;
        let owner = fstat(&root)?;
        let mut draft = Self {
            folder,
            project,
            root,
            bounds,
            began: 0,
            lock,
        };
        for name in [UPPER, WORK] {
            let path = draft.folder.join(name);
            DirBuilder::new().mode(0o700).create(&path)?;
            let made = open_folder(&path)?;
            let (user, group) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
            // Only root can, and only root has to.
            let _ = fchown(&made, Some(user), Some(group));
        }
        let upper = open_folder(&draft.upper())?;
        // The root of the project is seen with the permissions of this folder.
        fchmod(&upper, Mode::from_raw_mode(owner.st_mode))?;
        draft.began = Print::of(&fstat(&upper)?).changed;
        Ok(draft)
    }

    /// The project.
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// Where the overlay keeps what the command writes.
    pub fn upper(&self) -> PathBuf {
        self.folder.join(UPPER)
    }

    /// What the kernel needs beside it.
    pub fn work(&self) -> PathBuf {
        self.folder.join(WORK)
    }

    /// Whether the command has already written more than a preview may hold.
    pub fn is_full(&self) -> bool {
        usage::exceeds(&self.upper(), self.bounds)
    }

    /// Compares what the command left with the project, and keeps it.
    ///
    /// The overlay must be unmounted. `guarded` are what the sandbox itself put into the project so that the
    /// command could not; they are no changes.
    pub fn finish(mut self, ran: Ran, guarded: &[PathBuf], now: Timestamp) -> Result<Preview> {
        let guarded: Vec<_> = guarded.iter().map(|path| TreePath::of(path)).collect();
        let unusable = |source| keeping(&self.folder, source);
        let upper = open_folder(&self.upper()).map_err(unusable)?;
        let compared = Compared {
            lower: &self.root,
            upper: &upper,
            guarded: &guarded,
            bounds: self.bounds,
        };
        let changes = compare(&compared)?;
        let told = Told {
            project: &self.project,
            made_at: now,
            began: self.began,
            ran,
        };
        let root = fstat(&self.root).map_err(|error| unusable(error.into()))?;
        let kept = Kept {
            report: report(&compared, &changes, told)?,
            root: identity(&root),
            guarded: guarded.clone(),
            bounds: self.bounds,
        };
        // What the kernel needed is no part of it.
        let _ = remove_folder(&self.work());
        let missing = || keeping(&self.folder, io::ErrorKind::NotFound.into());
        let lock = self.lock.take().ok_or_else(missing)?;
        Preview::keep(&self.folder, lock, kept, &changes)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // It has another name once it is finished. What cannot be removed is removed when the next one is made.
        if self.folder.exists() {
            let _ = remove_folder(&self.folder);
        }
    }
}

/// A new folder for a preview that is being made.
fn fresh(state: &Path) -> io::Result<PathBuf> {
    for number in 1_u64.. {
        let folder = state.join(format!("{DRAFT}{number}"));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            done => return done.map(|()| folder),
        }
    }
    Err(io::ErrorKind::StorageFull.into())
}

fn keeping(path: &Path, source: io::Error) -> PreviewError {
    PreviewError::Keeping {
        path: path.to_owned(),
        source,
    }
}
