//! Errors of file access.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// A failed file access with its path and cause.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct FileError {
    /// Path relative to the open directory.
    pub path: PathBuf,
    /// Cause of the failure.
    pub problem: FileErrorKind,
}

/// The cause of a failed file access.
#[derive(Debug, thiserror::Error)]
pub enum FileErrorKind {
    /// The file does not exist.
    #[error("file not found")]
    Missing,
    /// A directory, FIFO, device or socket instead of a regular file.
    #[error("not a regular file ({0})")]
    NotAFile(&'static str),
    /// A path component is not a directory.
    #[error("a component of the path is not a directory")]
    NotADirectory,
    /// The file or one of its parents is a symbolic link.
    #[error("the path contains a symbolic link")]
    Symlink,
    /// The path leads out of the open directory.
    #[error("the path leads outside the directory")]
    OutsideRoot,
    /// The file has a second hard link, possibly elsewhere: a write would change that file too.
    #[error("the file has {0} hard links; writing to it would change a file elsewhere")]
    MultipleHardLinks(u64),
    /// The file exceeds the size limit.
    #[error("larger than {0} bytes")]
    TooLarge(u64),
    /// The file is not UTF-8 text.
    #[error("not valid UTF-8")]
    NotText,
    /// The file kept changing while it was being opened.
    #[error("changed while it was being opened")]
    Unstable,
    /// Any other I/O error.
    #[error("{0}")]
    System(io::Error),
}

impl FileError {
    pub(crate) fn new(path: &Path, problem: impl Into<FileErrorKind>) -> Self {
        Self {
            path: path.to_owned(),
            problem: problem.into(),
        }
    }

    /// True if the file does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self.problem, FileErrorKind::Missing)
    }

    /// Returns the error with the full path, for display.
    #[must_use]
    pub fn with_base_dir(self, folder: &Path) -> Self {
        Self {
            path: folder.join(self.path),
            problem: self.problem,
        }
    }
}

impl From<Errno> for FileErrorKind {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::Missing,
            Errno::NOTDIR => Self::NotADirectory,
            Errno::ISDIR => Self::NotAFile("directory"),
            Errno::LOOP => Self::Symlink,
            Errno::XDEV => Self::OutsideRoot,
            Errno::NXIO => Self::NotAFile("FIFO or socket"),
            Errno::AGAIN => Self::Unstable,
            other => Self::System(other.into()),
        }
    }
}

impl From<io::Error> for FileErrorKind {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(code) => Errno::from_raw_os_error(code).into(),
            None => Self::System(error),
        }
    }
}

impl FileErrorKind {
    fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Missing => io::ErrorKind::NotFound,
            Self::NotADirectory => io::ErrorKind::NotADirectory,
            Self::NotText => io::ErrorKind::InvalidData,
            Self::TooLarge(_) => io::ErrorKind::FileTooLarge,
            Self::NotAFile(_)
            | Self::Symlink
            | Self::OutsideRoot
            | Self::MultipleHardLinks(_)
            | Self::Unstable => io::ErrorKind::Other,
            Self::System(error) => error.kind(),
        }
    }
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        Self::new(error.problem.kind(), error)
    }
}
