//! Bytes that came once and are given to every attempt.

use std::io;
use std::os::fd::OwnedFd;

use crate::process::channel::Reader;

use super::{KEPT, Recorded};

const PIECE: usize = 64 * 1024;

/// What came so far, and where more comes from.
#[derive(Debug)]
pub(in crate::process) struct Record {
    live: Live,
    bytes: Vec<u8>,
    limit: usize,
    is_cut: bool,
}

#[derive(Debug)]
enum Live {
    Untouched(OwnedFd),
    Watched(Reader),
    AtEnd,
}

impl Record {
    /// Bytes that are all there.
    pub(super) fn known(bytes: Vec<u8>) -> Self {
        Self {
            live: Live::AtEnd,
            limit: bytes.len(),
            bytes,
            is_cut: false,
        }
    }

    /// Bytes that come from somewhere and are kept.
    pub(super) fn live(from: OwnedFd) -> Self {
        Self {
            live: Live::Untouched(from),
            bytes: Vec::new(),
            limit: KEPT,
            is_cut: false,
        }
    }

    /// Bytes that come from somewhere and are not kept, since a person types them anew.
    pub(super) fn passing(from: OwnedFd) -> Self {
        Self {
            limit: 0,
            ..Self::live(from)
        }
    }

    /// What is known of the bytes by now.
    pub(super) fn recorded(&self) -> Recorded {
        match self.live {
            _ if self.is_cut => Recorded::TooLarge,
            Live::AtEnd => Recorded::All(self.bytes.clone()),
            Live::Untouched(_) | Live::Watched(_) => Recorded::NotYetAtEnd,
        }
    }

    /// What has come so far and whether that is all of it, where it is kept.
    pub(super) fn known_bytes(&self) -> Option<(&[u8], bool)> {
        (self.limit > 0 && !self.is_cut).then_some((&self.bytes, self.is_at_end()))
    }

    /// Whether an attempt can get all of it.
    pub(super) fn is_whole(&self) -> bool {
        !self.is_cut || self.limit == 0
    }

    /// Whether nothing more comes.
    pub(super) fn is_at_end(&self) -> bool {
        matches!(self.live, Live::AtEnd)
    }

    /// The bytes from a position on.
    pub(super) fn from(&self, position: usize) -> &[u8] {
        self.bytes.get(position..).unwrap_or_default()
    }

    /// Waits until more has come or the end.
    pub(super) async fn ready(&mut self) -> io::Result<()> {
        if let Live::Untouched(descriptor) = &self.live {
            self.live = Live::Watched(Reader::shared(descriptor.try_clone()?)?);
        }
        match &self.live {
            Live::Watched(reader) => reader.ready().await,
            Live::Untouched(_) | Live::AtEnd => Ok(()),
        }
    }

    /// Takes in what has come; returns the position where it begins.
    pub(super) fn read_more(&mut self) -> usize {
        if self.is_cut {
            self.bytes.clear();
        }
        let position = self.bytes.len();
        let Live::Watched(reader) = &self.live else {
            return position;
        };
        self.bytes.resize(position + PIECE, 0);
        let got = match reader.read(&mut self.bytes[position..]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Ok(got) if got > 0 => got,
            Ok(_) | Err(_) => {
                self.live = Live::AtEnd;
                0
            }
        };
        self.bytes.truncate(position + got);
        self.is_cut |= self.bytes.len() > self.limit;
        position
    }

    /// Reads no more, since the source is broken.
    pub(super) fn give_up(&mut self) {
        self.live = Live::AtEnd;
    }
}
