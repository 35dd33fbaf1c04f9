//! Feeds a record to one attempt: first the known bytes, then the rest as it arrives.

use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;

use crate::process::async_fd::{self, FdWriter};
use crate::process::error::{ProcessError, ProcessIoContext};

use super::stdin_record::StdinRecord;

/// The key that means the end of input to a terminal (Ctrl-D).
const END_OF_INPUT: &[u8] = &[4];

/// The way in which the child is told that its input has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::process) enum EndOfInput {
    /// Closes the pipe.
    Close,
    /// Presses the key for the end of input.
    PressKey,
}

/// The result of one step of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::process) enum StdinFeedStep {
    /// A piece was received.
    Received,
    /// A piece was forwarded to the child, or there is nothing left to do.
    Forwarded,
}

/// The feed of a record to one child.
pub(in crate::process) struct StdinFeed<'s> {
    record: &'s mut StdinRecord,
    to: Option<FdWriter>,
    position: usize,
    at_end: EndOfInput,
}

impl<'s> StdinFeed<'s> {
    /// Feeds a record from its beginning.
    pub(in crate::process) fn new(
        record: &'s mut StdinRecord,
        to: FdWriter,
        at_end: EndOfInput,
    ) -> Result<Self, ProcessError> {
        if !record.is_complete() {
            return Err(ProcessError::StdinNotReplayable);
        }
        Ok(Self {
            record,
            to: Some(to),
            position: 0,
            at_end,
        })
    }

    /// Feeds a record through a new pipe and returns the child's end of it.
    pub(super) fn through_pipe(
        record: &'s mut StdinRecord,
    ) -> Result<(OwnedFd, Option<Self>), ProcessError> {
        let (read, write) = async_fd::pipe().context("create a pipe")?;
        let to = FdWriter::from_owned(write).context("poll a pipe")?;
        Ok((read, Some(Self::new(record, to, EndOfInput::Close)?)))
    }

    /// Moves one piece; waits forever when all is done. Cancel safe.
    pub(in crate::process) async fn step(&mut self) -> StdinFeedStep {
        let Some(to) = &self.to else {
            return pending().await;
        };
        let rest = self.record.bytes_from(self.position);
        if !rest.is_empty() {
            // The write reports any error.
            let _ = to.ready().await;
            let result = to.write(rest);
            self.note_written(result);
        } else if self.record.is_at_end() {
            self.finish().await;
        } else if self.record.ready().await.is_ok() {
            self.position = self.record.read_more();
            return StdinFeedStep::Received;
        } else {
            self.record.give_up();
        }
        StdinFeedStep::Forwarded
    }

    /// Returns the received bytes that are not yet forwarded.
    pub(in crate::process) fn pending_bytes(&self) -> &[u8] {
        self.record.bytes_from(self.position)
    }

    /// Forwards the pending bytes as far as possible without waiting.
    pub(in crate::process) fn forward_pending(&mut self) {
        if let Some(to) = &self.to {
            let result = to.write(self.record.bytes_from(self.position));
            self.note_written(result);
        }
    }

    /// Returns the bytes so far and true at their end, if they are stored.
    pub(in crate::process) fn known_bytes(&self) -> Option<(&[u8], bool)> {
        self.record.known_bytes()
    }

    fn note_written(&mut self, result: io::Result<usize>) {
        match result {
            Ok(count) => self.position += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // The child does not read any more.
            Err(_) => self.to = None,
        }
    }

    async fn finish(&mut self) {
        if let (EndOfInput::PressKey, Some(to)) = (self.at_end, &self.to) {
            let _ = to.ready().await;
            let _ = to.write(END_OF_INPUT);
        }
        self.to = None;
    }
}
