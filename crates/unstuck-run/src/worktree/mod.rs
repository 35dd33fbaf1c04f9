//! Changes in the work tree: snapshots outside of all branches, their differences, and their restoration.
//!
//! [`SnapshotStore`] needs a git repository; it never changes HEAD, branches, stash, the user's index or ignored files.
//! [`fingerprint()`] detects changes, also without git. [`find_undo_cycle()`] finds roles that undo each other's work.
//! All of these functions block for some milliseconds, so async callers run them on a blocking thread.

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
