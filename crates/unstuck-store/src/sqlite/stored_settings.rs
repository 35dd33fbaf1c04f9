//! Stored settings.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;
use unstuck_core::Timestamp;

use super::run_and_event_queries::sql_limit;
use super::{connections, sqlite_error};
use crate::error::StoreError;
use crate::stored_settings::{ExpectedVersion, SettingHistoryEntry, SettingUpdate, StoredSetting};

/// The busy timeout for unopened stores.
const PEEK_TIMEOUT: Duration = Duration::from_secs(2);

const FIND: &str = "SELECT key, value, version, at, author FROM settings WHERE key = ?1";

const PUT: &str =
    "INSERT OR REPLACE INTO settings (key, value, version, at, author) VALUES (?1, ?2, ?3, ?4, ?5)";

const INSERT_REVISION: &str =
    "INSERT INTO setting_changes (key, version, at, author, before, after)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

/// Returns the settings with this key prefix from an unopened store; empty if there is no store yet.
pub(crate) fn read_settings_at(
    path: &Path,
    prefix: &str,
) -> Result<Vec<StoredSetting>, StoreError> {
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let connection = connections::open_reader(path, PEEK_TIMEOUT)?;
    let told = |error| sqlite_error::to_store_error(path, error);
    let known = connection.table_exists(None, "settings").map_err(told)?;
    if known {
        list(&connection, prefix).map_err(told)
    } else {
        // The store was created by an older version.
        Ok(Vec::new())
    }
}

/// Returns the value of a key.
pub(super) fn find(connection: &Connection, key: &str) -> rusqlite::Result<Option<StoredSetting>> {
    let row = find_row(connection, key)?;
    Ok(row.filter(|setting| !setting.value.is_null()))
}

/// Returns the values with this key prefix, in key order.
pub(super) fn list(connection: &Connection, prefix: &str) -> rusqlite::Result<Vec<StoredSetting>> {
    let sql = "SELECT key, value, version, at, author FROM settings
        WHERE key >= ?1 AND key < ?2 AND value IS NOT NULL ORDER BY key";
    let mut statement = connection.prepare_cached(sql)?;
    let end = format!("{prefix}\u{10FFFF}");
    let rows = statement.query_map([prefix, &end], setting_from_row)?;
    rows.collect()
}

/// Returns the changes of a key, newest first.
pub(super) fn revisions(
    connection: &Connection,
    key: &str,
    most: usize,
) -> rusqlite::Result<Vec<SettingHistoryEntry>> {
    let sql = "SELECT version, at, author, before, after FROM setting_changes
        WHERE key = ?1 ORDER BY version DESC LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![key, sql_limit(Some(most))], |row| {
        Ok(SettingHistoryEntry {
            version: row.get::<_, i64>(0)? as u64,
            at: Timestamp::from_millis(row.get(1)?),
            by: row.get(2)?,
            before: value_column(row, 3)?,
            after: value_column(row, 4)?,
        })
    })?;
    rows.collect()
}

/// Changes a value, or returns why it is rejected.
pub(super) fn put(
    connection: &Connection,
    put: &SettingUpdate,
) -> rusqlite::Result<Result<StoredSetting, StoreError>> {
    let row = find_row(connection, &put.key)?;
    let version = row.as_ref().map_or(0, |row| row.version);
    let present = row.filter(|setting| !setting.value.is_null());
    let fits = match (put.expected, &present) {
        (ExpectedVersion::Anything, _) | (ExpectedVersion::Nothing, None) => true,
        (ExpectedVersion::Version(wanted), Some(present)) => wanted == present.version,
        (ExpectedVersion::Nothing, Some(_)) | (ExpectedVersion::Version(_), None) => false,
    };
    if !fits {
        return Ok(Err(StoreError::SettingChanged {
            key: put.key.clone(),
            current: present.map(Box::new),
        }));
    }
    let wanted = put.value.as_ref().filter(|value| !value.is_null());
    match present {
        // An equal value is not written, and keeps its version.
        Some(present) if Some(&present.value) == wanted => return Ok(Ok(present)),
        None if wanted.is_none() => {}
        present => {
            let text = |value: &Value| value.to_string();
            let (before, after) = (present.map(|one| text(&one.value)), wanted.map(text));
            let (version, at) = (version as i64 + 1, put.at.millis());
            let change = params![put.key, version, at, put.by, before, after];
            connection
                .prepare_cached(INSERT_REVISION)?
                .execute(change)?;
            let row = params![put.key, after, version, at, put.by];
            connection.prepare_cached(PUT)?.execute(row)?;
            return Ok(Ok(updated_setting(put, wanted, version as u64)));
        }
    }
    Ok(Ok(updated_setting(put, None, version)))
}

fn updated_setting(put: &SettingUpdate, value: Option<&Value>, version: u64) -> StoredSetting {
    StoredSetting {
        key: put.key.clone(),
        value: value.cloned().unwrap_or_default(),
        version,
        at: put.at,
        by: put.by.clone(),
    }
}

/// Returns the row of a key, including deleted values.
fn find_row(connection: &Connection, key: &str) -> rusqlite::Result<Option<StoredSetting>> {
    let mut statement = connection.prepare_cached(FIND)?;
    statement.query_row([key], setting_from_row).optional()
}

fn setting_from_row(row: &Row<'_>) -> rusqlite::Result<StoredSetting> {
    Ok(StoredSetting {
        key: row.get(0)?,
        value: value_column(row, 1)?.unwrap_or_default(),
        version: row.get::<_, i64>(2)? as u64,
        at: Timestamp::from_millis(row.get(3)?),
        by: row.get(4)?,
    })
}

fn value_column(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Value>> {
    let text: Option<String> = row.get(column)?;
    let read = |text: String| serde_json::from_str(&text);
    let value = text.map(read).transpose();
    value.map_err(|error| sqlite_error::invalid_json(column, error))
}
