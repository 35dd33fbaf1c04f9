//! Errors of storing trust decisions.

use std::path::PathBuf;

/// An error storing or removing a trust decision.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The project cannot be opened.
    #[error("cannot open the project {}", path.display())]
    Project {
        /// Path of the project.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The state directory is writable by others.
    #[error("cannot store trust in {}: other users can write to it", path.display())]
    NotPrivate {
        /// State directory.
        path: PathBuf,
    },
    /// The record cannot be written or removed.
    #[error("cannot write to {}", path.display())]
    Write {
        /// File or directory.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
}
