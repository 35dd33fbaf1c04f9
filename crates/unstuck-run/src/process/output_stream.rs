//! One output stream of a child: read as it arrives, forwarded, and captured.

use std::future::pending;
use std::io;

use super::async_fd::FdReader;
use super::capture::CapturedOutput;

/// An output stream that may have ended.
pub(super) struct OutputStream {
    reader: Option<FdReader>,
    captured: CapturedOutput,
}

impl OutputStream {
    /// Reads a stream from a descriptor.
    pub(super) fn new(reader: Option<FdReader>) -> Self {
        Self {
            reader,
            captured: CapturedOutput::default(),
        }
    }

    /// Returns true if more output may come.
    pub(super) fn is_open(&self) -> bool {
        self.reader.is_some()
    }

    /// Waits until there is something to read; forever if the stream has ended.
    pub(super) async fn ready(&self) {
        match &self.reader {
            // The next read reports any error.
            Some(reader) => drop(reader.ready().await),
            None => pending().await,
        }
    }

    /// Reads the next piece into the buffer and returns it; empty if there is none.
    pub(super) fn read_available<'b>(&mut self, buffer: &'b mut [u8]) -> &'b [u8] {
        let Some(reader) = &self.reader else {
            return &[];
        };
        match reader.read(buffer) {
            Ok(0) => self.reader = None,
            Ok(got) => {
                let piece = &buffer[..got];
                self.captured.push(piece);
                return piece;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.reader = None,
        }
        &[]
    }

    /// Stops reading and returns the captured output.
    pub(super) fn close(&mut self) -> CapturedOutput {
        self.reader = None;
        std::mem::take(&mut self.captured)
    }
}
