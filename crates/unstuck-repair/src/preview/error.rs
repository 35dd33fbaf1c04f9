//! Why there is no preview, or why it was not applied.

use std::io;
use std::path::PathBuf;

/// Why a preview could not be made or found.
#[derive(Debug, thiserror::Error)]
pub enum PreviewError {
    /// The folder of the project cannot be opened.
    #[error("cannot open the project {}", path.display())]
    NoProject {
        /// Where it should be.
        path: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// The state folder lies in the project, so a preview would show itself.
    #[error("unstuck keeps its state inside the project, in {}", state.display())]
    StateInsideProject {
        /// The state folder.
        state: PathBuf,
    },
    /// A part of the project is another file system, which an overlay does not show.
    #[error("{} is a mount of its own, and a preview cannot look into it", path.display())]
    Mounted {
        /// Where it is mounted.
        path: PathBuf,
    },
    /// What the command left cannot be shown as a whole.
    #[error("what the command left is too much for a preview: {0}")]
    TooMuch(String),
    /// Something that no command in a sandbox can make, or that we do not know.
    #[error("{path} is something that a preview does not understand ({what})")]
    UnsupportedEntry {
        /// Its path, fit to be shown.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// Something in the project or in what the command left cannot be read.
    #[error("cannot read {path}")]
    Unreadable {
        /// Its path, fit to be shown.
        path: String,
        /// What is wrong with it.
        source: io::Error,
    },
    /// The place for previews cannot be used.
    #[error("cannot keep a preview in {}", path.display())]
    Storage {
        /// Where it should be.
        path: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// There is no preview of that name.
    #[error("there is no preview {id}")]
    NotFound {
        /// What was asked for.
        id: String,
    },
    /// Several previews begin with these letters.
    #[error("{id} could be any of {}", several.join(", "))]
    Ambiguous {
        /// What was asked for.
        id: String,
        /// The ids of those that fit.
        several: Vec<String>,
    },
    /// A preview that is not as it was written.
    #[error("the preview {id} is damaged")]
    Damaged {
        /// Its id.
        id: String,
    },
    /// A preview that somebody else is working on.
    #[error("the preview {id} is being made or applied at this moment")]
    Busy {
        /// Its id.
        id: String,
    },
}

/// Why a preview was not applied. The project is as it was, unless [`ApplyError::PartiallyApplied`] says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The project or the preview is not what was shown.
    #[error("changed since the preview: {}", paths.join(", "))]
    Changed {
        /// What differs, fit to be shown; the first few.
        paths: Vec<String>,
    },
    /// The project changed while the command ran, so what was shown may be half of each.
    #[error("changed while the preview was made: {}", paths.join(", "))]
    ChangedDuringRun {
        /// What changed, fit to be shown; the first few.
        paths: Vec<String>,
    },
    /// There is another folder at the path of the project.
    #[error("{} is not the folder that the preview was made of", path.display())]
    ProjectReplaced {
        /// The path of the project.
        path: PathBuf,
    },
    /// The project is being repaired, or another preview of it applied.
    #[error("the project is being repaired at this moment")]
    Busy,
    /// It could not be put in place.
    #[error("cannot put {path} in place")]
    Failed {
        /// Its path, fit to be shown.
        path: String,
        /// What is wrong.
        source: io::Error,
    },
    /// It could neither be finished nor undone.
    #[error("only a part could be put in place: {}", left.join(", "))]
    PartiallyApplied {
        /// What is left to look at, fit to be shown.
        left: Vec<String>,
    },
    /// The preview could not be read again.
    #[error(transparent)]
    Preview(#[from] PreviewError),
}
