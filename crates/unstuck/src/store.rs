//! Opens the store, without secrets in what is written, and with a hint where it cannot be opened.

use std::sync::Arc;

use anyhow::Result;
use unstuck_core::redact::Redactor;
use unstuck_store::{Location, Options, Redact, Store, StoreError};

use crate::report::hinted;

/// Opens the store to write to it; it is made if there is none.
pub(crate) async fn open(location: &Location, redactor: Arc<Redactor>) -> Result<Store> {
    let options = Options {
        redact: Some(Redact::new(move |value| redactor.redact_value(value))),
        ..Options::default()
    };
    Store::open(location, options).await.map_err(explained)
}

/// Opens the store if there is one.
pub(crate) async fn open_existing(location: &Location) -> Result<Option<Store>> {
    let opened = Store::open_existing(location, Options::default()).await;
    opened.map_err(explained)
}

/// What went wrong with the store, and what to do next.
pub(crate) fn explained(error: StoreError) -> anyhow::Error {
    let hint = match &error {
        StoreError::Newer { .. } => "update unstuck, or name another file with --store",
        StoreError::Corrupt { .. } => {
            "`unstuck store check` tells more; --store FILE names another file, and the damaged one is left as it is"
        }
        StoreError::NotAStore { .. } => "--store FILE names another file",
        StoreError::ReadOnly { .. } | StoreError::Unreachable { .. } => {
            "--store FILE or UNSTUCK_STORE names a place that can be written"
        }
        StoreError::Full { .. } => {
            "free some space, or `unstuck store prune --older-than 30d` once there is some; nothing was lost"
        }
        StoreError::Busy { .. } => "try again; `unstuck runs` shows what is running",
        StoreError::Unsupported { .. } => "--store FILE names a file",
        _ => return error.into(),
    };
    hinted(error.to_string(), hint)
}
