//! Why a file was not read or written.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// A file that was not read or written, and why.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct FileError {
    /// Its path, from the folder that was held open.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: FileProblem,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum FileProblem {
    /// There is none.
    #[error("there is no such file")]
    Missing,
    /// It is a folder, FIFO, device or socket.
    #[error("it is {0}, not a regular file")]
    NotAFile(&'static str),
    /// A part of the path is not a folder.
    #[error("a part of its path is not a folder")]
    NotADirectory,
    /// It, or a folder on the way to it, is a symbolic link.
    #[error("a symbolic link is in its place or on the way to it")]
    Symlink,
    /// The path leads out of the folder that was held open.
    #[error("its path leads out of its folder")]
    OutsideRoot,
    /// It has a second name, which may be anywhere: what is written to it would be written there too.
    #[error("it has {0} names (hard links), so writing it would change a file elsewhere")]
    MultipleHardLinks(u64),
    /// It has more bytes than are read.
    #[error("it has more than {0} bytes")]
    TooLarge(u64),
    /// It is not text.
    #[error("it is not UTF-8 text")]
    NotText,
    /// It was swapped again and again while it was opened.
    #[error("it was changed while it was opened")]
    Unstable,
    /// The system refuses it.
    #[error("{0}")]
    System(io::Error),
}

impl FileError {
    pub(crate) fn new(path: &Path, problem: impl Into<FileProblem>) -> Self {
        Self {
            path: path.to_owned(),
            problem: problem.into(),
        }
    }

    /// Whether there is no such file.
    pub fn is_missing(&self) -> bool {
        matches!(self.problem, FileProblem::Missing)
    }

    /// Returns the same with the whole path, for people.
    #[must_use]
    pub fn with_base_dir(self, folder: &Path) -> Self {
        Self {
            path: folder.join(self.path),
            problem: self.problem,
        }
    }
}

impl From<Errno> for FileProblem {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::Missing,
            Errno::NOTDIR => Self::NotADirectory,
            Errno::ISDIR => Self::NotAFile("a folder"),
            Errno::LOOP => Self::Symlink,
            Errno::XDEV => Self::OutsideRoot,
            Errno::NXIO => Self::NotAFile("a FIFO or socket"),
            Errno::AGAIN => Self::Unstable,
            other => Self::System(other.into()),
        }
    }
}

impl From<io::Error> for FileProblem {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(code) => Errno::from_raw_os_error(code).into(),
            None => Self::System(error),
        }
    }
}

impl FileProblem {
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
