//! The reaper's end of the connection: reads whole messages and the file descriptors that come with them.

use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use super::wire::{self, ReaperReport, ReaperRequest};

/// Received descriptors are close-on-exec at once, on systems that support it.
#[cfg(target_os = "linux")]
const RECEIVE_FLAGS: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const RECEIVE_FLAGS: RecvFlags = RecvFlags::empty();

/// Standard input, output and error of a child.
const STREAM_COUNT: usize = 3;

/// The connection to the supervisor.
pub(super) struct SupervisorSocket(UnixStream);

impl SupervisorSocket {
    /// Uses the standard input, which is the socket passed by the supervisor.
    pub(super) fn from_stdin() -> io::Result<Self> {
        let copy = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        Ok(Self(UnixStream::from(copy)))
    }

    /// Returns the next request, or `None` if the supervisor is gone.
    pub(super) fn receive(&mut self) -> io::Result<Option<(ReaperRequest, Vec<OwnedFd>)>> {
        let mut prefix = [0; wire::PREFIX_BYTES];
        let mut streams = Vec::new();
        let got = self.receive_prefix(&mut prefix, &mut streams)?;
        if got == 0 {
            return Ok(None);
        }
        self.0.read_exact(&mut prefix[got..])?;
        let mut body = vec![0; wire::message_length(prefix)?];
        self.0.read_exact(&mut body)?;
        Ok(Some((serde_json::from_slice(&body)?, streams)))
    }

    fn receive_prefix(&self, prefix: &mut [u8], streams: &mut Vec<OwnedFd>) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(STREAM_COUNT))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let got = rustix::io::retry_on_intr(|| {
            rustix::net::recvmsg(
                &self.0,
                &mut [IoSliceMut::new(prefix)],
                &mut control,
                RECEIVE_FLAGS,
            )
        })?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                streams.extend(descriptors);
            }
        }
        #[cfg(not(target_os = "linux"))]
        for stream in streams {
            crate::os_processes::close_on_exec::set_close_on_exec(stream)?;
        }
        Ok(got.bytes)
    }

    /// Sends a report to the supervisor.
    pub(super) fn send(&mut self, report: &ReaperReport) -> io::Result<()> {
        self.0.write_all(&wire::encode(report)?)
    }

    /// Returns the descriptor to wait on.
    pub(super) fn stream(&self) -> &UnixStream {
        &self.0
    }
}
