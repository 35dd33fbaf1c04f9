//! What lies around a project on this machine, for the user that will run the command.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::lists::Lists;
use super::wire::{RunAs, Surroundings};

/// The user that a command has to run as: whom the project belongs to, where we are root and it is not.
pub fn user_of(root: &Path) -> Option<RunAs> {
    let metadata = std::fs::metadata(root).ok()?;
    let (uid, gid) = (metadata.uid(), metadata.gid());
    (rustix::process::geteuid().is_root() && uid != 0).then_some(RunAs { uid, gid })
}

/// What lies around a project, read from the environment that the command will get.
pub fn surroundings(environment: &[(OsString, OsString)], scratch: &Path) -> Surroundings {
    let variable = |name: &str| {
        let mut pairs = environment.iter();
        let (_, value) = pairs.find(|(known, _)| known == name)?;
        Some(PathBuf::from(value))
    };
    let home = variable("HOME").filter(|home| home.is_dir());
    let home = home.and_then(|home| home.canonicalize().ok());
    let lists = Lists::built_in();
    let search = variable("PATH").unwrap_or_default();
    Surroundings {
        caches: existing(lists.caches(home.as_deref(), variable)),
        secrets: lists.secrets(home.as_deref()),
        visible: existing(folders(search.as_os_str())),
        scratch: scratch.to_owned(),
        home,
    }
}

/// Only what is there can be seen.
fn existing(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.into_iter().filter(|path| path.exists()).collect()
}

fn folders(search: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(search).collect()
}
