//! A store in another place, for a command that must not wait until the usual store can be written.
//!
//! There is one for each usual store, so that a machine whose home can never be written has a history all the same.

use std::fs::{self, DirBuilder};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::Result;
use unstuck_core::RunId;
use unstuck_run::drive::Reporter;
use unstuck_store::{Append, Location, Options, RunFilter, Store, StoreError};

use crate::environment;

/// A store whose runs go to the usual store when that can be written again.
#[derive(Debug)]
pub(super) struct SubstituteStore {
    folder: PathBuf,
    location: Location,
    usual: Location,
}

impl SubstituteStore {
    /// Makes one, in memory if there is such a place, and warns; the error of the usual store if nowhere is room.
    pub(super) fn make(
        usual: &Location,
        error: StoreError,
        reporter: &mut dyn Reporter,
    ) -> Result<Self> {
        let name = folder_name(usual);
        let mut folders = places().map(|place| place.join(&name));
        let Some(folder) = folders.find(|folder| make_private(folder).is_ok()) else {
            return Err(crate::store::explained(error));
        };
        let location = Location::file(folder.join("unstuck.db"));
        reporter.warn(&format!(
            "{error}: the command is run all the same, and recorded in {location} for now; nothing is repaired and no other model \
             used meanwhile; --store FILE or UNSTUCK_STORE names another place"
        ));
        Ok(Self {
            folder,
            location,
            usual: usual.clone(),
        })
    }

    /// Where it is.
    pub(super) fn location(&self) -> &Location {
        &self.location
    }

    /// Writes what happened into the usual store, if that can be written by now, and tells where it is.
    pub(super) fn hand_over(self, run: &RunId, reporter: &mut dyn Reporter) {
        let copied = crate::runtime::block_on(self.copy(run));
        match copied {
            Ok(is_used) => {
                reporter.warn(&format!(
                    "the store can be written again: run {} is recorded",
                    run.short()
                ));
                if !is_used {
                    // What is left of it is in memory or in a temporary folder.
                    let _ = fs::remove_dir_all(&self.folder);
                }
            }
            Err(error) => reporter.warn(&format!(
                "the store still cannot be written ({error:#}); see unstuck show {} --store {}",
                run.short(),
                self.location
            )),
        }
    }

    /// Copies a run into the usual store, and tells whether this one is still needed for others.
    async fn copy(&self, run: &RunId) -> Result<bool> {
        let from = Store::open(&self.location, Options::default()).await?;
        let events = from.load(run).await?;
        let is_used = from.runs(&RunFilter::default()).await?.len() > 1;
        from.close().await?;
        let to = Store::open(&self.usual, Options::default()).await?;
        for moment in events.chunk_by(|one, next| one.at == next.at) {
            if let Some(first) = moment.first() {
                let events = moment.iter().map(|recorded| recorded.event.clone());
                to.append(Append::new(run.clone(), first.at, events))
                    .await?;
            }
        }
        to.close().await?;
        Ok(is_used)
    }
}

/// Places that are rarely on the same disk as the usual store.
fn places() -> impl Iterator<Item = PathBuf> {
    let runtime = environment::variable("XDG_RUNTIME_DIR").map(PathBuf::from);
    let places = [PathBuf::from("/dev/shm"), std::env::temp_dir()];
    runtime.into_iter().chain(places)
}

/// The name of its folder: one for each person and usual store.
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
            let there = fs::symlink_metadata(folder)?;
            let is_ours = there.uid() == rustix::process::geteuid().as_raw();
            let is_private = there.is_dir() && there.mode() & 0o077 == 0;
            if is_ours && is_private {
                Ok(())
            } else {
                Err(error)
            }
        }
        made => made,
    }
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
