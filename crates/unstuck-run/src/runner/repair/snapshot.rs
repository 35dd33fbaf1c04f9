//! The work tree before and after a repair, so that what it changed can be undone.

use std::path::Path;

use unstuck_core::RunId;

use crate::worktree::SnapshotStore;

/// When a snapshot is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::runner) enum SnapshotPhase {
    Before,
    After,
}

/// What the snapshot before a repair is called.
pub fn before_repair_label(repair: &str) -> String {
    snapshot_label(repair, SnapshotPhase::Before)
}

fn snapshot_label(repair: &str, moment: SnapshotPhase) -> String {
    match moment {
        SnapshotPhase::Before => format!("repair-{repair}-before"),
        SnapshotPhase::After => format!("repair-{repair}-after"),
    }
}

/// Keeps the work tree as it is at this moment; nothing where the project is no git repository.
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
