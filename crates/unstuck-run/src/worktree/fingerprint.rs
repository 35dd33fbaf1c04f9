//! Whether anything changed since the last look: two equal fingerprints mean that there was no progress.

use std::path::Path;

use unstuck_core::RunId;

use super::error::WorktreeError;
use super::snapshots::Snapshots;
use super::survey;

/// A text that is another one if a file or HEAD changed; an error that can be shown to people if nobody can tell.
///
/// In a repository it is exact. Elsewhere the files are looked at, without those that tools make; folders with more
/// than 20 000 files, or that take longer than 200 ms, have no fingerprint. `state` is as in [`Snapshots::open`].
pub fn fingerprint(project: &Path, state: &Path) -> Result<String, WorktreeError> {
    // Nothing is kept, so the name of the run does not matter.
    match Snapshots::open(project, &RunId::new("none"), state) {
        Ok(snapshots) => {
            let now = snapshots.now()?;
            Ok(format!("{}@{}", now.tree, now.head.unwrap_or_default()))
        }
        Err(
            WorktreeError::NoGit
            | WorktreeError::NoRepository { .. }
            | WorktreeError::Distrusted { .. },
        ) => survey::survey(project),
        Err(error) => Err(error),
    }
}
