//! Bytes that came once and are given to every attempt.

use std::io;
use std::os::fd::OwnedFd;

use crate::process::async_fd::FdReader;

use super::{MAX_KEPT_BYTES, StdinContents};

const CHUNK_BYTES: usize = 64 * 1024;

/// What came so far, and where more comes from.
#[derive(Debug)]
pub(in crate::process) struct StdinRecord {
    live: LiveInput,
    bytes: Vec<u8>,
    limit: usize,
    is_cut: bool,
}

#[derive(Debug)]
enum LiveInput {
    NotStarted(OwnedFd),
    Reading(FdReader),
    AtEnd,
}

impl StdinRecord {
    /// Bytes that are all there.
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Self {
        Self {
            live: LiveInput::AtEnd,
            limit: bytes.len(),
            bytes,
            is_cut: false,
        }
    }

    /// Bytes that come from somewhere and are kept.
    pub(super) fn recording(from: OwnedFd) -> Self {
        Self {
            live: LiveInput::NotStarted(from),
            bytes: Vec::new(),
            limit: MAX_KEPT_BYTES,
            is_cut: false,
        }
    }

    /// Bytes that come from somewhere and are not kept, since a person types them anew.
    pub(super) fn unrecorded(from: OwnedFd) -> Self {
        Self {
            limit: 0,
            ..Self::recording(from)
        }
    }

    /// What is known of the bytes by now.
    pub(super) fn contents(&self) -> StdinContents {
        match self.live {
            _ if self.is_cut => StdinContents::TooLarge,
            LiveInput::AtEnd => StdinContents::Complete(self.bytes.clone()),
            LiveInput::NotStarted(_) | LiveInput::Reading(_) => StdinContents::Incomplete,
        }
    }

    /// What has come so far and whether that is all of it, where it is kept.
    pub(super) fn known_bytes(&self) -> Option<(&[u8], bool)> {
        (self.limit > 0 && !self.is_cut).then_some((&self.bytes, self.is_at_end()))
    }

    /// Whether an attempt can get all of it.
    pub(super) fn is_complete(&self) -> bool {
        !self.is_cut || self.limit == 0
    }

    /// Whether nothing more comes.
    pub(super) fn is_at_end(&self) -> bool {
        matches!(self.live, LiveInput::AtEnd)
    }

    /// The bytes from a position on.
    pub(super) fn bytes_from(&self, position: usize) -> &[u8] {
        self.bytes.get(position..).unwrap_or_default()
    }

    /// Waits until more has come or the end.
    pub(super) async fn ready(&mut self) -> io::Result<()> {
        if let LiveInput::NotStarted(descriptor) = &self.live {
            self.live = LiveInput::Reading(FdReader::from_shared(descriptor.try_clone()?)?);
        }
        match &self.live {
            LiveInput::Reading(reader) => reader.ready().await,
            LiveInput::NotStarted(_) | LiveInput::AtEnd => Ok(()),
        }
    }

    /// Takes in what has come; returns the position where it begins.
    pub(super) fn read_more(&mut self) -> usize {
        if self.is_cut {
            self.bytes.clear();
        }
        let position = self.bytes.len();
        let LiveInput::Reading(reader) = &self.live else {
            return position;
        };
        self.bytes.resize(position + CHUNK_BYTES, 0);
        let got = match reader.read(&mut self.bytes[position..]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Ok(got) if got > 0 => got,
            Ok(_) | Err(_) => {
                self.live = LiveInput::AtEnd;
                0
            }
        };
        self.bytes.truncate(position + got);
        self.is_cut |= self.bytes.len() > self.limit;
        position
    }

    /// Reads no more, since the source is broken.
    pub(super) fn give_up(&mut self) {
        self.live = LiveInput::AtEnd;
    }
}
