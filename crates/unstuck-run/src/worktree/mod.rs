//! What changed in the work tree: snapshots outside all branches, what lies between two of them, and the way back.
//!
//! [`Snapshots`] needs a git repository; it never touches HEAD, branches, stash, the user's index or ignored files.
//! [`fingerprint()`] tells whether anything changed, also without git. [`undoing()`] finds roles that undo each other.
//! All of it blocks for some milliseconds, so async callers put it on a thread for that.

mod difference;
mod error;
mod fingerprint;
mod git;
mod head;
mod listing;
mod own;
mod parent_death;
mod paths;
mod program;
mod record;
mod repository;
mod restore;
mod snapshot;
mod snapshots;
mod survey;
mod tree;
mod undoing;

pub use difference::{Change, ChangedFile, Reader};
pub use error::WorktreeError;
pub use fingerprint::fingerprint;
pub use head::{Head, committed};
pub use restore::{Commit, Kept, Restored};
pub use snapshot::{LeftOut, LeftOutBecause, Snapshot};
pub use snapshots::Snapshots;
pub use undoing::{Step, Undoing, undoing};
