//! Detects changes since the last check: two equal fingerprints mean that there was no progress.

use std::path::Path;

use unstuck_core::RunId;

use super::error::WorktreeError;
use super::fingerprint_without_git;
use super::snapshot_store::SnapshotStore;

/// Returns a text that changes if a file or HEAD changes; an error for humans if that is unknown.
///
/// In a repository it is exact. Elsewhere the files are scanned, without those that tools generate; directories with
/// more than 20 000 files, or that take longer than 200 ms, have no fingerprint. `state` is as in
/// [`SnapshotStore::open`].
pub fn fingerprint(project: &Path, state: &Path) -> Result<String, WorktreeError> {
    // Nothing is stored, so the id of the run does not matter.
    match SnapshotStore::open(project, &RunId::new("none"), state) {
        Ok(snapshots) => {
            let now = snapshots.current()?;
            Ok(format!("{}@{}", now.tree, now.head.unwrap_or_default()))
        }
        Err(
            WorktreeError::GitNotFound
            | WorktreeError::NoRepository { .. }
            | WorktreeError::UnsafeOwner { .. },
        ) => fingerprint_without_git::scan_fingerprint(project),
        Err(error) => Err(error),
    }
}
