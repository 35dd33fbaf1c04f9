//! Files that a person names on the command line. They may lie in a project, where an agent can put a FIFO or a huge file
//! in their place.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::{Context, Result};
use rustix::io::Errno;
use unstuck_files::{FileErrorKind, open_named};

/// The longest text.
const MAX_TEXT_BYTES: u64 = 64 << 20;

/// Opens a regular file, or a stream that was handed to this process (`<(…)` in a shell, `/dev/stdin`).
pub(crate) fn open_input(path: &Path) -> Result<File> {
    let opened = if path.starts_with("/dev/fd") || path == Path::new("/dev/stdin") {
        open_stream(path)
    } else {
        open_named(path).map_err(|error| match error.problem {
            FileErrorKind::Missing => Errno::NOENT.into(),
            problem => io::Error::other(problem),
        })
    };
    opened.with_context(|| format!("cannot read {}", path.display()))
}

#[expect(
    clippy::disallowed_methods,
    reason = "an open stream of this process, not a file"
)]
fn open_stream(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Reads a text of limited length from such a file.
pub(crate) fn read_input(path: &Path) -> Result<String> {
    let mut text = String::new();
    let read = open_input(path)?
        .take(MAX_TEXT_BYTES + 1)
        .read_to_string(&mut text);
    read.with_context(|| format!("cannot read {}", path.display()))?;
    if text.len() as u64 > MAX_TEXT_BYTES {
        anyhow::bail!(
            "cannot read {}: larger than {} MiB",
            path.display(),
            MAX_TEXT_BYTES >> 20
        );
    }
    Ok(text)
}
