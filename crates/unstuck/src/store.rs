//! Opens the store with redaction, and adds hints to its errors.

use std::sync::Arc;

use anyhow::Result;
use unstuck_core::redact::Redactor;
use unstuck_store::{EventPayloadRedactor, Store, StoreError, StoreLocation, StoreOptions};

use crate::error_report::error_with_hint;
use crate::event_spill;

/// Opens the store for writing; creates it if missing.
pub(crate) async fn open(location: &StoreLocation, redactor: Arc<Redactor>) -> Result<Store> {
    let opened = open_without_hint(location, redactor).await;
    opened.map_err(with_hint)
}

/// Opens the store for writing, without adding a hint, for callers that handle an unwritable store.
pub(crate) async fn open_without_hint(
    location: &StoreLocation,
    redactor: Arc<Redactor>,
) -> Result<Store, StoreError> {
    let options = StoreOptions {
        redact: Some(EventPayloadRedactor::new(move |value| {
            redactor.redact_value(value)
        })),
        ..StoreOptions::default()
    };
    let store = Store::open(location, options).await?;
    event_spill::recover(&store, location).await;
    Ok(store)
}

/// Opens the store if it exists.
pub(crate) async fn open_existing(location: &StoreLocation) -> Result<Option<Store>> {
    let opened = Store::open_existing(location, StoreOptions::default()).await;
    let opened = opened.map_err(with_hint)?;
    if let Some(store) = &opened {
        event_spill::recover(store, location).await;
    }
    Ok(opened)
}

/// Adds a hint to a store error.
pub(crate) fn with_hint(error: StoreError) -> anyhow::Error {
    match hint(&error) {
        Some(hint) => error_with_hint(error.to_string(), hint),
        None => error.into(),
    }
}

fn hint(error: &StoreError) -> Option<String> {
    let hint = match error {
        StoreError::Unsupported { .. } => {
            "specify the path of a file, such as --store ~/history/unstuck.db".into()
        }
        StoreError::NewerSchema { .. } => {
            "update unstuck, or specify another file with --store; nothing was changed".into()
        }
        StoreError::Corrupt { path, .. } => format!(
            "move it and its -wal file away to start with a new one, or restore a backup ({}.bak-v…) if one exists; nothing was changed",
            path.display()
        ),
        StoreError::NotAStore { .. } => "specify another file with --store or UNSTUCK_STORE".into(),
        StoreError::ReadOnly { .. } => {
            "make it writable, or specify another file with --store or UNSTUCK_STORE".into()
        }
        StoreError::Inaccessible { .. } => {
            "check the path and its permissions, or specify another file with --store or UNSTUCK_STORE".into()
        }
        StoreError::Full { path } => format!(
            "free disk space, or run `unstuck store prune --older-than 30d` and `unstuck store vacuum`; existing data in {} is safe",
            path.display()
        ),
        StoreError::Busy { .. } => "retry later; another unstuck process is busy writing or hangs".into(),
        StoreError::LostLease { .. } => "let the other process continue it".into(),
        StoreError::UnknownRun { .. } => {
            "`unstuck runs` lists runs".into()
        }
        StoreError::Database(_) => {
            "check it with `unstuck store check`, or specify another file with --store FILE".into()
        }
        StoreError::UnknownEscalation { .. }
        | StoreError::AlreadyAnswered { .. }
        | StoreError::EscalationChanged { .. } => "`unstuck inbox` lists open requests".into(),
        StoreError::SettingChanged { .. } => "reload it, then apply your change again".into(),
        StoreError::RunExists { .. } => return None,
    };
    Some(hint)
}
