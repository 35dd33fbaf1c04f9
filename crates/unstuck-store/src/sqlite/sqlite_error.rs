//! What SQLite says, in words that help.

use std::path::Path;

use rusqlite::{Error, ErrorCode, ffi};

use crate::error::StoreError;

/// The error as it concerns the store in this file.
pub(super) fn to_store_error(path: &Path, error: Error) -> StoreError {
    let path = path.to_owned();
    let detail = error.to_string();
    match (error.sqlite_error_code(), extended_code(&error)) {
        (Some(ErrorCode::DatabaseCorrupt), _) => StoreError::Corrupt { path, detail },
        (Some(ErrorCode::NotADatabase), _) => StoreError::NotAStore { path },
        // A folder that cannot be written shows as files beside the store that cannot be opened.
        (Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen), _) => StoreError::ReadOnly { path },
        // The index of the log beside the store is a file too, and needs room like any other.
        (Some(ErrorCode::DiskFull), _) | (_, Some(ffi::SQLITE_IOERR_SHMSIZE)) => {
            StoreError::Full { path }
        }
        (Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked), _) => StoreError::Busy { path },
        (None, _) if is_invalid_value(&error) => StoreError::Corrupt { path, detail },
        _ => StoreError::database(error),
    }
}

/// Whether another connection is in the way, which passes.
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

/// Whether a value in the file is not what this program once wrote there.
fn is_invalid_value(error: &Error) -> bool {
    matches!(
        error,
        Error::FromSqlConversionFailure(..)
            | Error::InvalidColumnType(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::Utf8Error(..)
    )
}

/// The error that a text in this column is not the JSON that it should be.
pub(super) fn invalid_json(
    column: usize,
    error: impl std::error::Error + Send + Sync + 'static,
) -> Error {
    Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
}
