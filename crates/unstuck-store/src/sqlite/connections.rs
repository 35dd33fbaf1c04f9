//! Connections to the file, and waiting for locks of other processes.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::sqlite_error;
use crate::error::StoreError;

/// The busy timeout of SQLite before a retry. Its own backoff grows to 100 ms, too long to find a gap between the
/// writes of a busy process; a retry restarts it at 1 ms.
const BUSY_RETRY: Duration = Duration::from_millis(20);

/// Opens a write connection to an unchecked file.
pub(super) fn open_writer(path: &Path) -> Result<Connection, StoreError> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, BUSY_RETRY)
}

/// Opens a read-only connection.
pub(super) fn open_reader(path: &Path, patience: Duration) -> Result<Connection, StoreError> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, patience)
}

/// Returns a file URI that declares the file immutable, so that it is read without its WAL files.
pub(super) fn immutable_uri(path: &Path) -> PathBuf {
    let mut name = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                name.push(char::from(*byte));
            }
            other => name.push_str(&format!("%{other:02X}")),
        }
    }
    name.push_str("?immutable=1");
    PathBuf::from(name)
}

/// Retries an operation while the database is locked.
pub(super) fn retry_while_busy<T>(
    patience: Duration,
    mut work: impl FnMut() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let tries = patience.as_millis() / BUSY_RETRY.as_millis();
    for _ in 0..tries {
        match work() {
            Err(error) if sqlite_error::is_busy(&error) => {}
            done => return done,
        }
    }
    work()
}

/// Runs an operation with SQLite's busy timeout set to the full patience.
pub(super) fn with_busy_timeout<T>(
    connection: &mut Connection,
    patience: Duration,
    work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    connection.busy_timeout(patience)?;
    let done = work(connection);
    connection.busy_timeout(BUSY_RETRY)?;
    done
}

fn connect(path: &Path, mode: OpenFlags, wait: Duration) -> Result<Connection, StoreError> {
    let open = || {
        let connection = Connection::open_with_flags(
            path,
            mode | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI,
        )?;
        connection.busy_timeout(wait)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(connection)
    };
    open().map_err(|error| sqlite_error::to_store_error(path, error))
}

/// Creates a new file that only the user can access.
#[expect(
    clippy::disallowed_methods,
    reason = "the store is in the state directory or where the user puts it, and SQLite opens it by its path"
)]
pub(super) fn create_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}
