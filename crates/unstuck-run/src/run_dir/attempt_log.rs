//! The output of an attempt on disk: up to a limit, without secrets.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use unstuck_core::redact::{Redactor, StreamRedactor};
use unstuck_files::DirHandle;

/// Largest part of one stream that is kept on disk.
pub const MAX_LOG_BYTES: u64 = 64 << 20;

/// The files of one attempt in the state directory, and their copies in the project.
#[derive(Debug)]
pub struct AttemptFiles {
    pub(super) own: DirHandle,
    pub(super) copy: Option<DirHandle>,
}

impl AttemptFiles {
    /// Creates a file for one stream of the attempt.
    pub fn open_log<'r>(&self, name: &str, redactor: &'r Redactor) -> AttemptStreamLog<'r> {
        let begin = |folder: &DirHandle| folder.create(Path::new(name)).ok();
        AttemptStreamLog {
            file: begin(&self.own),
            copy: self.copy.as_ref().and_then(begin),
            stream: Some(redactor.stream()),
            left: MAX_LOG_BYTES,
        }
    }

    /// Writes a text that is only for humans.
    pub fn write(&self, name: &str, text: &str) {
        for folder in [Some(&self.own), self.copy.as_ref()].into_iter().flatten() {
            // Nothing depends on it.
            let _ = folder.replace(Path::new(name), text.as_bytes());
        }
    }
}

/// One stream of an attempt on disk.
///
/// Data that cannot be written is dropped: a full disk must not stop an agent.
pub struct AttemptStreamLog<'r> {
    file: Option<File>,
    /// The copy in the project.
    copy: Option<File>,
    stream: Option<StreamRedactor<'r>>,
    left: u64,
}

impl AttemptStreamLog<'_> {
    /// Appends output.
    pub fn push(&mut self, bytes: &[u8]) {
        if (self.file.is_some() || self.copy.is_some())
            && let Some(stream) = &mut self.stream
        {
            let clean = stream.push(bytes);
            self.write(&clean);
        }
    }

    /// Writes the buffered rest.
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
        self.write_both(fits);
        self.left -= fits.len() as u64;
        if fits.len() < bytes.len() {
            self.write_both(b"\n[unstuck: remaining output not stored]\n");
            (self.file, self.copy) = (None, None);
        }
    }

    /// Writes to both files; after an error a file is not written any more.
    fn write_both(&mut self, bytes: &[u8]) {
        for file in [&mut self.file, &mut self.copy] {
            let written = file.as_mut().map_or(Ok(()), |to| to.write_all(bytes));
            if written.is_err() {
                *file = None;
            }
        }
    }
}
