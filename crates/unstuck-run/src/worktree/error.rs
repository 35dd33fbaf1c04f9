//! Why the state of a work tree could not be taken, shown or brought back.

use std::io;
use std::path::{Path, PathBuf};

/// Why something about the work tree could not be done.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// There is no git program.
    #[error("git is not installed, or not on the search path")]
    GitNotFound,
    /// The project is in no repository with a work tree.
    #[error("{} is not in a git repository", project.display())]
    NoRepository {
        /// The folder that was looked at.
        project: PathBuf,
    },
    /// Git refuses a repository that belongs to somebody else.
    #[error("git does not trust the repository of {}, since another user owns it", project.display())]
    UnsafeOwner {
        /// The folder that was looked at.
        project: PathBuf,
    },
    /// Git would work on another folder than the one that the repository is in, or something in the repository leads elsewhere.
    #[error("{}: {reason}; unstuck takes no snapshots there", repository.display())]
    Redirected {
        /// The repository.
        repository: PathBuf,
        /// What leads elsewhere.
        reason: String,
    },
    /// Another program holds a lock of the repository.
    #[error("another program is working on the git repository: {message}")]
    Locked {
        /// What git said.
        message: String,
    },
    /// There is no room.
    #[error("the disk is full")]
    DiskFull,
    /// Something may not be read or written.
    #[error("no permission: {message}")]
    Denied {
        /// What may not be done.
        message: String,
    },
    /// Git did not come to an end.
    #[error(
        "git did not come to an end, and could not {operation}; a FIFO may be in the place of a file that it reads"
    )]
    GitTimedOut {
        /// What it was doing.
        operation: &'static str,
    },
    /// A snapshot is not there any more.
    #[error("the snapshot {tree} is not in the repository any more")]
    Pruned {
        /// The id of its tree.
        tree: String,
    },
    /// There is more than can be looked at in a short time.
    #[error("{} has too many files to look at all of them in time", project.display())]
    TooManyFiles {
        /// The folder that was looked at.
        project: PathBuf,
    },
    /// Git failed otherwise.
    #[error("git could not {doing}: {message}")]
    Git {
        /// What it was doing.
        doing: &'static str,
        /// What it said.
        message: String,
    },
    /// The system refused something.
    #[error("cannot {doing} {}", path.display())]
    System {
        /// What was tried.
        doing: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl WorktreeError {
    /// What the words of git mean.
    pub(super) fn from_git_stderr(doing: &'static str, stderr: &[u8]) -> Self {
        let text = String::from_utf8_lossy(stderr);
        let said = text.trim().lines().next().unwrap_or_default().to_owned();
        let says = |words: &str| text.contains(words);
        if says("No space left on device") || says("Disk quota exceeded") {
            return Self::DiskFull;
        }
        if says("Permission denied") || says("Read-only file system") {
            return Self::Denied { message: said };
        }
        if says(".lock': File exists") {
            return Self::Locked { message: said };
        }
        Self::Git {
            doing,
            message: said,
        }
    }

    /// What a refusal of the system means.
    pub(super) fn from_io_error(doing: &'static str, path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::Denied {
                message: format!("cannot {doing} {}", path.display()),
            },
            _ => Self::System {
                doing,
                path: path.to_owned(),
                source,
            },
        }
    }
}

/// Says what was tried, and with which file, when the system refuses it.
pub(super) trait WorktreeIoContext<T> {
    fn context(self, doing: &'static str, path: &Path) -> Result<T, WorktreeError>;
}

impl<T, E: Into<io::Error>> WorktreeIoContext<T> for Result<T, E> {
    fn context(self, doing: &'static str, path: &Path) -> Result<T, WorktreeError> {
        self.map_err(|error| WorktreeError::from_io_error(doing, path, error.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_git_are_understood() {
        let error = |text: &str| WorktreeError::from_git_stderr("write the tree", text.as_bytes());
        let full = "error: unable to write file x: No space left on device\nfatal: y";
        assert!(matches!(error(full), WorktreeError::DiskFull));
        let lock = "fatal: Unable to create '/r/.git/refs/unstuck/a.lock': File exists.\n\nAnother git process";
        assert!(matches!(error(lock), WorktreeError::Locked { .. }));
        let denied = "error: insufficient permission for adding an object\nx: Permission denied";
        assert!(matches!(error(denied), WorktreeError::Denied { .. }));
        let other = error("fatal: bad object\nmore").to_string();
        assert_eq!(other, "git could not write the tree: fatal: bad object");
    }
}
