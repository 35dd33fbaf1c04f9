//! Changes in the work tree: snapshots outside of all branches, their differences, and their restoration.
//!
//! [`SnapshotStore`] needs a git repository; it never changes HEAD, branches, stash, the user's index or ignored files.
//! [`fingerprint()`] detects changes, also without git. [`find_undo_cycle()`] finds roles that undo each other's work.
//! All of these functions block for some milliseconds, so async callers run them on a blocking thread.

mod committed_tree;
mod die_with_parent;
mod error;
mod file_index;
mod fingerprint;
mod fingerprint_without_git;
mod git_command;
mod listing;
mod own_files;
mod path_quoting;
mod repository;
mod restore;
mod snapshot;
mod snapshot_store;
mod tree_builder;
mod tree_diff;
mod undo_cycle_detection;

pub use committed_tree::{CommittedTree, open_committed_files};
pub use error::WorktreeError;
pub use fingerprint::fingerprint;
pub use restore::{CommitSummary, RestoreReport, UnrestoredFile};
pub use snapshot::{Snapshot, SnapshotExcludedFile, SnapshotExclusionReason};
pub use snapshot_store::SnapshotStore;
pub use tree_diff::{ChangedFile, DiffAudience, FileChangeKind};
pub use undo_cycle_detection::{RoleTreeChange, RoleUndoCycle, find_undo_cycle};
