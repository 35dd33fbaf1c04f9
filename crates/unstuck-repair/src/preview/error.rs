//! Errors of creating and applying previews.

use std::io;
use std::path::PathBuf;

/// An error creating or finding a preview.
#[derive(Debug, thiserror::Error)]
pub enum PreviewError {
    /// The project directory cannot be opened.
    #[error("cannot open the project {}", path.display())]
    NoProject {
        /// Path of the project.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The state directory is inside the project, so a preview would contain itself.
    #[error("the state directory {} is inside the project", state.display())]
    StateInsideProject {
        /// State directory.
        state: PathBuf,
    },
    /// Another file system is mounted inside the project, which an overlay does not include.
    #[error("{} is a mount point, which previews do not support", path.display())]
    Mounted {
        /// Mount point.
        path: PathBuf,
    },
    /// The result of the command exceeds the limits.
    #[error("the result is too large for a preview: {0}")]
    TooMuch(String),
    /// An entry of unknown type, or of one that no command in a sandbox can create.
    #[error("{path}: previews do not support {what}")]
    UnsupportedEntry {
        /// Path, sanitized for display.
        path: String,
        /// Type of the entry.
        what: &'static str,
    },
    /// An entry of the project or of the command's result is unreadable.
    #[error("cannot read {path}")]
    Unreadable {
        /// Path, sanitized for display.
        path: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The preview directory cannot be used.
    #[error("cannot store a preview in {}", path.display())]
    Storage {
        /// Path of the directory.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// No preview has this id.
    #[error("preview `{id}` not found")]
    NotFound {
        /// Requested id.
        id: String,
    },
    /// Several previews begin with these letters.
    #[error("`{id}` is ambiguous: {}", several.join(", "))]
    Ambiguous {
        /// Requested id.
        id: String,
        /// Matching ids.
        several: Vec<String>,
    },
    /// The preview was modified or damaged.
    #[error("preview `{id}` is damaged")]
    Damaged {
        /// Id of the preview.
        id: String,
    },
    /// The preview is locked by another process.
    #[error("preview `{id}` is being created or applied")]
    Busy {
        /// Id of the preview.
        id: String,
    },
}

/// An error applying a preview. The project is unchanged unless this is [`PreviewApplyError::PartiallyApplied`].
#[derive(Debug, thiserror::Error)]
pub enum PreviewApplyError {
    /// The project or the preview differs from what was shown.
    #[error("changed since the preview: {}", paths.join(", "))]
    Changed {
        /// The first differing paths, sanitized for display.
        paths: Vec<String>,
    },
    /// The project changed while the command ran, so the preview may mix both states.
    #[error("changed while the preview was being created: {}", paths.join(", "))]
    ChangedDuringRun {
        /// The first changed paths, sanitized for display.
        paths: Vec<String>,
    },
    /// Another directory is now at the path of the project.
    #[error("{} is not the directory that the preview was created from", path.display())]
    ProjectReplaced {
        /// Path of the project.
        path: PathBuf,
    },
    /// The project is being repaired, or another preview is being applied to it.
    #[error("a repair is running in this project")]
    Busy,
    /// An entry could not be swapped in.
    #[error("cannot replace {path}")]
    Failed {
        /// Path, sanitized for display.
        path: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The operation could neither be finished nor undone.
    #[error("only partially applied; check {}", left.join(", "))]
    PartiallyApplied {
        /// Paths to check, sanitized for display.
        left: Vec<String>,
    },
    /// The preview could not be read again.
    #[error(transparent)]
    Preview(#[from] PreviewError),
}
