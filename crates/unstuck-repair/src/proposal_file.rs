//! Reads a proposal once. Whatever happens to the file afterwards, what was read is what is judged, shown and run.

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

/// The most bytes that are read.
const MAX_PROPOSAL_BYTES: u64 = MAX_BYTES as u64;

/// The bytes of a proposal, and what they are known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProposalFile {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Their SHA-256 in hexadecimal digits: an approval binds to it.
    pub sha256: String,
}

/// Why a file is not read as a proposal.
#[derive(Debug, thiserror::Error)]
pub enum ProposalFileError {
    /// It is a link, a folder, a pipe or a device.
    #[error("recovery.json is not an ordinary file")]
    NotAFile,
    /// It is too large to be read.
    #[error("recovery.json has {bytes} bytes, more than {MAX_BYTES}")]
    TooLarge {
        /// How many bytes it has, as far as that is known.
        bytes: u64,
    },
    /// It was written to while it was read.
    #[error("recovery.json was written to while it was read")]
    Changed,
    /// The machine refuses it.
    #[error("cannot read recovery.json: {0}")]
    Unreadable(#[source] std::io::Error),
}

impl ProposalFile {
    /// Bytes that came another way than by a file.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        let sha256 = HEXLOWER.encode(&Sha256::digest(&bytes));
        Self { bytes, sha256 }
    }

    /// Reads a file; nothing if there is none. Links on the way to its folder are followed.
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

    /// Reads a file below a folder that is held open; nothing if there is none. No link is followed.
    pub fn read_in(folder: impl AsFd, path: &Path) -> Result<Option<Self>, ProposalFileError> {
        match beneath::open_file(folder.as_fd(), path) {
            Ok(mut handle) => read_once(&mut handle).map(|bytes| Some(Self::from_bytes(bytes))),
            Err(Errno::NOENT) => Ok(None),
            // A link on the way, a way that leads out, or a socket.
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

/// One more byte than there may be is read, so that a file that grows is noticed.
fn read_all(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_PROPOSAL_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether the file is as it was: it is read once more, as its times alone may be too coarse to tell.
fn is_unchanged(file: &mut File, bytes: &[u8], before: &Metadata) -> std::io::Result<bool> {
    file.seek(SeekFrom::Start(0))?;
    Ok(read_all(file)? == bytes && change_marker(before) == change_marker(&file.metadata()?))
}

/// What a write to a file changes.
fn change_marker(found: &Metadata) -> impl PartialEq + use<> {
    (
        found.len(),
        (found.mtime(), found.mtime_nsec()),
        (found.ctime(), found.ctime_nsec()),
    )
}
