//! What is being put in place, on disk before anything moves, so that it can be finished or undone after a crash.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::{Errno, Result};
use serde::{Deserialize, Serialize};

use super::change::{How, Print};
use super::handle;
use super::path::TreePath;

/// What is written before anything moves.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Journal {
    pub(super) phase: Phase,
    pub(super) moves: Vec<Move>,
    pub(super) folders: Vec<Folder>,
}

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Phase {
    /// Copies are made beside what is there. Nothing of the project is touched.
    Staging,
    /// The copies take the places of what is there.
    Moving,
    /// All are in place; what was there before is removed.
    Clearing,
}

/// One path that is put in place.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Move {
    pub(super) path: TreePath,
    pub(super) how: How,
    /// The name beside it: of the copy before, of what was there afterwards.
    #[serde(rename = "beside")]
    beside: String,
    /// What is there. Its number alone would not do: it is given again to what others make.
    pub(super) old: Option<Print>,
    /// The copy.
    pub(super) new: Option<Print>,
}

/// A folder that stays, with other permissions meanwhile or afterwards.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Folder {
    pub(super) path: TreePath,
    pub(super) before: u32,
    pub(super) after: u32,
}

/// Where a move stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Waiting,
    Done,
    /// Nothing of it is in place, and somebody else's thing is there.
    Apart,
    /// It is neither in place nor beside it.
    Lost,
}

impl Journal {
    pub(super) fn at(preview: &Path) -> PathBuf {
        preview.join("journal.json")
    }

    /// What a crash left; none if nothing was under way.
    pub(super) fn read(preview: &Path) -> io::Result<Option<Self>> {
        match fs::read(Self::at(preview)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes it so that it survives a power loss.
    pub(super) fn write(&self, preview: &Path) -> io::Result<()> {
        write(&Self::at(preview), &serde_json::to_vec(self)?)
    }
}

/// Replaces a file so that it survives a power loss, old or new but never half.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

/// What is at a name; none if there is nothing.
pub(super) fn print(folder: &OwnedFd, name: &[u8]) -> Result<Option<Print>> {
    Ok(handle::look(folder, name)?.as_ref().map(Print::of))
}

impl Move {
    pub(super) fn new(id: &str, number: usize, path: &TreePath, how: How) -> Self {
        Self {
            path: path.clone(),
            how,
            beside: format!(".unstuck-{id}-{number}"),
            old: None,
            new: None,
        }
    }

    /// The path of what lies beside it.
    pub(super) fn beside(&self) -> TreePath {
        let folder = self.path.split().map(|(folder, _)| folder);
        folder.unwrap_or_default().join(self.beside.as_bytes())
    }

    /// The folder that both names are in.
    pub(super) fn folder(&self, root: &OwnedFd) -> Result<OwnedFd> {
        let (folder, _) = self.path.split().ok_or(Errno::INVAL)?;
        handle::folder_at(root, &folder)
    }

    pub(super) fn name(&self) -> &[u8] {
        self.path.split().map_or(b"", |(_, name)| name)
    }

    pub(super) fn beside_name(&self) -> &[u8] {
        self.beside.as_bytes()
    }

    /// Puts the copy in place.
    pub(super) fn perform(&self, folder: &OwnedFd) -> Result<()> {
        self.rename(folder, self.how)
    }

    /// Brings back what was there.
    pub(super) fn undo(&self, folder: &OwnedFd) -> Result<()> {
        self.rename(
            folder,
            match self.how {
                How::Put => How::Take,
                How::Exchange => How::Exchange,
                How::Take => How::Put,
            },
        )
    }

    fn rename(&self, folder: &OwnedFd, how: How) -> Result<()> {
        let (name, beside) = (self.name(), self.beside_name());
        let (from, to, flags) = match how {
            How::Put => (beside, name, RenameFlags::NOREPLACE),
            How::Exchange => (beside, name, RenameFlags::EXCHANGE),
            How::Take => (name, beside, RenameFlags::NOREPLACE),
        };
        renameat_with(folder, from, folder, to, flags)
    }

    /// Where it stands, by what lies at both names.
    pub(super) fn standing(&self, folder: &OwnedFd) -> Result<Standing> {
        let there = print(folder, self.name())?;
        let beside = print(folder, self.beside_name())?;
        let is = |now: &Option<Print>, then: &Option<Print>| match (now, then) {
            (Some(now), Some(then)) => now.is_renamed(then),
            (None, None) => true,
            _ => false,
        };
        Ok(if is(&there, &self.old) && is(&beside, &self.new) {
            Standing::Waiting
        } else if is(&there, &self.new) && is(&beside, &self.old) {
            Standing::Done
        } else if is(&beside, &self.new) {
            Standing::Apart
        } else {
            Standing::Lost
        })
    }
}
