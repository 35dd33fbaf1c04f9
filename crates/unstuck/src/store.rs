//! Opens the store, without secrets in what is written, and with a hint where it cannot be opened.

use std::sync::Arc;

use anyhow::Result;
use unstuck_core::redact::Redactor;
use unstuck_store::{Location, Options, Redact, Store, StoreError};

use crate::report::hinted;
use crate::unrecorded;

/// Opens the store to write to it; it is made if there is none.
pub(crate) async fn open(location: &Location, redactor: Arc<Redactor>) -> Result<Store> {
    let opened = open_unexplained(location, redactor).await;
    opened.map_err(explained)
}

/// Opens the store to write to it, for whoever knows a way out when it cannot be written.
pub(crate) async fn open_unexplained(
    location: &Location,
    redactor: Arc<Redactor>,
) -> Result<Store, StoreError> {
    let options = Options {
        redact: Some(Redact::new(move |value| redactor.redact_value(value))),
        ..Options::default()
    };
    let store = Store::open(location, options).await?;
    unrecorded::take_up(&store, location).await;
    Ok(store)
}

/// Opens the store if there is one.
pub(crate) async fn open_existing(location: &Location) -> Result<Option<Store>> {
    let opened = Store::open_existing(location, Options::default()).await;
    let opened = opened.map_err(explained)?;
    if let Some(store) = &opened {
        unrecorded::take_up(store, location).await;
    }
    Ok(opened)
}

/// An error of the store, with the next step for the person who reads it.
pub(crate) fn explained(error: StoreError) -> anyhow::Error {
    match hint(&error) {
        Some(hint) => hinted(error.to_string(), hint),
        None => error.into(),
    }
}

fn hint(error: &StoreError) -> Option<String> {
    let hint = match error {
        StoreError::Unsupported { .. } => {
            "--store takes the path of a file, like ~/history/unstuck.db".into()
        }
        StoreError::Newer { .. } => {
            "update unstuck, or name another file with --store; nothing was changed".into()
        }
        StoreError::Corrupt { path, .. } => format!(
            "move it away with its -wal file and go on with a new one, or go back to a copy {}.bak-v… if there is one; nothing was changed",
            path.display()
        ),
        StoreError::NotAStore { .. } => "name another file with --store or UNSTUCK_STORE".into(),
        StoreError::ReadOnly { .. } => {
            "make it writable, or name a file elsewhere with --store or UNSTUCK_STORE".into()
        }
        StoreError::Unreachable { .. } => {
            "check the path and its permissions, or name a file elsewhere with --store or UNSTUCK_STORE".into()
        }
        StoreError::Full { path } => format!(
            "make room, or `unstuck store prune --older-than 30d` and `unstuck store vacuum`; what was kept before is safe in {}",
            path.display()
        ),
        StoreError::Busy { .. } => "try again; another unstuck is writing much, or has hung".into(),
        StoreError::LostLease { .. } => "let the other process go on with it".into(),
        StoreError::UnknownRun { .. } => {
            "`unstuck runs` lists the runs".into()
        }
        StoreError::Database(_) => {
            "`unstuck store check` tells more; --store FILE names another file".into()
        }
        StoreError::NoQuestion { .. }
        | StoreError::Answered { .. }
        | StoreError::OtherQuestion { .. } => "`unstuck inbox` lists what waits".into(),
        StoreError::SettingChanged { .. } => "look at it again, then change it".into(),
        StoreError::RunExists { .. } => return None,
    };
    Some(hint)
}
