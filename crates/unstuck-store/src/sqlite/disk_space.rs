//! Free disk space.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::error::StoreError;

/// The number of bytes that must fit on the disk.
const PROBE_BYTES: usize = 64 << 10;

/// Writes and removes a small file next to the store.
#[expect(
    clippy::disallowed_methods,
    reason = "the file is new and next to the store, which is in the state directory or where the user puts it"
)]
pub(super) fn probe(path: &Path) -> Result<(), StoreError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let probe = folder.join(format!(".unstuck-room-{}", std::process::id()));
    // Another request of this process may be running the same probe.
    let mut open = OpenOptions::new();
    let opened = open.write(true).create_new(true).mode(0o600).open(&probe);
    let mut file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // A leftover file must not be mistaken for a running probe forever.
            let _ = fs::remove_file(&probe);
            return Ok(());
        }
        Err(error) => return Err(to_store_error(path, error)),
    };
    let written = file
        .write_all(&[0; PROBE_BYTES])
        .and_then(|()| file.flush());
    drop(file);
    let removed = fs::remove_file(&probe);
    written
        .and(removed)
        .map_err(|error| to_store_error(path, error))
}

fn to_store_error(path: &Path, error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::QuotaExceeded => StoreError::Full { path: path.into() },
        io::ErrorKind::PermissionDenied => StoreError::ReadOnly { path: path.into() },
        _ => StoreError::inaccessible("write next to", path, error),
    }
}
