//! Where a repair runs: a handle on a folder of the project, held from the decision to the execution.
//!
//! A path that is checked first and used later can be swapped in between. So the folder is opened once, by the kernel's
//! own rules for staying below the root, and nobody opens it by its path again.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, openat};
use unstuck_core::guard::{Place, show};

use crate::beneath::{self, identity};

pub use crate::beneath::{FolderProblem, Identity};

/// Folders in which no approval counts: they hold what is executed by others, or what decides about approvals.
const PROTECTED: [&str; 6] = [".git", "node_modules", ".unstuck", ".hg", ".svn", ".jj"];

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The project itself cannot be opened.
    #[error("cannot open the project {}: {source}", path.display())]
    Root {
        /// Its path.
        path: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
    /// The proposal names a folder that cannot be used.
    #[error("working_dir `{}` {problem}", show(working_dir))]
    Folder {
        /// As the proposal names it.
        working_dir: String,
        /// What is wrong with it.
        problem: FolderProblem,
    },
}

/// A handle on the root of a project.
#[derive(Debug)]
pub struct Root {
    handle: File,
    identity: Identity,
    /// As it was named, and as it really is.
    names: Vec<PathBuf>,
}

/// A handle on a folder of a project.
#[derive(Debug)]
pub struct Folder {
    handle: File,
    identity: Identity,
    relative: PathBuf,
    place: Place,
}

impl Root {
    /// Opens a project.
    pub fn open(path: &Path) -> Result<Self, PlaceError> {
        let failed = |source: std::io::Error| PlaceError::Root {
            path: path.to_owned(),
            source,
        };
        let handle = openat(CWD, path, beneath::FOLDER, Mode::empty())
            .map(File::from)
            .map_err(|error| failed(error.into()))?;
        let identity = identity(&handle).map_err(failed)?;
        let mut names = vec![std::path::absolute(path).map_err(failed)?];
        let real = path.canonicalize().map_err(failed)?;
        if !names.contains(&real) {
            names.push(real);
        }
        Ok(Self {
            handle,
            identity,
            names,
        })
    }

    /// The path of the project as it really is.
    pub fn path(&self) -> &Path {
        self.names.last().map_or(Path::new("/"), PathBuf::as_path)
    }

    /// Which folder it is.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Opens the folder that a proposal names; the root itself where it names none.
    pub fn folder(&self, working_dir: Option<&str>) -> Result<Folder, PlaceError> {
        let working_dir = working_dir.unwrap_or(".");
        self.open_below(working_dir)
            .map_err(|problem| PlaceError::Folder {
                working_dir: working_dir.to_owned(),
                problem,
            })
    }

    fn open_below(&self, working_dir: &str) -> Result<Folder, FolderProblem> {
        let path = Path::new(working_dir);
        let path = match working_dir {
            "" => return Err(FolderProblem::Empty),
            _ if path.is_absolute() => self.below(path).ok_or(FolderProblem::Outside)?,
            _ => path,
        };
        let (handle, relative) = beneath::open(self.handle.as_fd(), path)?;
        let handle = File::from(handle);
        let identity = identity(&handle).map_err(|_| FolderProblem::Moved)?;
        Ok(Folder {
            handle,
            identity,
            place: Self::place_of(path, &relative),
            relative,
        })
    }

    /// The way from the root to an absolute path, part by part; nothing if it does not begin with the root.
    fn below<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        self.names
            .iter()
            .find_map(|root| path.strip_prefix(root).ok())
            .map(|rest| {
                if rest.as_os_str().is_empty() {
                    Path::new(".")
                } else {
                    rest
                }
            })
    }

    /// Whether approvals count in a folder, by the way that was asked for and by the one that really leads there.
    fn place_of(asked: &Path, found: &Path) -> Place {
        let goes_up = asked.components().any(|part| part == Component::ParentDir);
        let asked = if goes_up { found } else { asked };
        if let Some(part) = protected_part(found).or_else(|| protected_part(asked)) {
            return Place::Protected(part.to_string_lossy().into_owned());
        }
        Place::Ordinary
    }
}

/// The first part of a way in which no approval counts.
fn protected_part(way: &Path) -> Option<&OsStr> {
    let is_protected = |part: &&OsStr| PROTECTED.iter().any(|name| part.eq_ignore_ascii_case(name));
    way.components()
        .map(Component::as_os_str)
        .find(is_protected)
}

impl Folder {
    /// The way from the root to it, without links; empty for the root itself.
    pub fn relative(&self) -> &Path {
        &self.relative
    }

    /// Which folder it is.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Whether approvals count in it.
    pub fn place(&self) -> &Place {
        &self.place
    }
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}
