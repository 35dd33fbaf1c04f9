//! Why something could not be remembered or forgotten.

use std::path::PathBuf;

/// Why something could not be remembered or forgotten.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The project cannot be looked at.
    #[error("cannot open the project {}", path.display())]
    Project {
        /// Its path.
        path: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
    /// The folder is not only its owner's.
    #[error("others than you can write to {}, so nothing that is kept there can be trusted", path.display())]
    NotPrivate {
        /// The folder.
        path: PathBuf,
    },
    /// The record cannot be written or removed.
    #[error("cannot write to {}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
}
