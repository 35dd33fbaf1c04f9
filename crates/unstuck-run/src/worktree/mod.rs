//! What changed in the work tree: snapshots outside all branches, what lies between two of them, and the way back.
//!
//! [`SnapshotStore`] needs a git repository; it never touches HEAD, branches, stash, the user's index or ignored files.
//! [`fingerprint()`] tells whether anything changed, also without git. [`find_undo_cycle()`] finds roles that undo each other.
//! All of it blocks for some milliseconds, so async callers put it on a thread for that.

mod error;
mod file_index;
mod fingerprint;
mod git_command;
mod git_paths;
mod git_program;
mod head_tree;
mod ignored;
mod listing;
mod parent_death;
mod repository;
mod restore;
mod scan;
mod snapshot;
mod snapshot_store;
mod tree_builder;
mod tree_diff;
mod undo_cycle;

pub use error::WorktreeError;
pub use fingerprint::fingerprint;
pub use head_tree::{HeadTree, open_committed_files};
pub use restore::{CommitSummary, RestoreReport, UnrestoredFile};
pub use snapshot::{ExcludedFile, ExclusionReason, Snapshot};
pub use snapshot_store::SnapshotStore;
pub use tree_diff::{ChangedFile, DiffAudience, FileChange};
pub use undo_cycle::{TreeStep, UndoCycle, find_undo_cycle};
