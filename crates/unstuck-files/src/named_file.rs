//! Files that a configuration or a person names by any path, links included: regular files only, and never without a bound.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::error::{FileError, FileProblem};
use crate::safe_open::require_regular;

/// Opens a regular file to be read. It never waits: a FIFO, a device and a socket are refused.
pub fn open_named(path: &Path) -> Result<File, FileError> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = openat(CWD, path, flags, Mode::empty());
    let file = opened.map_err(|error| FileError::new(path, error))?;
    let file = File::from(file);
    require_regular(&file).map_err(|problem| FileError::new(path, problem))?;
    Ok(file)
}

/// Reads a regular file of at most `limit` bytes.
pub fn read_named(path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    let mut file = open_named(path)?;
    read_bounded(&mut file, limit).map_err(|problem| FileError::new(path, problem))
}

/// Reads a regular file of text of at most `limit` bytes.
pub fn read_named_text(path: &Path, limit: u64) -> Result<String, FileError> {
    let bytes = read_named(path, limit)?;
    String::from_utf8(bytes).map_err(|_| FileError::new(path, FileProblem::NotText))
}

/// Reads all of an open file, if it has no more than `limit` bytes.
pub(crate) fn read_bounded(file: &mut File, limit: u64) -> Result<Vec<u8>, FileProblem> {
    // A sparse file of terabytes is refused by its size; one that grows while it is read, by what is read.
    let size = file.metadata()?.len();
    if size > limit {
        return Err(FileProblem::TooLarge(limit));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(FileProblem::TooLarge(limit));
    }
    Ok(bytes)
}
