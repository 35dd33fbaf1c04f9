//! Reads a proposal once. Even if the file changes later, the bytes read are what is evaluated, shown and run.

use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use data_encoding::HEXLOWER;
use rustix::fs::{CWD, Mode, openat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use unstuck_core::command_policy::MAX_BYTES;

use crate::beneath;

/// Maximum number of bytes to read.
const MAX_PROPOSAL_BYTES: u64 = MAX_BYTES as u64;

/// The bytes of a proposal and their hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposalFile {
    /// Bytes of the proposal.
    pub bytes: Vec<u8>,
    /// SHA-256 in hexadecimal; an approval is bound to it.
    pub sha256: String,
}

/// An error reading a proposal.
#[derive(Debug, thiserror::Error)]
pub enum ProposalFileError {
    /// The file is a link, directory, pipe or device.
    #[error("recovery.json is not a regular file")]
    NotAFile,
    /// The file is too large.
    #[error("recovery.json is too large: {bytes} bytes, limit {MAX_BYTES}")]
    TooLarge {
        /// Size in bytes, as far as known.
        bytes: u64,
    },
    /// The file was modified while it was read.
    #[error("recovery.json changed while it was being read")]
    Changed,
    /// The file is unreadable.
    #[error("cannot read recovery.json: {0}")]
    Unreadable(#[source] std::io::Error),
}

impl ProposalFile {
    /// Creates a proposal from bytes without a file.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        let sha256 = HEXLOWER.encode(&Sha256::digest(&bytes));
        Self { bytes, sha256 }
    }

    /// Reads a file, or returns `None` if it does not exist. Links in the path of its directory are followed.
    pub fn read(path: &Path) -> Result<Option<Self>, ProposalFileError> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(ProposalFileError::NotAFile);
        };
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        match openat(CWD, folder, beneath::DIR_FLAGS, Mode::empty()) {
            Ok(folder) => Self::read_in(folder, Path::new(name)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(ProposalFileError::Unreadable(error.into())),
        }
    }

    /// Reads a file below an open directory, or returns `None` if it does not exist. No link is followed.
    pub fn read_in(folder: impl AsFd, path: &Path) -> Result<Option<Self>, ProposalFileError> {
        match beneath::open_file(folder.as_fd(), path) {
            Ok(mut handle) => read_once(&mut handle).map(|bytes| Some(Self::from_bytes(bytes))),
            Err(Errno::NOENT) => Ok(None),
            // A link in the path, a path that leads out, or a socket.
            Err(Errno::LOOP | Errno::XDEV | Errno::NXIO | Errno::ISDIR) => {
                Err(ProposalFileError::NotAFile)
            }
            Err(error) => Err(ProposalFileError::Unreadable(error.into())),
        }
    }
}

fn read_once(file: &mut File) -> Result<Vec<u8>, ProposalFileError> {
    let before = file.metadata().map_err(ProposalFileError::Unreadable)?;
    if !before.is_file() {
        return Err(ProposalFileError::NotAFile);
    }
    if before.len() > MAX_PROPOSAL_BYTES {
        return Err(ProposalFileError::TooLarge {
            bytes: before.len(),
        });
    }
    let bytes = read_all(file).map_err(ProposalFileError::Unreadable)?;
    let is_same = bytes.len() as u64 == before.len()
        && is_unchanged(file, &bytes, &before).map_err(ProposalFileError::Unreadable)?;
    if is_same {
        Ok(bytes)
    } else {
        Err(ProposalFileError::Changed)
    }
}

/// Reads one byte more than allowed, so that a growing file is noticed.
fn read_all(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_PROPOSAL_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// True if the file is unchanged; reads it once more, as its timestamps alone may be too coarse.
fn is_unchanged(file: &mut File, bytes: &[u8], before: &Metadata) -> std::io::Result<bool> {
    file.seek(SeekFrom::Start(0))?;
    Ok(read_all(file)? == bytes && change_marker(before) == change_marker(&file.metadata()?))
}

/// Returns the metadata that a write to the file changes.
fn change_marker(found: &Metadata) -> impl PartialEq + use<> {
    (
        found.len(),
        (found.mtime(), found.mtime_nsec()),
        (found.ctime(), found.ctime_nsec()),
    )
}
