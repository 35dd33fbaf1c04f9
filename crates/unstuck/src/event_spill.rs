//! Events that the store could not take because its disk was full: kept elsewhere, and written when there is space
//! again.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state directory, which agents cannot access"
)]

use std::fs::{self, DirBuilder};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use unstuck_core::event::EventRecord;
use unstuck_core::{Event, RunId};
use unstuck_run::run_dir;
use unstuck_store::{RunEventBatch, RunFilter, Store, StoreError, StoreLocation, StoreOptions};

use crate::environment_variables;
use crate::run_supervision::state_dir;

/// File name suffix of spilled events.
const SPILL_SUFFIX: &str = ".events.jsonl";
/// File name of a substitute store.
pub(crate) const SUBSTITUTE_NAME: &str = "unstuck.db";

/// Saves events of a run that the store could not take, in the first location with space; returns the location.
pub(crate) fn spill(
    store: &StoreLocation,
    run: &RunId,
    events: &[EventRecord],
) -> io::Result<PathBuf> {
    let mut text = Vec::new();
    for recorded in events {
        serde_json::to_writer(&mut text, recorded)?;
        text.push(b'\n');
    }
    let mut last = io::Error::from(io::ErrorKind::StorageFull);
    for folder in spill_dirs(store) {
        let kept = ensure_private_dir(&folder).and_then(|()| {
            let path = folder.join(format!("{run}{SPILL_SUFFIX}"));
            let written = fs::write(&path, &text);
            if written.is_err() {
                let _ = fs::remove_file(&path);
            }
            written.map(|()| path)
        });
        match kept {
            Ok(path) => return Ok(path),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Writes spilled events to a store; returns the runs whose events are in it now.
pub(crate) async fn recover(store: &Store, location: &StoreLocation) -> Vec<RunId> {
    let mut recorded = Vec::new();
    for folder in spill_dirs(location) {
        if is_private_dir(&folder) {
            recorded.extend(recover_from(store, location, &folder).await);
        }
    }
    recorded
}

async fn recover_from(store: &Store, location: &StoreLocation, folder: &Path) -> Vec<RunId> {
    let mut recorded = Vec::new();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let path = entry.path();
        if let Some(run) = name.strip_suffix(SPILL_SUFFIX) {
            let run = RunId::new(run);
            if append_file(store, &run, &path).await.is_ok() {
                let _ = fs::remove_file(&path);
                recorded.push(run);
            }
        } else if name == SUBSTITUTE_NAME && path != location.path() {
            recorded.extend(
                merge_substitute(store, location, &path)
                    .await
                    .unwrap_or_default(),
            );
        }
    }
    // Only an empty directory is removed.
    let _ = fs::remove_dir(folder);
    recorded
}

async fn append_file(store: &Store, run: &RunId, path: &Path) -> Result<(), StoreError> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().map(serde_json::from_str::<EventRecord>);
    let events: Vec<EventRecord> = lines.flatten().collect();
    let known = store.load(run).await?;
    let newest = known.last().map(|one| one.at);
    let Some(first) = events.first().filter(|_| newest.is_some()) else {
        return Ok(());
    };
    // The run was resumed or ended since: the spilled end is outdated.
    let is_later = |one: &EventRecord| {
        let ends = matches!(one.event, Event::RunResumed(_) | Event::RunFinished(_));
        ends && one.at >= first.at
    };
    if known.iter().any(is_later) {
        return Ok(());
    }
    append(store, run, &events).await
}

/// Appends events of a run, grouped by timestamp.
async fn append(store: &Store, run: &RunId, events: &[EventRecord]) -> Result<(), StoreError> {
    for moment in events.chunk_by(|one, next| one.at == next.at) {
        if let Some(first) = moment.first() {
            let events = moment.iter().map(|recorded| recorded.event.clone());
            let append = RunEventBatch::new(run.clone(), first.at, events);
            store.append(append).await?;
        }
    }
    Ok(())
}

/// Copies the runs of a substitute store without active runs, then removes it.
async fn merge_substitute(
    store: &Store,
    usual: &StoreLocation,
    path: &Path,
) -> Result<Vec<RunId>, StoreError> {
    let location = StoreLocation::file(path.to_owned());
    let from = Store::open(&location, StoreOptions::default()).await?;
    let runs = from.runs(&RunFilter::default()).await?;
    let is_under_way = runs.iter().any(|run| run.finished.is_none());
    let mut copied = Vec::new();
    for run in &runs {
        if !is_under_way && store.load(&run.id).await?.is_empty() {
            append(store, &run.id, &from.load(&run.id).await?).await?;
            let (own, usual) = (state_dir(&location), state_dir(usual));
            // Without its files, a run can still be shown and resumed.
            let _ = run_dir::copy_run_files(&own, &usual, &run.id);
            copied.push(run.id.clone());
        }
    }
    from.close().await?;
    if !is_under_way {
        remove_store(path);
    }
    Ok(copied)
}

/// Removes a substitute store with its files.
fn remove_store(path: &Path) {
    for end in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{end}", path.display()));
    }
    let _ = fs::remove_dir_all(path.with_extension("d"));
}

/// Returns the directories that may hold spilled data of a store.
fn spill_dirs(store: &StoreLocation) -> impl Iterator<Item = PathBuf> + use<> {
    let name = dir_name(store);
    let beside = store.path().with_extension("d").join("unrecorded");
    std::iter::once(beside).chain(candidate_dirs().map(move |place| place.join(&name)))
}

/// Returns the directory of a substitute store, if there is a location for it.
pub(crate) fn substitute_dir(store: &StoreLocation) -> Option<PathBuf> {
    let name = dir_name(store);
    let mut folders = candidate_dirs().map(|place| place.join(&name));
    folders.find(|folder| ensure_private_dir(folder).is_ok())
}

/// Locations that are rarely on the same disk as the usual store.
fn candidate_dirs() -> impl Iterator<Item = PathBuf> {
    let runtime = environment_variables::variable("XDG_RUNTIME_DIR").map(PathBuf::from);
    let places = [PathBuf::from("/dev/shm"), std::env::temp_dir()];
    runtime.into_iter().chain(places)
}

/// Returns the directory name, unique per user and usual store.
fn dir_name(usual: &StoreLocation) -> String {
    let mut hasher = DefaultHasher::new();
    usual.path().hash(&mut hasher);
    let user = rustix::process::geteuid().as_raw();
    format!("unstuck-{user}-{:016x}", hasher.finish())
}

/// Creates a private directory, or accepts an existing one if it is private.
fn ensure_private_dir(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if is_private_dir(folder) {
                Ok(())
            } else {
                Err(error)
            }
        }
        made => made,
    }
}

/// True if the directory exists, is ours, and is not accessible to others.
fn is_private_dir(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|there| {
        let is_ours = there.uid() == rustix::process::geteuid().as_raw();
        is_ours && there.is_dir() && there.mode() & 0o077 == 0
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn directory_accessible_to_others_is_not_used() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("store");
        ensure_private_dir(&folder).unwrap();
        ensure_private_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(ensure_private_dir(&folder).is_err());
        let link = place.path().join("link");
        std::os::unix::fs::symlink(place.path(), &link).unwrap();
        assert!(ensure_private_dir(&link).is_err());
    }
}
