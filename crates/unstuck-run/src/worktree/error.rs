//! Errors of taking, comparing and restoring the state of a work tree.

use std::io;
use std::path::{Path, PathBuf};

/// An error of a work tree operation.
#[derive(Debug, thiserror::Error)]
pub enum WorktreeError {
    /// The git program was not found.
    #[error("git is not installed or not in PATH")]
    GitNotFound,
    /// The project is not in a repository with a work tree.
    #[error("{} is not in a git repository", project.display())]
    NoRepository {
        /// The project directory.
        project: PathBuf,
    },
    /// Git refuses a repository that belongs to another user.
    #[error("git does not trust the repository of {}: it is owned by another user", project.display())]
    UnsafeOwner {
        /// The project directory.
        project: PathBuf,
    },
    /// Git would use a directory other than that of the repository, or something in the repository points elsewhere.
    #[error("{} {reason}; snapshots are disabled there", repository.display())]
    Redirected {
        /// The repository.
        repository: PathBuf,
        /// The reason.
        reason: String,
    },
    /// Another program holds a lock of the repository.
    #[error("another program has locked the git repository: {message}")]
    Locked {
        /// The message of git.
        message: String,
    },
    /// The disk is full.
    #[error("the disk is full")]
    DiskFull,
    /// Access was denied.
    #[error("permission denied: {message}")]
    Denied {
        /// The denied operation.
        message: String,
    },
    /// Git did not finish.
    #[error(
        "git timed out and could not {operation}; a file that it reads may have been replaced by a FIFO"
    )]
    GitTimedOut {
        /// The operation of git.
        operation: &'static str,
    },
    /// A snapshot no longer exists.
    #[error("snapshot {tree} is no longer in the repository")]
    Pruned {
        /// The id of its tree.
        tree: String,
    },
    /// There are too many files to scan in a short time.
    #[error("{} has too many files to scan in time", project.display())]
    TooManyFiles {
        /// The project directory.
        project: PathBuf,
    },
    /// Git failed for another reason.
    #[error("git could not {doing}: {message}")]
    Git {
        /// The operation of git.
        doing: &'static str,
        /// The message of git.
        message: String,
    },
    /// A system call failed.
    #[error("cannot {doing} {}", path.display())]
    System {
        /// The failed operation.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Cause of the error.
        source: io::Error,
    },
}

impl WorktreeError {
    /// Converts an error message of git.
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

    /// Converts an I/O error.
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

/// Adds the operation and the file to an I/O error.
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
    fn git_messages_are_recognized() {
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
