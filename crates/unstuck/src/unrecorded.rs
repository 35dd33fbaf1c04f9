//! What the store could not take because its disk was full when a run ended: kept elsewhere, and written when there is room.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state folder, out of the agents' reach"
)]

use std::fs::{self, DirBuilder};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use unstuck_core::event::Recorded;
use unstuck_core::{Event, RunId};
use unstuck_run::folder;
use unstuck_store::{Append, Location, Options, RunFilter, Store, StoreError};

use crate::environment;
use crate::supervise::state_folder;

/// The end of the name of a file that holds events.
const EVENTS: &str = ".events.jsonl";
/// The name of a store that stood in for the usual one.
pub(crate) const SUBSTITUTE: &str = "unstuck.db";

/// Keeps events of a run that the store could not take, in the first place where there is room; tells where.
pub(crate) fn keep(store: &Location, run: &RunId, events: &[Recorded]) -> io::Result<PathBuf> {
    let mut text = Vec::new();
    for recorded in events {
        serde_json::to_writer(&mut text, recorded)?;
        text.push(b'\n');
    }
    let mut last = io::Error::from(io::ErrorKind::StorageFull);
    for folder in folders(store) {
        let kept = make_private(&folder).and_then(|()| {
            let path = folder.join(format!("{run}{EVENTS}"));
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

/// Writes into a store what was kept elsewhere while it could not be written; gives the runs whose events are in it now.
pub(crate) async fn take_up(store: &Store, location: &Location) -> Vec<RunId> {
    let mut recorded = Vec::new();
    for folder in folders(location) {
        if is_private(&folder) {
            recorded.extend(take_up_from(store, location, &folder).await);
        }
    }
    recorded
}

async fn take_up_from(store: &Store, location: &Location, folder: &Path) -> Vec<RunId> {
    let mut recorded = Vec::new();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let path = entry.path();
        if let Some(run) = name.strip_suffix(EVENTS) {
            let run = RunId::new(run);
            if append_file(store, &run, &path).await.is_ok() {
                let _ = fs::remove_file(&path);
                recorded.push(run);
            }
        } else if name == SUBSTITUTE && path != location.path() {
            recorded.extend(take_over(store, location, &path).await.unwrap_or_default());
        }
    }
    // Only an empty one goes.
    let _ = fs::remove_dir(folder);
    recorded
}

async fn append_file(store: &Store, run: &RunId, path: &Path) -> Result<(), StoreError> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().map(serde_json::from_str::<Recorded>);
    let events: Vec<Recorded> = lines.flatten().collect();
    let known = store.load(run).await?;
    let newest = known.last().map(|one| one.at);
    let Some(first) = events.first().filter(|_| newest.is_some()) else {
        return Ok(());
    };
    // Somebody has resumed or ended it since: what is kept is not how it ended any more.
    let is_later = |one: &Recorded| {
        let ends = matches!(one.event, Event::RunResumed(_) | Event::RunFinished(_));
        ends && one.at >= first.at
    };
    if known.iter().any(is_later) {
        return Ok(());
    }
    append(store, run, &events).await
}

/// Appends events of a run, those of one moment together.
async fn append(store: &Store, run: &RunId, events: &[Recorded]) -> Result<(), StoreError> {
    for moment in events.chunk_by(|one, next| one.at == next.at) {
        if let Some(first) = moment.first() {
            let events = moment.iter().map(|recorded| recorded.event.clone());
            let append = Append::new(run.clone(), first.at, events);
            store.append(append).await?;
        }
    }
    Ok(())
}

/// Copies the runs of a store that stood in for this one and has no run under way, then removes it.
async fn take_over(store: &Store, usual: &Location, path: &Path) -> Result<Vec<RunId>, StoreError> {
    let location = Location::file(path.to_owned());
    let from = Store::open(&location, Options::default()).await?;
    let runs = from.runs(&RunFilter::default()).await?;
    let is_under_way = runs.iter().any(|run| run.finished.is_none());
    let mut copied = Vec::new();
    for run in &runs {
        if !is_under_way && store.load(&run.id).await?.is_empty() {
            append(store, &run.id, &from.load(&run.id).await?).await?;
            let (own, usual) = (state_folder(&location), state_folder(usual));
            // Without its files a run is shown all the same, and resumed.
            let _ = folder::copy_files(&own, &usual, &run.id);
            copied.push(run.id.clone());
        }
    }
    from.close().await?;
    if !is_under_way {
        remove_store(path);
    }
    Ok(copied)
}

/// Removes a store that stood in for another, with what belongs to it.
fn remove_store(path: &Path) {
    for end in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{end}", path.display()));
    }
    let _ = fs::remove_dir_all(path.with_extension("d"));
}

/// The folders in which something may be kept for a store.
fn folders(store: &Location) -> impl Iterator<Item = PathBuf> + use<> {
    let name = folder_name(store);
    let beside = store.path().with_extension("d").join("unrecorded");
    std::iter::once(beside).chain(places().map(move |place| place.join(&name)))
}

/// The folder of a store that stands in for this one: where there is a place for it.
pub(crate) fn substitute_folder(store: &Location) -> Option<PathBuf> {
    let name = folder_name(store);
    let mut folders = places().map(|place| place.join(&name));
    folders.find(|folder| make_private(folder).is_ok())
}

/// Places that are rarely on the same disk as the usual store.
fn places() -> impl Iterator<Item = PathBuf> {
    let runtime = environment::variable("XDG_RUNTIME_DIR").map(PathBuf::from);
    let places = [PathBuf::from("/dev/shm"), std::env::temp_dir()];
    runtime.into_iter().chain(places)
}

/// The name of such a folder: one for each person and usual store.
fn folder_name(usual: &Location) -> String {
    let mut hasher = DefaultHasher::new();
    usual.path().hash(&mut hasher);
    let user = rustix::process::geteuid().as_raw();
    format!("unstuck-{user}-{:016x}", hasher.finish())
}

/// Makes a folder that nobody else can look into, or takes the one that is there if it is such a folder.
fn make_private(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if is_private(folder) {
                Ok(())
            } else {
                Err(error)
            }
        }
        made => made,
    }
}

/// Whether a folder is there that is ours, and that nobody else can look into.
fn is_private(folder: &Path) -> bool {
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
    fn a_folder_that_others_can_look_into_is_not_used() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("store");
        make_private(&folder).unwrap();
        make_private(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(make_private(&folder).is_err());
        let link = place.path().join("link");
        std::os::unix::fs::symlink(place.path(), &link).unwrap();
        assert!(make_private(&link).is_err());
    }
}
