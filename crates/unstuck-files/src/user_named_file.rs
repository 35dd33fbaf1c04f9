//! Files named by a configuration or a user, links included: regular files only, always with a size limit.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::error::{FileError, FileErrorKind};
use crate::safe_open::require_regular;

/// Opens a regular file for reading. Never blocks: FIFOs, devices and sockets are refused.
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

/// Reads a regular text file of at most `limit` bytes.
pub fn read_named_text(path: &Path, limit: u64) -> Result<String, FileError> {
    let bytes = read_named(path, limit)?;
    String::from_utf8(bytes).map_err(|_| FileError::new(path, FileErrorKind::NotText))
}

/// Reads an open file completely if it has at most `limit` bytes.
pub(crate) fn read_bounded(file: &mut File, limit: u64) -> Result<Vec<u8>, FileErrorKind> {
    // The size check refuses a sparse file of terabytes; the bounded read catches a file that grows meanwhile.
    let size = file.metadata()?.len();
    if size > limit {
        return Err(FileErrorKind::TooLarge(limit));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(FileErrorKind::TooLarge(limit));
    }
    Ok(bytes)
}
