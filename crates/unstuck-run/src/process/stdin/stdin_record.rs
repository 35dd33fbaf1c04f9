//! A record of input that arrives once and is passed to every attempt.

use std::io;
use std::os::fd::OwnedFd;

use crate::process::async_fd::FdReader;

use super::{KnownStdinContents, MAX_KEPT_BYTES};

const CHUNK_BYTES: usize = 64 * 1024;

/// The input so far and the source of more.
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
    /// Returns a complete record.
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Self {
        Self {
            live: LiveInput::AtEnd,
            limit: bytes.len(),
            bytes,
            is_cut: false,
        }
    }

    /// Records the input from a descriptor.
    pub(super) fn recording(from: OwnedFd) -> Self {
        Self {
            live: LiveInput::NotStarted(from),
            bytes: Vec::new(),
            limit: MAX_KEPT_BYTES,
            is_cut: false,
        }
    }

    /// Passes on input from a descriptor without recording it, since a user types it again for each attempt.
    pub(super) fn unrecorded(from: OwnedFd) -> Self {
        Self {
            limit: 0,
            ..Self::recording(from)
        }
    }

    /// Returns the contents known so far.
    pub(super) fn contents(&self) -> KnownStdinContents {
        match self.live {
            _ if self.is_cut => KnownStdinContents::TooLarge,
            LiveInput::AtEnd => KnownStdinContents::Complete(self.bytes.clone()),
            LiveInput::NotStarted(_) | LiveInput::Reading(_) => KnownStdinContents::Incomplete,
        }
    }

    /// Returns the bytes so far and true at their end, if they are stored.
    pub(super) fn known_bytes(&self) -> Option<(&[u8], bool)> {
        (self.limit > 0 && !self.is_cut).then_some((&self.bytes, self.is_at_end()))
    }

    /// Returns true if an attempt can get the complete input.
    pub(super) fn is_complete(&self) -> bool {
        !self.is_cut || self.limit == 0
    }

    /// Returns true if the input has ended.
    pub(super) fn is_at_end(&self) -> bool {
        matches!(self.live, LiveInput::AtEnd)
    }

    /// Returns the bytes from a position on.
    pub(super) fn bytes_from(&self, position: usize) -> &[u8] {
        self.bytes.get(position..).unwrap_or_default()
    }

    /// Waits for more input or its end.
    pub(super) async fn ready(&mut self) -> io::Result<()> {
        if let LiveInput::NotStarted(descriptor) = &self.live {
            self.live = LiveInput::Reading(FdReader::from_shared(descriptor.try_clone()?)?);
        }
        match &self.live {
            LiveInput::Reading(reader) => reader.ready().await,
            LiveInput::NotStarted(_) | LiveInput::AtEnd => Ok(()),
        }
    }

    /// Reads available input and returns the position where it begins.
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

    /// Stops reading, since the source is broken.
    pub(super) fn give_up(&mut self) {
        self.live = LiveInput::AtEnd;
    }
}
