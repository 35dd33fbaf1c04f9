//! Passes a child's output on to our own streams, byte for byte, and knows when some of it could not be written.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use unstuck_run::runner::OutputChannel;

/// Our own standard output and standard error, as the ends of a child's output.
#[derive(Debug, Default)]
pub(super) struct Passthrough {
    /// Why output was lost first.
    loss_reason: Option<String>,
    /// Whether nothing more can be written to standard output.
    is_closed: bool,
    /// Whether whoever read standard output has gone.
    is_unread: bool,
    /// Whether the last line on standard output has not come to its end.
    is_line_open: bool,
}

impl Passthrough {
    /// Passes on what a child wrote.
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
            // The terminal is gone, and whoever started it may have wanted it to live on.
            Errno::IO => self.record_loss("standard output", error),
            _ => {
                self.is_closed = true;
                self.record_loss("standard output", error);
            }
        }
    }

    /// The work goes on even if nobody reads how it is going.
    fn stderr(&mut self, bytes: &[u8]) {
        match write_all(rustix::stdio::stderr(), bytes) {
            Ok(()) | Err(Errno::PIPE) => {}
            Err(error) => self.record_loss("standard error", error),
        }
    }

    fn record_loss(&mut self, stream: &str, error: Errno) {
        let error = io::Error::from(error);
        self.loss_reason
            .get_or_insert_with(|| format!("{stream} could not be written: {error}"));
    }

    /// Why some of the output is lost, if it is.
    pub(super) fn loss_reason(&self) -> Option<&str> {
        self.loss_reason.as_deref()
    }

    /// Whether the child still writes for somebody.
    pub(super) fn is_open(&self) -> bool {
        !self.is_unread && !self.is_closed
    }

    /// Whether whoever read standard output has gone.
    pub(super) fn is_unread(&self) -> bool {
        self.is_unread
    }

    /// Whether the last line on standard output has not come to its end.
    pub(super) fn is_line_open(&self) -> bool {
        self.is_line_open
    }
}

/// Writes all of it; a descriptor that somebody has made non-blocking is waited for.
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
    fn a_pipe_that_does_not_block_gets_all_of_it() {
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
