//! What people have set, in the file.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;
use unstuck_core::Timestamp;

use super::read::limit;
use super::{connect, failure};
use crate::error::StoreError;
use crate::settings::{Expected, PutSetting, Setting, SettingChange};

/// How long is waited for others by who only looks.
const PATIENCE: Duration = Duration::from_secs(2);

const FIND: &str = "SELECT key, value, version, at, author FROM settings WHERE key = ?1";

const PUT: &str =
    "INSERT OR REPLACE INTO settings (key, value, version, at, author) VALUES (?1, ?2, ?3, ?4, ?5)";

const KEEP: &str = "INSERT INTO setting_changes (key, version, at, author, before, after)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// All values whose keys begin like this, of a store that is not opened for it; none where there is none yet.
pub(crate) fn peek(path: &Path, prefix: &str) -> Result<Vec<Setting>, StoreError> {
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let connection = connect::reader(path, PATIENCE)?;
    let told = |error| failure::told(path, error);
    let known = connection.table_exists(None, "settings").map_err(told)?;
    match known {
        true => list(&connection, prefix).map_err(told),
        // It was made by an older program.
        false => Ok(Vec::new()),
    }
}

/// The value of a key, if it has one.
pub(super) fn find(connection: &Connection, key: &str) -> rusqlite::Result<Option<Setting>> {
    let row = row(connection, key)?;
    Ok(row.filter(|setting| !setting.value.is_null()))
}

/// All values whose keys begin like this, in the order of their keys.
pub(super) fn list(connection: &Connection, prefix: &str) -> rusqlite::Result<Vec<Setting>> {
    let sql = "SELECT key, value, version, at, author FROM settings
        WHERE key >= ?1 AND key < ?2 AND value IS NOT NULL ORDER BY key";
    let mut statement = connection.prepare_cached(sql)?;
    let end = format!("{prefix}\u{10FFFF}");
    let rows = statement.query_map([prefix, &end], setting)?;
    rows.collect()
}

/// The changes of a key, the newest first.
pub(super) fn changes(
    connection: &Connection,
    key: &str,
    most: usize,
) -> rusqlite::Result<Vec<SettingChange>> {
    let sql = "SELECT version, at, author, before, after FROM setting_changes
        WHERE key = ?1 ORDER BY version DESC LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![key, limit(Some(most))], |row| {
        Ok(SettingChange {
            version: row.get::<_, i64>(0)? as u64,
            at: Timestamp::from_millis(row.get(1)?),
            by: row.get(2)?,
            before: value(row, 3)?,
            after: value(row, 4)?,
        })
    })?;
    rows.collect()
}

/// Changes a value, or says why not.
pub(super) fn put(
    connection: &Connection,
    put: &PutSetting,
) -> rusqlite::Result<Result<Setting, StoreError>> {
    let row = row(connection, &put.key)?;
    let version = row.as_ref().map_or(0, |row| row.version);
    let present = row.filter(|setting| !setting.value.is_null());
    let fits = match (put.expected, &present) {
        (Expected::Anything, _) | (Expected::Nothing, None) => true,
        (Expected::Version(wanted), Some(present)) => wanted == present.version,
        (Expected::Nothing, Some(_)) | (Expected::Version(_), None) => false,
    };
    if !fits {
        return Ok(Err(StoreError::SettingChanged {
            key: put.key.clone(),
            present: present.map(Box::new),
        }));
    }
    let wanted = put.value.as_ref().filter(|value| !value.is_null());
    match present {
        // What is there already is not changed, and keeps its version.
        Some(present) if Some(&present.value) == wanted => return Ok(Ok(present)),
        None if wanted.is_none() => {}
        present => {
            let text = |value: &Value| value.to_string();
            let (before, after) = (present.map(|one| text(&one.value)), wanted.map(text));
            let (version, at) = (version as i64 + 1, put.at.millis());
            let change = params![put.key, version, at, put.by, before, after];
            connection.prepare_cached(KEEP)?.execute(change)?;
            let row = params![put.key, after, version, at, put.by];
            connection.prepare_cached(PUT)?.execute(row)?;
            return Ok(Ok(changed(put, wanted, version as u64)));
        }
    }
    Ok(Ok(changed(put, None, version)))
}

fn changed(put: &PutSetting, value: Option<&Value>, version: u64) -> Setting {
    Setting {
        key: put.key.clone(),
        value: value.cloned().unwrap_or_default(),
        version,
        at: put.at,
        by: put.by.clone(),
    }
}

/// The row of a key, also where its value was taken away.
fn row(connection: &Connection, key: &str) -> rusqlite::Result<Option<Setting>> {
    let mut statement = connection.prepare_cached(FIND)?;
    statement.query_row([key], setting).optional()
}

fn setting(row: &Row<'_>) -> rusqlite::Result<Setting> {
    Ok(Setting {
        key: row.get(0)?,
        value: value(row, 1)?.unwrap_or_default(),
        version: row.get::<_, i64>(2)? as u64,
        at: Timestamp::from_millis(row.get(3)?),
        by: row.get(4)?,
    })
}

fn value(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Value>> {
    let text: Option<String> = row.get(column)?;
    let read = |text: String| serde_json::from_str(&text);
    let value = text.map(read).transpose();
    value.map_err(|error| failure::unreadable(column, error))
}
