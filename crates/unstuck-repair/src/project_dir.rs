//! A handle on the project directory in which a repair runs, held from the decision to the execution.
//!
//! A path that is checked first and used later can be swapped in between. So the directory is opened once, by the
//! kernel's own rules for staying below the root, and is never reopened by its path.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, openat};
use unstuck_core::command_policy::{WorkingDirProtection, sanitize};

use crate::beneath::{self, file_identity};

pub use crate::beneath::{DirOpenError, FileIdentity};

/// Directories in which no approval applies: they hold what others execute, or what decides about approvals.
const PROTECTED_DIRS: [&str; 6] = [".git", "node_modules", ".unstuck", ".hg", ".svn", ".jj"];

/// An error opening a project or working directory.
#[derive(Debug, thiserror::Error)]
pub enum ProjectDirError {
    /// The project itself cannot be opened.
    #[error("cannot open the project {}: {source}", path.display())]
    Root {
        /// Path of the project.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The working directory of the proposal cannot be used.
    #[error("working_dir `{}` {problem}", sanitize(working_dir))]
    WorkingDir {
        /// Directory as named in the proposal.
        working_dir: String,
        /// Problem with the directory.
        problem: DirOpenError,
    },
}

/// A handle on the root of a project.
#[derive(Debug)]
pub struct ProjectRoot {
    handle: File,
    identity: FileIdentity,
    /// Path as given, and resolved.
    names: Vec<PathBuf>,
}

/// A handle on the directory of a project in which a repair runs.
#[derive(Debug)]
pub struct RepairWorkingDir {
    handle: File,
    identity: FileIdentity,
    relative: PathBuf,
    directory_kind: WorkingDirProtection,
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

    /// Returns the resolved path of the project.
    pub fn path(&self) -> &Path {
        self.names.last().map_or(Path::new("/"), PathBuf::as_path)
    }

    /// Returns the identity of the directory.
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// Opens the directory that a proposal names, or the root if it names none.
    pub fn open_working_dir(
        &self,
        working_dir: Option<&str>,
    ) -> Result<RepairWorkingDir, ProjectDirError> {
        let working_dir = working_dir.unwrap_or(".");
        self.open_below(working_dir)
            .map_err(|problem| ProjectDirError::WorkingDir {
                working_dir: working_dir.to_owned(),
                problem,
            })
    }

    fn open_below(&self, working_dir: &str) -> Result<RepairWorkingDir, DirOpenError> {
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
        Ok(RepairWorkingDir {
            handle,
            identity,
            directory_kind: Self::location_of(path, &relative),
            relative,
        })
    }

    /// Returns an absolute path relative to the root, or `None` if it is not below the root.
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

    /// Returns the kind of a directory by its requested path and its resolved path.
    fn location_of(asked: &Path, found: &Path) -> WorkingDirProtection {
        let goes_up = asked.components().any(|part| part == Component::ParentDir);
        let asked = if goes_up { found } else { asked };
        if let Some(part) =
            first_protected_component(found).or_else(|| first_protected_component(asked))
        {
            return WorkingDirProtection::Protected(part.to_string_lossy().into_owned());
        }
        WorkingDirProtection::Ordinary
    }
}

/// Returns the first path component in which no approval applies.
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

impl RepairWorkingDir {
    /// Returns the resolved path relative to the root; empty for the root itself.
    pub fn relative(&self) -> &Path {
        &self.relative
    }

    /// Returns the identity of the directory.
    pub fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// Returns the kind of the directory, which decides if approvals apply in it.
    pub fn directory_kind(&self) -> &WorkingDirProtection {
        &self.directory_kind
    }
}

impl AsFd for ProjectRoot {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl AsFd for RepairWorkingDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}
