//! Snapshots of the work tree before and after a repair, so that its changes can be undone.

use std::path::Path;

use unstuck_core::RunId;

use crate::worktree::SnapshotStore;

/// The time at which a snapshot is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::runner) enum SnapshotPhase {
    Before,
    After,
}

/// Returns the label of the snapshot before a repair.
pub fn before_repair_label(repair: &str) -> String {
    snapshot_label(repair, SnapshotPhase::Before)
}

fn snapshot_label(repair: &str, moment: SnapshotPhase) -> String {
    match moment {
        SnapshotPhase::Before => format!("repair-{repair}-before"),
        SnapshotPhase::After => format!("repair-{repair}-after"),
    }
}

/// Takes a snapshot of the work tree; does nothing if the project is not a git repository.
pub(in crate::runner) async fn take_snapshot(
    project: &Path,
    state: &Path,
    run: &RunId,
    repair: &str,
    moment: SnapshotPhase,
) -> Option<String> {
    let (project, state) = (project.to_owned(), state.to_owned());
    let (run, label) = (run.clone(), snapshot_label(repair, moment));
    let taken = tokio::task::spawn_blocking(move || {
        let snapshots = SnapshotStore::open(&project, &run, &state).ok()?;
        snapshots.create(&label).ok()
    });
    Some(taken.await.ok()??.tree)
}
