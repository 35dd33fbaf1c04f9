//! The work tree before and after a repair, so that what it changed can be undone.

use std::path::Path;

use unstuck_core::RunId;

use crate::worktree::Snapshots;

/// When a snapshot is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::drive) enum Moment {
    Before,
    After,
}

/// What the snapshot before a repair is called.
pub fn label_before(repair: &str) -> String {
    label(repair, Moment::Before)
}

fn label(repair: &str, moment: Moment) -> String {
    match moment {
        Moment::Before => format!("repair-{repair}-before"),
        Moment::After => format!("repair-{repair}-after"),
    }
}

/// Keeps the work tree as it is at this moment; nothing where the project is no git repository.
pub(in crate::drive) async fn keep(
    project: &Path,
    state: &Path,
    run: &RunId,
    repair: &str,
    moment: Moment,
) -> Option<String> {
    let (project, state) = (project.to_owned(), state.to_owned());
    let (run, label) = (run.clone(), label(repair, moment));
    let taken = tokio::task::spawn_blocking(move || {
        let snapshots = Snapshots::open(&project, &run, &state).ok()?;
        snapshots.take(&label).ok()
    });
    Some(taken.await.ok()??.tree)
}
