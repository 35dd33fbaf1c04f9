//! Opens the file, carefully: nothing that is not ours is changed.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::{failure, migrate};
use crate::error::StoreError;

/// Marks a file as a store of unstuck: the letters `unst`.
pub(super) const APPLICATION: i32 = 0x756e_7374;

/// How long SQLite itself waits for others before it is asked again. Its own pauses grow to 100 ms, too long to find a
/// gap between the writes of a busy process; asked again, it begins anew with 1 ms.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// A connection that writes, to a file that is made if need be, with the path that holds wherever the process goes.
pub(super) fn writer(path: &Path, patience: Duration) -> Result<(Connection, PathBuf), StoreError> {
    ensure(path)?;
    let path = path
        .canonicalize()
        .map_err(|error| StoreError::unreachable("open", path, error))?;
    let connection = connect(&path, OpenFlags::SQLITE_OPEN_READ_WRITE, ASK_AGAIN)?;
    let version = patiently(patience, || identify(&connection))
        .map_err(|error| failure::told(&path, error))?;
    let version = version.ok_or_else(|| StoreError::NotAStore { path: path.clone() })?;
    migrate::refuse_newer(&path, version)?;
    patiently(patience, || adjust(&connection)).map_err(|error| failure::told(&path, error))?;
    if version < migrate::KNOWN {
        migrate::migrate(&connection, &path, patience)?;
    }
    Ok((connection, path))
}

/// A connection that only reads.
pub(super) fn reader(path: &Path, patience: Duration) -> Result<Connection, StoreError> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, patience)
}

/// Does something again for as long as others are in the way.
pub(super) fn patiently<T>(
    patience: Duration,
    mut work: impl FnMut() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let tries = patience.as_millis() / ASK_AGAIN.as_millis();
    for _ in 0..tries {
        match work() {
            Err(error) if failure::is_busy(&error) => {}
            done => return done,
        }
    }
    work()
}

/// Does something for which SQLite itself waits for others as long as they may take.
pub(super) fn waiting<T>(
    connection: &mut Connection,
    patience: Duration,
    work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    connection.busy_timeout(patience)?;
    let done = work(connection);
    connection.busy_timeout(ASK_AGAIN)?;
    done
}

fn connect(path: &Path, mode: OpenFlags, wait: Duration) -> Result<Connection, StoreError> {
    let open = || {
        let connection = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(wait)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(connection)
    };
    open().map_err(|error| failure::told(path, error))
}

/// The version of the store's schema, 0 if the file is empty; none if the file is something else.
fn identify(connection: &Connection) -> rusqlite::Result<Option<u32>> {
    let application: i32 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version = migrate::version(connection)?;
    if application == APPLICATION {
        return Ok(Some(version));
    }
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok((application == 0 && version == 0 && tables == 0).then_some(0))
}

fn adjust(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -16000;
        PRAGMA wal_autocheckpoint = 4000;",
    )
}

/// Makes the file, and the folder that it is in, unless they are there; only the user may look into them.
fn ensure(path: &Path) -> Result<(), StoreError> {
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(StoreError::unreachable("open", path, error)),
    }
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new("."));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| StoreError::unreachable("create the folder", folder, error))?;
    match create(path) {
        // Another process has just made it.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made
            .map(drop)
            .map_err(|error| StoreError::unreachable("create", path, error)),
    }
}

/// Makes a file that was not there before, for the user alone.
pub(super) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}
