//! Where results go: data to standard output, everything else to standard error.

use std::io::{self, BufWriter, Write};

use anyhow::Result;
use serde::Serialize;

/// Standard output, written in large pieces.
pub(crate) struct Output {
    writer: BufWriter<io::StdoutLock<'static>>,
}

impl Output {
    pub(crate) fn new() -> Self {
        Self {
            writer: BufWriter::new(io::stdout().lock()),
        }
    }

    /// Writes a value as JSON for machines and people.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<()> {
        serde_json::to_writer_pretty(&mut self.writer, value)?;
        writeln!(self)?;
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.writer.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}
