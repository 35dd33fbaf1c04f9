//! Non-blocking descriptors for the runtime: our end of a pipe, of a pseudo-terminal, or of an inherited input.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::Errno;
use tokio::net::unix::pipe::{Receiver, Sender};

/// A descriptor to read from.
#[derive(Debug)]
pub(super) struct FdReader {
    receiver: Receiver,
    may_block: bool,
}

impl FdReader {
    /// Takes an owned descriptor and makes it non-blocking.
    pub(super) fn from_owned(descriptor: OwnedFd) -> io::Result<Self> {
        make_nonblocking(&descriptor)?;
        Ok(Self {
            receiver: Receiver::from_owned_fd_unchecked(descriptor)?,
            may_block: false,
        })
    }

    /// Takes a descriptor that is shared with other processes, without changing it.
    pub(super) fn from_shared(descriptor: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            receiver: Receiver::from_owned_fd_unchecked(descriptor)?,
            may_block: true,
        })
    }

    /// Waits until the descriptor is readable.
    pub(super) async fn ready(&self) -> io::Result<()> {
        self.receiver.readable().await
    }

    /// Reads available bytes without waiting; returns 0 at the end.
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receiver.try_io(|| {
            if self.may_block && !has_input(self.receiver.as_fd())? {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            match rustix::io::retry_on_intr(|| rustix::io::read(&self.receiver, &mut *buffer)) {
                // A pseudo-terminal reports this when no process has it open any more.
                Err(Errno::IO) => Ok(0),
                other => Ok(other?),
            }
        })
    }
}

/// An owned descriptor to write to.
#[derive(Debug)]
pub(super) struct FdWriter(Sender);

impl FdWriter {
    /// Takes an owned descriptor and makes it non-blocking.
    pub(super) fn from_owned(descriptor: OwnedFd) -> io::Result<Self> {
        make_nonblocking(&descriptor)?;
        Ok(Self(Sender::from_owned_fd_unchecked(descriptor)?))
    }

    /// Waits until the descriptor is writable.
    pub(super) async fn ready(&self) -> io::Result<()> {
        self.0.writable().await
    }

    /// Writes as many bytes as possible without waiting.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }
}

/// Creates a pipe as (read end, write end); children inherit it only if it is passed to them.
#[cfg(target_os = "linux")]
pub(super) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
}

/// Creates a pipe as (read end, write end); children inherit it only if it is passed to them.
#[cfg(not(target_os = "linux"))]
pub(super) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = rustix::pipe::pipe()?;
    crate::os_processes::close_on_exec::set_close_on_exec(&read)?;
    crate::os_processes::close_on_exec::set_close_on_exec(&write)?;
    Ok((read, write))
}

fn make_nonblocking(descriptor: &OwnedFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(descriptor)?;
    Ok(rustix::fs::fcntl_setfl(
        descriptor,
        flags | OFlags::NONBLOCK,
    )?)
}

fn has_input(descriptor: BorrowedFd<'_>) -> io::Result<bool> {
    let mut events = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    Ok(rustix::event::poll(&mut events, Some(&Timespec::default()))? > 0)
}
