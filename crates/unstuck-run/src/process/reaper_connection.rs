//! The supervisor's end of the connection to its reaper.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::reaper::wire::{self, ReaperReport, ReaperRequest};

/// Prevents SIGPIPE if the other end is closed; outside of Linux, Rust programs ignore the signal from the start.
#[cfg(target_os = "linux")]
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;
#[cfg(not(target_os = "linux"))]
const SEND_FLAGS: SendFlags = SendFlags::empty();

/// A connection to a reaper.
#[derive(Debug)]
pub(super) struct ReaperConnection {
    stream: UnixStream,
    incoming: Vec<u8>,
    is_torn: bool,
}

impl ReaperConnection {
    /// Creates both ends: ours and the reaper's.
    pub(super) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let link = Self {
            stream: UnixStream::from_std(ours)?,
            incoming: Vec::new(),
            is_torn: false,
        };
        Ok((link, theirs.into()))
    }

    /// Sends a request together with its descriptors.
    ///
    /// If the future is dropped half-way, the reaper cannot parse later messages, so the connection is closed.
    pub(super) async fn send(
        &mut self,
        request: &ReaperRequest,
        streams: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let bytes = wire::encode(request)?;
        self.is_torn = true;
        let mut sent = 0;
        while sent < bytes.len() {
            let streams = if sent == 0 { streams } else { &[] };
            sent += self
                .stream
                .async_io(Interest::WRITABLE, || {
                    write(&self.stream, &bytes[sent..], streams)
                })
                .await?;
        }
        self.is_torn = false;
        Ok(())
    }

    /// Sends a request if that is possible without waiting.
    pub(super) fn try_send(&self, request: &ReaperRequest) {
        if self.is_torn {
            return self.close();
        }
        if let Ok(bytes) = wire::encode(request) {
            // A full or closed connection means that the reaper is about to notice our absence anyway.
            let _ = write(&self.stream, &bytes, &[]);
        }
    }

    /// Closes the connection, upon which the reaper ends the remaining processes and then itself.
    pub(super) fn close(&self) {
        // It may be closed already.
        let _ = rustix::net::shutdown(&self.stream, rustix::net::Shutdown::Both);
    }

    /// Returns the next report, or `None` if the reaper is gone. Cancel safe.
    pub(super) async fn next_report(&mut self) -> io::Result<Option<ReaperReport>> {
        loop {
            if let Some(report) = wire::take_message(&mut self.incoming)? {
                return Ok(Some(report));
            }
            self.stream.readable().await?;
            match self.stream.try_read_buf(&mut self.incoming) {
                Ok(0) => return Ok(None),
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
    }
}

fn write(stream: &UnixStream, bytes: &[u8], streams: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !streams.is_empty() && !control.push(SendAncillaryMessage::ScmRights(streams)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    Ok(rustix::net::sendmsg(
        stream,
        &[IoSlice::new(bytes)],
        &mut control,
        SEND_FLAGS,
    )?)
}
