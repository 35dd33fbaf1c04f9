//! Opens the store, carefully: nothing that is not ours is changed.

use std::fs::{DirBuilder, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use super::{connect, failure, migrate};
use crate::error::StoreError;

/// A connection that writes, to a file that is made if need be, with the path that holds wherever the process goes.
pub(super) fn writer(path: &Path, patience: Duration) -> Result<(Connection, PathBuf), StoreError> {
    ensure(path)?;
    let path = path
        .canonicalize()
        .map_err(|error| StoreError::unreachable("open", path, error))?;
    let connection = connect::writer(&path)?;
    let version = connect::patiently(patience, || identify(&connection))
        .map_err(|error| failure::told(&path, error))?;
    let version = version.ok_or_else(|| StoreError::NotAStore { path: path.clone() })?;
    migrate::refuse_newer(&path, version)?;
    connect::patiently(patience, || adjust(&connection))
        .map_err(|error| failure::told(&path, error))?;
    if version < migrate::KNOWN {
        migrate::migrate(&connection, &path, patience)?;
    }
    Ok((connection, path))
}

/// The path of a store that cannot be written, by which it can be read.
///
/// Beside a file in WAL mode others are needed, which cannot be made in a folder that is read-only. Where nobody has written
/// anything that is not in the file yet, it is read without them.
pub(super) fn read_only(path: &Path, patience: Duration) -> Result<PathBuf, StoreError> {
    let path = path
        .canonicalize()
        .map_err(|error| StoreError::unreachable("open", path, error))?;
    let has_log = beside(&path)
        .metadata()
        .is_ok_and(|metadata| metadata.len() > 0);
    let mut readable = Err(StoreError::ReadOnly { path: path.clone() });
    let unchanging = (!has_log).then(|| connect::unchanging(&path));
    for name in [Some(path.clone()), unchanging].into_iter().flatten() {
        readable = is_known(&path, &name, patience).map(|()| name);
        if readable.is_ok() {
            break;
        }
    }
    readable
}

/// The log of a store.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Whether a store can be read by this name and has the schema that is known here.
fn is_known(path: &Path, name: &Path, patience: Duration) -> Result<(), StoreError> {
    let connection = connect::reader(name, patience)?;
    let version = identify(&connection).map_err(|error| failure::told(path, error))?;
    match version {
        None => Err(StoreError::NotAStore { path: path.into() }),
        Some(version) if version < migrate::KNOWN => {
            Err(StoreError::ReadOnly { path: path.into() })
        }
        Some(version) => migrate::refuse_newer(path, version),
    }
}

/// The version of the store's schema, 0 if the file is empty; none if the file is something else.
///
/// All is read in one transaction: another process may be making the store at this very moment.
fn identify(connection: &Connection) -> rusqlite::Result<Option<u32>> {
    let moment = connection.unchecked_transaction()?;
    // It begins with the first read of a table, and not with that of a pragma.
    let tables: i64 =
        moment.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let application: i32 = moment.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version = migrate::version(&moment)?;
    moment.finish()?;
    if application == migrate::APPLICATION {
        return Ok(Some(version));
    }
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
    match connect::create(path) {
        // Another process has just made it.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made
            .map(drop)
            .map_err(|error| StoreError::unreachable("create", path, error)),
    }
}
