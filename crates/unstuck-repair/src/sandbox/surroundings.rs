//! What lies around a project on this machine, for the user that will run the command.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User};

use super::lists::Lists;
use super::wire::{RunAs, Surroundings};

/// The user that a command has to run as: whom the project belongs to, where we are root and it is not.
pub fn user_of(root: &Path) -> Option<RunAs> {
    let metadata = std::fs::metadata(root).ok()?;
    let (uid, gid) = (metadata.uid(), metadata.gid());
    (rustix::process::geteuid().is_root() && uid != 0).then_some(RunAs { uid, gid })
}

/// What lies around a project, read from the environment that the command will get.
pub fn surroundings(
    environment: &[(OsString, OsString)],
    scratch: &Path,
    user: Option<RunAs>,
) -> Surroundings {
    let variable = |name: &str| {
        let mut pairs = environment.iter();
        let (_, value) = pairs.find(|(known, _)| known == name)?;
        Some(PathBuf::from(value))
    };
    let home = variable("HOME").filter(|home| is_usable(home, user));
    let home = home.and_then(|home| home.canonicalize().ok());
    let known = known_home(user);
    let homes: Vec<_> = home.iter().cloned().chain(known).collect();
    let lists = Lists::built_in();
    let search = variable("PATH").unwrap_or_default();
    Surroundings {
        caches: existing(lists.caches(home.as_deref(), variable)),
        secrets: lists.secrets(&homes, variable),
        visible: existing(folders(search.as_os_str())),
        scratch: scratch.to_owned(),
        home,
    }
}

/// Whether a home folder is there and belongs to whoever needs it.
fn is_usable(home: &Path, user: Option<RunAs>) -> bool {
    let usable = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    home.is_dir()
        && home.parent().is_some()
        && match user {
            Some(user) => std::fs::metadata(home).is_ok_and(|home| home.uid() == user.uid),
            None => rustix::fs::access(home, usable).is_ok(),
        }
}

/// The home that the system knows for the user, whatever the environment says.
fn known_home(user: Option<RunAs>) -> Option<PathBuf> {
    let uid = user.map_or_else(Uid::effective, |user| Uid::from_raw(user.uid));
    let known = User::from_uid(uid).ok().flatten()?;
    known.dir.canonicalize().ok()
}

/// Only what is there can be seen.
fn existing(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.into_iter().filter(|path| path.exists()).collect()
}

fn folders(search: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(search).collect()
}
