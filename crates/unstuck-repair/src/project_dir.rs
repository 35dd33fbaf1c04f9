//! Where a repair runs: a handle on a folder of the project, held from the decision to the execution.
//!
//! A path that is checked first and used later can be swapped in between. So the folder is opened once, by the kernel's
//! own rules for staying below the root, and nobody opens it by its path again.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, openat};
use unstuck_core::command_policy::{DirectoryKind, sanitize};

use crate::beneath::{self, file_identity};

pub use crate::beneath::{DirOpenError, FileIdentity};

/// Folders in which no approval counts: they hold what is executed by others, or what decides about approvals.
const PROTECTED_DIRS: [&str; 6] = [".git", "node_modules", ".unstuck", ".hg", ".svn", ".jj"];

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProjectDirError {
    /// The project itself cannot be opened.
    #[error("cannot open the project {}: {source}", path.display())]
    Root {
        /// Its path.
        path: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
    /// The proposal names a folder that cannot be used.
    #[error("working_dir `{}` {problem}", sanitize(working_dir))]
    WorkingDir {
        /// As the proposal names it.
        working_dir: String,
        /// What is wrong with it.
        problem: DirOpenError,
    },
}

/// A handle on the root of a project.
#[derive(Debug)]
pub struct ProjectRoot {
    handle: File,
    identity: FileIdentity,
    /// As it was named, and as it really is.
    names: Vec<PathBuf>,
}

/// A handle on a folder of a project.
#[derive(Debug)]
pub struct ProjectDir {
    handle: File,
    identity: FileIdentity,
    relative: PathBuf,
    directory_kind: DirectoryKind,
}

impl ProjectRoot {
    /// Opens a project.
    pub fn open(path: &Path) -> Result<Self, ProjectDirError> {
        let failed = |source: std::io::Error| ProjectDirError::Root {
            path: path.to_owned(),
            source,
        };
        let handle = openat(CWD, path, beneath::DIR_FLAGS, Mode::empty())
            .map(File::from)
            .map_err(|error| failed(error.into()))?;
        let identity = file_identity(&handle).map_err(failed)?;
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
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// Opens the folder that a proposal names; the root itself where it names none.
    pub fn open_working_dir(
        &self,
        working_dir: Option<&str>,
    ) -> Result<ProjectDir, ProjectDirError> {
        let working_dir = working_dir.unwrap_or(".");
        self.open_below(working_dir)
            .map_err(|problem| ProjectDirError::WorkingDir {
                working_dir: working_dir.to_owned(),
                problem,
            })
    }

    fn open_below(&self, working_dir: &str) -> Result<ProjectDir, DirOpenError> {
        let path = Path::new(working_dir);
        let path = match working_dir {
            "" => return Err(DirOpenError::Empty),
            _ if path.is_absolute() => self
                .relative_to_root(path)
                .ok_or(DirOpenError::OutsideRoot)?,
            _ => path,
        };
        let (handle, relative) = beneath::open_dir(self.handle.as_fd(), path)?;
        let handle = File::from(handle);
        let identity = file_identity(&handle).map_err(|_| DirOpenError::Moved)?;
        Ok(ProjectDir {
            handle,
            identity,
            directory_kind: Self::location_of(path, &relative),
            relative,
        })
    }

    /// The way from the root to an absolute path, part by part; nothing if it does not begin with the root.
    fn relative_to_root<'p>(&self, path: &'p Path) -> Option<&'p Path> {
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
    fn location_of(asked: &Path, found: &Path) -> DirectoryKind {
        let goes_up = asked.components().any(|part| part == Component::ParentDir);
        let asked = if goes_up { found } else { asked };
        if let Some(part) =
            first_protected_component(found).or_else(|| first_protected_component(asked))
        {
            return DirectoryKind::Protected(part.to_string_lossy().into_owned());
        }
        DirectoryKind::Ordinary
    }
}

/// The first part of a way in which no approval counts.
fn first_protected_component(way: &Path) -> Option<&OsStr> {
    let is_protected = |part: &&OsStr| {
        PROTECTED_DIRS
            .iter()
            .any(|name| part.eq_ignore_ascii_case(name))
    };
    way.components()
        .map(Component::as_os_str)
        .find(is_protected)
}

impl ProjectDir {
    /// The way from the root to it, without links; empty for the root itself.
    pub fn relative(&self) -> &Path {
        &self.relative
    }

    /// Which folder it is.
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// Whether approvals count in it.
    pub fn directory_kind(&self) -> &DirectoryKind {
        &self.directory_kind
    }
}

impl AsFd for ProjectRoot {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl AsFd for ProjectDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}
