//! Lists writes to the home directory, which was a private copy and is discarded.
//!
//! A tool installed there is gone afterwards, so the user must be able to see why the repair did not help.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType, Mode, OFlags};

use super::scratch_dir;
use super::wire::SandboxRequest;

/// Maximum number of listed paths.
const MAX_PATHS: usize = 20;
/// Maximum depth of listed paths.
const MAX_DEPTH: usize = 3;

/// The directory that receives writes to the home directory.
pub(super) struct DiscardedWrites {
    home: PathBuf,
    upper: OwnedFd,
}

/// Opens the directory before its path is mounted over.
pub(super) fn open_discarded_writes(order: &SandboxRequest) -> Option<DiscardedWrites> {
    let home = order.host.home.clone()?;
    let upper = order.host.scratch.join(scratch_dir::HOME_DIR);
    let upper = open_dir(rustix::fs::CWD, upper.as_os_str())?;
    Some(DiscardedWrites { home, upper })
}

impl DiscardedWrites {
    /// Returns some of the files and directories that were created.
    pub(super) fn list(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect_below(&self.upper, &self.home, 1, &mut found);
        found.sort();
        found
    }
}

fn collect_below(folder: &OwnedFd, path: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = Dir::read_from(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." || found.len() >= MAX_PATHS {
            continue;
        }
        let inner = match entry.file_type() {
            FileType::Directory if depth < MAX_DEPTH => open_dir(folder, name),
            _ => None,
        };
        match inner {
            Some(inner) => collect_below(&inner, &path.join(name), depth + 1, found),
            None => found.push(path.join(name)),
        }
    }
}

fn open_dir(folder: impl std::os::fd::AsFd, name: &OsStr) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::empty()).ok()
}
