//! What changed in the work tree: snapshots outside all branches, what lies between two of them, and the way back.
//!
//! [`Snapshots`] needs a git repository; it never touches HEAD, branches, stash, the user's index or ignored files.
//! All of it blocks for some milliseconds, so async callers put it on a thread for that.

mod difference;
mod error;
mod git;
mod listing;
mod paths;
mod record;
mod repository;
mod restore;
mod snapshot;
mod snapshots;
mod tree;

pub use difference::{Change, ChangedFile, Colour};
pub use error::WorktreeError;
pub use restore::{Commit, Kept, Restored};
pub use snapshot::{LeftOut, LeftOutBecause, Snapshot};
pub use snapshots::Snapshots;
