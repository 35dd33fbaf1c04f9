//! Converts SQLite errors to store errors.

use std::path::Path;

use rusqlite::{Error, ErrorCode, ffi};

use crate::error::StoreError;

/// Converts an error of the store in this file.
pub(super) fn to_store_error(path: &Path, error: Error) -> StoreError {
    let path = path.to_owned();
    let detail = error.to_string();
    match (error.sqlite_error_code(), extended_code(&error)) {
        (Some(ErrorCode::DatabaseCorrupt), _) => StoreError::Corrupt { path, detail },
        (Some(ErrorCode::NotADatabase), _) => StoreError::NotAStore { path },
        // A read-only directory shows up as files next to the store that cannot be opened.
        (Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen), _) => StoreError::ReadOnly { path },
        // The WAL index is a file too, and needs disk space like any other.
        (Some(ErrorCode::DiskFull), _) | (_, Some(ffi::SQLITE_IOERR_SHMSIZE)) => {
            StoreError::Full { path }
        }
        (Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked), _) => StoreError::Busy { path },
        (None, _) if is_invalid_value(&error) => StoreError::Corrupt { path, detail },
        _ => StoreError::database(error),
    }
}

/// Returns whether another connection holds the lock, which is temporary.
pub(super) fn is_busy(error: &Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(
        code,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

fn extended_code(error: &Error) -> Option<i32> {
    error.sqlite_error().map(|error| error.extended_code)
}

/// Returns whether a stored value is not in the format this program writes.
fn is_invalid_value(error: &Error) -> bool {
    matches!(
        error,
        Error::FromSqlConversionFailure(..)
            | Error::InvalidColumnType(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..)
    )
}

/// Returns the error for a column with invalid JSON.
pub(super) fn invalid_json(
    column: usize,
    error: impl std::error::Error + Send + Sync + 'static,
) -> Error {
    Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
}
