//! Reads a proposal once. Whatever happens to the file afterwards, what was read is what is judged, shown and run.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::path::Path;

use data_encoding::HEXLOWER;
use rustix::fs::{CWD, FileType, Mode, Stat, fstat, openat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use unstuck_core::guard::MAX_BYTES;

use crate::beneath;

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
        match openat(CWD, folder, beneath::FOLDER, Mode::empty()) {
            Ok(folder) => Self::read_in(folder, Path::new(name)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(ProposalFileError::Unreadable(error.into())),
        }
    }

    /// Reads a file below a folder that is held open; nothing if there is none. No link is followed.
    pub fn read_in(folder: impl AsFd, path: &Path) -> Result<Option<Self>, ProposalFileError> {
        match beneath::open_file(folder.as_fd(), path) {
            Ok(handle) => {
                read_once(&mut File::from(handle)).map(|bytes| Some(Self::from_bytes(bytes)))
            }
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
    let before = stat(file)?;
    if FileType::from_raw_mode(before.st_mode) != FileType::RegularFile {
        return Err(ProposalFileError::NotAFile);
    }
    let size = u64::try_from(before.st_size).unwrap_or(u64::MAX);
    let most = MAX_BYTES as u64;
    if size > most {
        return Err(ProposalFileError::TooLarge { bytes: size });
    }
    let mut bytes = Vec::new();
    // One more byte than there may be, so that a file that grows is noticed.
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(ProposalFileError::Unreadable)?;
    let is_same = bytes.len() as u64 == size
        && still_holds(file, &bytes).map_err(ProposalFileError::Unreadable)?
        && version(&before) == version(&stat(file)?);
    if is_same {
        Ok(bytes)
    } else {
        Err(ProposalFileError::Changed)
    }
}

/// Whether the file still holds these bytes: its times alone may be too coarse to tell.
fn still_holds(file: &mut File, bytes: &[u8]) -> std::io::Result<bool> {
    let mut again = Vec::with_capacity(bytes.len());
    file.seek(SeekFrom::Start(0))?;
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut again)?;
    Ok(again == bytes)
}

fn stat(file: &File) -> Result<Stat, ProposalFileError> {
    fstat(file).map_err(|error| ProposalFileError::Unreadable(error.into()))
}

/// What a write to a file changes.
fn version(stat: &Stat) -> impl PartialEq + use<> {
    (
        stat.st_size,
        (stat.st_mtime, stat.st_mtime_nsec),
        (stat.st_ctime, stat.st_ctime_nsec),
    )
}
