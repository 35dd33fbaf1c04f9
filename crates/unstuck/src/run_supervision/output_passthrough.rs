//! Passes a child's output to our own streams byte for byte, and detects lost output.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use unstuck_run::runner::OutputChannel;

/// Our own standard output and standard error as targets of a child's output.
#[derive(Debug, Default)]
pub(super) struct Passthrough {
    /// Reason why output was first lost.
    loss_reason: Option<String>,
    /// True if standard output can no longer be written.
    is_closed: bool,
    /// True if the reader of standard output is gone (broken pipe).
    is_unread: bool,
    /// True if the last line on standard output is incomplete.
    is_line_open: bool,
}

impl Passthrough {
    /// Passes on output of a child.
    pub(super) fn write(&mut self, channel: OutputChannel, bytes: &[u8]) {
        match channel {
            OutputChannel::Stdout => self.stdout(bytes),
            OutputChannel::Stderr => self.stderr(bytes),
        }
    }

    fn stdout(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last() {
            self.is_line_open = *last != b'\n';
        }
        let Err(error) = write_all(rustix::stdio::stdout(), bytes) else {
            return;
        };
        match error {
            Errno::PIPE => self.is_unread = true,
            // The terminal is gone, but the run may have been meant to outlive it.
            Errno::IO => self.record_loss("standard output", error),
            _ => {
                self.is_closed = true;
                self.record_loss("standard output", error);
            }
        }
    }

    /// Writes to standard error; the run continues even if that fails.
    fn stderr(&mut self, bytes: &[u8]) {
        match write_all(rustix::stdio::stderr(), bytes) {
            Ok(()) | Err(Errno::PIPE) => {}
            Err(error) => self.record_loss("standard error", error),
        }
    }

    fn record_loss(&mut self, stream: &str, error: Errno) {
        let error = io::Error::from(error);
        self.loss_reason
            .get_or_insert_with(|| format!("cannot write to {stream}: {error}"));
    }

    /// Returns why output was lost, if it was.
    pub(super) fn loss_reason(&self) -> Option<&str> {
        self.loss_reason.as_deref()
    }

    /// True if the child's output still has a reader.
    pub(super) fn is_open(&self) -> bool {
        !self.is_unread && !self.is_closed
    }

    /// True if the reader of standard output is gone (broken pipe).
    pub(super) fn is_unread(&self) -> bool {
        self.is_unread
    }

    /// True if the last line on standard output is incomplete.
    pub(super) fn is_line_open(&self) -> bool {
        self.is_line_open
    }
}

/// Writes all bytes; waits if the descriptor is non-blocking.
fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(0) => return Err(Errno::IO),
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => wait_until_writable(to)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn wait_until_writable(to: BorrowedFd<'_>) -> rustix::io::Result<()> {
    let mut events = [PollFd::from_borrowed_fd(to, PollFlags::OUT)];
    rustix::io::retry_on_intr(|| rustix::event::poll(&mut events, None)).map(drop)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;

    use rustix::fs::OFlags;

    use super::write_all;

    #[test]
    fn non_blocking_pipe_gets_all_bytes() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let flags = rustix::fs::fcntl_getfl(&writer).unwrap();
        rustix::fs::fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
        let bytes = vec![b'x'; 1 << 20];
        let expected = bytes.len();
        let writing = std::thread::spawn(move || write_all(writer.as_fd(), &bytes));
        let mut got = Vec::new();
        reader.read_to_end(&mut got).unwrap();
        assert_eq!(writing.join().unwrap(), Ok(()));
        assert_eq!(got.len(), expected);
    }
}
