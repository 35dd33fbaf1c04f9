//! Opens the store without changing files that are not stores.

use std::fs::{DirBuilder, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use super::{connections, migrations, sqlite_error};
use crate::error::StoreError;

/// Opens a write connection, creating the file if necessary; also returns its absolute path.
pub(super) fn open_writer(
    path: &Path,
    patience: Duration,
) -> Result<(Connection, PathBuf), StoreError> {
    ensure_file(path)?;
    let path = path
        .canonicalize()
        .map_err(|error| StoreError::inaccessible("open", path, error))?;
    let connection = connections::open_writer(&path)?;
    let version = connections::retry_while_busy(patience, || read_schema_version(&connection))
        .map_err(|error| sqlite_error::to_store_error(&path, error))?;
    let version = version.ok_or_else(|| StoreError::NotAStore { path: path.clone() })?;
    migrations::refuse_newer(&path, version)?;
    connections::retry_while_busy(patience, || set_pragmas(&connection))
        .map_err(|error| sqlite_error::to_store_error(&path, error))?;
    if version < migrations::LATEST_VERSION {
        migrations::migrate(&connection, &path, patience)?;
    }
    Ok((connection, path))
}

/// Returns the path by which a read-only store can be read.
///
/// A file in WAL mode needs other files next to it, which cannot be created in a read-only directory. If the WAL is
/// empty, the file is read without them.
pub(super) fn read_only_path(path: &Path, patience: Duration) -> Result<PathBuf, StoreError> {
    let path = path
        .canonicalize()
        .map_err(|error| StoreError::inaccessible("open", path, error))?;
    let has_log = wal_path(&path)
        .metadata()
        .is_ok_and(|metadata| metadata.len() > 0);
    let mut readable = Err(StoreError::ReadOnly { path: path.clone() });
    let unchanging = (!has_log).then(|| connections::immutable_uri(&path));
    for name in [Some(path.clone()), unchanging].into_iter().flatten() {
        readable = check_schema(&path, &name, patience).map(|()| name);
        if readable.is_ok() {
            break;
        }
    }
    readable
}

/// Returns the path of the store's WAL.
fn wal_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Checks that a store can be read under this name and has the current schema.
fn check_schema(path: &Path, name: &Path, patience: Duration) -> Result<(), StoreError> {
    let connection = connections::open_reader(name, patience)?;
    let version = read_schema_version(&connection)
        .map_err(|error| sqlite_error::to_store_error(path, error))?;
    match version {
        None => Err(StoreError::NotAStore { path: path.into() }),
        Some(version) if version < migrations::LATEST_VERSION => {
            Err(StoreError::ReadOnly { path: path.into() })
        }
        Some(version) => migrations::refuse_newer(path, version),
    }
}

/// Returns the schema version, 0 for an empty file; `None` if the file is not a store.
///
/// Reads in one transaction: another process may be creating the store right now.
fn read_schema_version(connection: &Connection) -> rusqlite::Result<Option<u32>> {
    let moment = connection.unchecked_transaction()?;
    // The transaction starts with the first read of a table, not with that of a pragma.
    let tables: i64 =
        moment.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let application: i32 = moment.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version = migrations::schema_version(&moment)?;
    moment.finish()?;
    if application == migrations::APPLICATION_ID {
        return Ok(Some(version));
    }
    Ok((application == 0 && version == 0 && tables == 0).then_some(0))
}

fn set_pragmas(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -16000;
        PRAGMA wal_autocheckpoint = 4000;",
    )
}

/// Creates the file and its directory if needed, accessible only to the user.
#[expect(
    clippy::disallowed_methods,
    reason = "the store is in the state directory or where the user puts it, and SQLite opens it by its path"
)]
fn ensure_file(path: &Path) -> Result<(), StoreError> {
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(StoreError::inaccessible("open", path, error)),
    }
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new("."));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| StoreError::inaccessible("create the directory", folder, error))?;
    match connections::create_private_file(path) {
        // Another process has just created it.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made
            .map(drop)
            .map_err(|error| StoreError::inaccessible("create", path, error)),
    }
}
