//! Opens, lists and inspects entries below directory handles, name by name and never through a link.

#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::fd::{AsFd, OwnedFd};

#[cfg(target_os = "linux")]
use rustix::fs::CWD;
#[cfg(not(target_os = "linux"))]
use rustix::fs::RawMode;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, chmodat, openat, statat};
use rustix::io::{Errno, Result};

use super::tree_path::TreePath;

const DIR_FLAGS: OFlags = OFlags::DIRECTORY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens a subdirectory; a link to a directory is refused.
pub(crate) fn open_dir(parent: impl AsFd, name: &[u8]) -> Result<OwnedFd> {
    openat(parent, name, DIR_FLAGS, Mode::empty())
}

/// Opens a directory below another one.
pub(super) fn open_dir_at(root: impl AsFd, path: &TreePath) -> Result<OwnedFd> {
    let mut at = open_dir(root, b".")?;
    for part in path.parts() {
        at = open_dir(&at, part)?;
    }
    Ok(at)
}

/// Opens a file for reading; refuses links, and pipes that would block.
pub(crate) fn open_file(parent: impl AsFd, name: &[u8]) -> Result<std::fs::File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(parent, name, flags, Mode::empty())?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
    match kind {
        FileType::RegularFile => Ok(file.into()),
        _ => Err(Errno::INVAL),
    }
}

/// Returns the metadata of a name without following a link, or `None` if it does not exist.
pub(crate) fn stat_entry(parent: impl AsFd, name: &[u8]) -> Result<Option<Stat>> {
    match statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(data) => Ok(Some(data)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the names in a directory, sorted.
pub(crate) fn list_names(folder: impl AsFd) -> Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.to_vec());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Sets the mode of a file or directory, even of an unreadable one; a link is refused.
#[cfg(target_os = "linux")]
pub(crate) fn set_mode(parent: impl AsFd, name: &[u8], mode: u32) -> Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = openat(parent, name, flags, Mode::empty())?;
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&held)?.st_mode);
    if kind == FileType::Symlink {
        return Err(Errno::LOOP);
    }
    // The handle is not reopened by name, so the file cannot be exchanged.
    let held = format!("/proc/self/fd/{}", held.as_raw_fd());
    chmodat(CWD, held, Mode::from_raw_mode(mode), AtFlags::empty())
}

/// Sets the mode of a file or directory; a link is refused.
#[cfg(not(target_os = "linux"))]
pub(crate) fn set_mode(parent: impl AsFd, name: &[u8], mode: u32) -> Result<()> {
    let mode = RawMode::try_from(mode).map_err(|_| Errno::INVAL)?;
    chmodat(
        parent,
        name,
        Mode::from_raw_mode(mode),
        AtFlags::SYMLINK_NOFOLLOW,
    )
}
