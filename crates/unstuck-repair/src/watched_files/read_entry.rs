//! Reads single files and directories below a handle.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

use crate::beneath::{self, DirOpenError};

/// Maximum file size to read.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// The contents of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathContents {
    /// The path does not exist.
    Absent,
    /// A file with its contents.
    File(Vec<u8>),
    /// A link with its target.
    Link(PathBuf),
    /// A directory.
    Directory,
    /// An unreadable entry with the reason.
    Unreadable(String),
}

/// Reads a path below a directory.
pub(super) fn read_path(root: BorrowedFd<'_>, path: &Path) -> PathContents {
    let Some(name) = path.file_name() else {
        return PathContents::Directory;
    };
    let parent = match open_parent_dir(root, path.parent().unwrap_or(Path::new(""))) {
        Ok(parent) => parent,
        Err(DirOpenError::Missing | DirOpenError::NotADirectory) => return PathContents::Absent,
        Err(problem) => return PathContents::Unreadable(format!("the directory {problem}")),
    };
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match openat(&parent, name, flags, Mode::empty()) {
        Ok(handle) => read_handle(handle),
        Err(Errno::NOENT | Errno::NOTDIR) => PathContents::Absent,
        Err(Errno::LOOP | Errno::MLINK) => match readlinkat(&parent, name, Vec::new()) {
            Ok(target) => PathContents::Link(OsString::from_vec(target.into_bytes()).into()),
            Err(error) => unreadable(error),
        },
        Err(error) => unreadable(error),
    }
}

fn open_parent_dir(root: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, DirOpenError> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    beneath::open_dir(root, path).map(|(handle, _)| handle)
}

fn read_handle(handle: OwnedFd) -> PathContents {
    let stat = match fstat(&handle) {
        Ok(stat) => stat,
        Err(error) => return unreadable(error),
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return PathContents::Directory,
        _ => return PathContents::Unreadable("not a regular file".to_owned()),
    }
    let mut bytes = Vec::new();
    // One byte more than the limit shows that the file is too large.
    let read = File::from(handle)
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes);
    match read {
        Ok(_) if bytes.len() as u64 > MAX_FILE_BYTES => {
            PathContents::Unreadable("too large to check".to_owned())
        }
        Ok(_) => PathContents::File(bytes),
        Err(error) => PathContents::Unreadable(error.to_string()),
    }
}

fn unreadable(error: Errno) -> PathContents {
    PathContents::Unreadable(std::io::Error::from(error).to_string())
}

/// Lists a directory: names that are text, each with a flag for directories.
pub(super) fn list_dir(root: BorrowedFd<'_>, path: &Path) -> Vec<(String, bool)> {
    let Ok(handle) = open_parent_dir(root, path) else {
        return Vec::new();
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(open) = openat(&handle, ".", flags, Mode::empty()) else {
        return Vec::new();
    };
    let Ok(entries) = Dir::read_from(&open) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
        if let Some(name) = name.to_str().filter(|name| !matches!(*name, "." | "..")) {
            let is_folder = match entry.file_type() {
                FileType::Unknown => is_dir(open.as_fd(), name),
                kind => kind == FileType::Directory,
            };
            found.push((name.to_owned(), is_folder));
        }
    }
    found.sort();
    found
}

fn is_dir(parent: BorrowedFd<'_>, name: &str) -> bool {
    let stat = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

/// Returns a path below the root without `.` and `..`, or `None` if it leads out or is not text.
pub(super) fn join_below_root(base: &str, path: &Path) -> Option<String> {
    let mut parts: Vec<&str> = base.split('/').filter(|part| !part.is_empty()).collect();
    let text = std::str::from_utf8(path.as_os_str().as_bytes()).ok()?;
    if text.starts_with('/') {
        return None;
    }
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
