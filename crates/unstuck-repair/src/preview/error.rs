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
    #[error("unstuck keeps its state inside the project, in {}", state.display())]
    StateInsideProject {
        /// State directory.
        state: PathBuf,
    },
    /// Another file system is mounted inside the project, which an overlay does not include.
    #[error("{} is a mount of its own, and a preview cannot look into it", path.display())]
    Mounted {
        /// Mount point.
        path: PathBuf,
    },
    /// The result of the command exceeds the limits.
    #[error("what the command left is too much for a preview: {0}")]
    TooMuch(String),
    /// An entry of unknown type, or of one that no command in a sandbox can create.
    #[error("{path} is something that a preview does not understand ({what})")]
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
    #[error("cannot keep a preview in {}", path.display())]
    Storage {
        /// Path of the directory.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// No preview has this id.
    #[error("there is no preview {id}")]
    NotFound {
        /// Requested id.
        id: String,
    },
    /// Several previews begin with these letters.
    #[error("{id} could be any of {}", several.join(", "))]
    Ambiguous {
        /// Requested id.
        id: String,
        /// Matching ids.
        several: Vec<String>,
    },
    /// The preview was modified or damaged.
    #[error("the preview {id} is damaged")]
    Damaged {
        /// Id of the preview.
        id: String,
    },
    /// The preview is locked by another process.
    #[error("the preview {id} is being made or applied at this moment")]
    Busy {
        /// Id of the preview.
        id: String,
    },
}

/// An error applying a preview. The project is unchanged unless this is [`ApplyError::PartiallyApplied`].
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The project or the preview differs from what was shown.
    #[error("changed since the preview: {}", paths.join(", "))]
    Changed {
        /// The first differing paths, sanitized for display.
        paths: Vec<String>,
    },
    /// The project changed while the command ran, so the preview may mix both states.
    #[error("changed while the preview was made: {}", paths.join(", "))]
    ChangedDuringRun {
        /// The first changed paths, sanitized for display.
        paths: Vec<String>,
    },
    /// Another directory is now at the path of the project.
    #[error("{} is not the folder that the preview was made of", path.display())]
    ProjectReplaced {
        /// Path of the project.
        path: PathBuf,
    },
    /// The project is being repaired, or another preview is being applied to it.
    #[error("the project is being repaired at this moment")]
    Busy,
    /// An entry could not be swapped in.
    #[error("cannot put {path} in place")]
    Failed {
        /// Path, sanitized for display.
        path: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The operation could neither be finished nor undone.
    #[error("only a part could be put in place: {}", left.join(", "))]
    PartiallyApplied {
        /// Paths to check, sanitized for display.
        left: Vec<String>,
    },
    /// The preview could not be read again.
    #[error(transparent)]
    Preview(#[from] PreviewError),
}
