//! Finds the user that runs a command, and the paths outside the project that are writable, visible or hidden for it.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User};
use unstuck_core::redact::Redactor;

use super::path_lists::SandboxPathLists;
use super::wire::{RunAs, SandboxHostPaths};

/// Returns the user to run a command as: the owner of the project if we are root and it is not.
///
/// Takes a handle: the owner could replace the path with a link to a directory of root for a moment.
pub fn run_as_user(root: impl AsFd) -> Option<RunAs> {
    let data = rustix::fs::fstat(root).ok()?;
    let (uid, gid) = (data.st_uid, data.st_gid);
    (rustix::process::geteuid().is_root() && uid != 0).then_some(RunAs { uid, gid })
}

/// Finds the paths around a project from the environment that the command will get.
pub fn host_paths(
    environment: &[(OsString, OsString)],
    scratch: &Path,
    user: Option<RunAs>,
) -> SandboxHostPaths {
    let variable = |name: &str| {
        let mut pairs = environment.iter();
        let (_, value) = pairs.find(|(known, _)| known == name)?;
        Some(PathBuf::from(value))
    };
    let home = variable("HOME").filter(|home| is_usable_home(home, user));
    let home = home.and_then(|home| home.canonicalize().ok());
    let known = system_home(user);
    let homes: Vec<_> = home.iter().cloned().chain(known).collect();
    let lists = SandboxPathLists::built_in();
    let search = variable("PATH").unwrap_or_default();
    let caches = lists.caches(home.as_deref(), variable);
    let private = caches.private.into_iter();
    let adding = caches.addable.into_iter();
    let needed = home
        .as_deref()
        .map(|home| needed_home_paths(home, search.as_os_str()));
    SandboxHostPaths {
        private_caches: private
            .filter(|(folder, _)| folder.is_dir())
            .map(|(_, path)| path)
            .collect(),
        addable_dirs: adding.filter(|(path, _)| path.is_dir()).collect(),
        needed_home_paths: needed.unwrap_or_default(),
        caches: existing_paths(caches.coverable),
        narrowed_caches: existing_paths(caches.narrowed),
        secrets: lists.secrets(&homes, variable),
        visible: existing_paths(search_dirs(search.as_os_str())),
        scratch: scratch.to_owned(),
        home,
    }
}

/// Returns the parts of a home directory that a command sees: program directories on the search path with their
/// dependencies, and settings without secrets.
fn needed_home_paths(home: &Path, search: &OsStr) -> Vec<PathBuf> {
    let lists = SandboxPathLists::built_in();
    let mut needed: Vec<_> = lists.needed().map(|path| home.join(path)).collect();
    let settings = lists.settings().map(|path| home.join(path));
    needed.extend(settings.filter(|path| !holds_secret(path)));
    for folder in search_dirs(search) {
        // `~/tools/jdk/bin` needs its siblings in `~/tools/jdk`; `~/bin` needs nothing else of the home directory.
        let is_programs = folder.ends_with("bin") || folder.ends_with("sbin");
        let around = folder.parent().filter(|_| is_programs);
        let around = around.filter(|around| around.starts_with(home) && *around != home);
        let around = around.filter(|around| !around.ends_with(".local"));
        needed.push(around.unwrap_or(&folder).to_owned());
    }
    needed.retain(|path| path.starts_with(home) && path != home);
    existing_paths(needed)
}

/// True if a settings file seems to hold a secret or cannot be read.
fn holds_secret(path: &Path) -> bool {
    const LARGEST: u64 = 256 * 1024;
    const WORDS: [&str; 7] = [
        "_auth", "token", "password", "passwd", "secret", "apikey", "api_key",
    ];
    // Agents can write the home directory, too: a FIFO must not block.
    let Ok(file) = unstuck_files::open_named(path) else {
        return true;
    };
    let mut text = String::new();
    if file.take(LARGEST).read_to_string(&mut text).is_err() {
        return true;
    }
    // `https://name:key@host/` is a secret as well.
    let has_key_in_address = text.split("://").skip(1).any(|rest| {
        let host = rest.split(['/', '"', ' ', '\n']).next().unwrap_or_default();
        host.contains('@')
    });
    let lower = text.to_lowercase();
    let names_one = lower.lines().any(|line| {
        WORDS.iter().any(|word| {
            let Some((_, rest)) = line.split_once(word) else {
                return false;
            };
            let value = rest
                .split_once(['=', ':', '>'])
                .map_or("", |(_, value)| value);
            let value = value.trim().trim_matches(['"', '\'']);
            // Neither a variable nor a closing element is a secret.
            !value.is_empty() && !value.starts_with(['$', '<'])
        })
    });
    has_key_in_address || names_one || Redactor::new([]).redact(&text) != text
}

/// True if a home directory exists and belongs to the user.
fn is_usable_home(home: &Path, user: Option<RunAs>) -> bool {
    let usable = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    home.is_dir()
        && home.parent().is_some()
        && match user {
            Some(user) => std::fs::metadata(home).is_ok_and(|home| home.uid() == user.uid),
            None => rustix::fs::access(home, usable).is_ok(),
        }
}

/// Returns the user's home in the system's user database, whatever the environment says.
fn system_home(user: Option<RunAs>) -> Option<PathBuf> {
    let uid = user.map_or_else(Uid::effective, |user| Uid::from_raw(user.uid));
    let known = User::from_uid(uid).ok().flatten()?;
    known.dir.canonicalize().ok()
}

/// Returns the paths that exist.
fn existing_paths(paths: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    paths.into_iter().filter(|path| path.exists()).collect()
}

fn search_dirs(search: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(search).collect()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes files")]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn settings_that_cannot_be_read_count_as_secret_and_a_fifo_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("plain"), "color = auto\n").unwrap();
        std::fs::write(path("secret"), "//host/:_authToken=abc\n").unwrap();
        mknodat(CWD, path("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert!(!holds_secret(&path("plain")));
        for name in ["secret", "fifo", "missing", "."] {
            assert!(holds_secret(&path(name)), "{name}");
        }
    }
}
