//! The output of an attempt on disk: all of it up to a limit, without secrets.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use unstuck_core::redact::{Redactor, Stream};

/// How much of one stream is kept on disk.
pub const LOG_LIMIT: u64 = 64 << 20;

/// One stream of an attempt on disk.
///
/// What cannot be written is left out: a full disk must not keep an agent from its work.
pub struct Log<'r> {
    file: Option<File>,
    stream: Option<Stream<'r>>,
    left: u64,
}

impl<'r> Log<'r> {
    /// Begins a file, or goes without one where that is not possible.
    pub fn begin(path: &Path, redactor: &'r Redactor) -> Self {
        Self {
            file: File::create(path).ok(),
            stream: Some(redactor.stream()),
            left: LOG_LIMIT,
        }
    }

    /// Takes in what was written.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.file.is_some()
            && let Some(stream) = &mut self.stream
        {
            let clean = stream.push(bytes);
            self.write(&clean);
        }
    }

    /// Writes what was held back.
    pub fn finish(mut self) {
        if let Some(stream) = self.stream.take() {
            self.write(&stream.finish());
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let room = usize::try_from(self.left).unwrap_or(usize::MAX);
        let fits = &bytes[..bytes.len().min(room)];
        if self.put(fits).is_err() {
            self.file = None;
            return;
        }
        self.left -= fits.len() as u64;
        if fits.len() < bytes.len() {
            // Nothing more can be done if not even this can be written.
            let _ = self.put(b"\n[unstuck: the rest is not kept]\n");
            self.file = None;
        }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), |to| to.write_all(bytes))
    }
}
