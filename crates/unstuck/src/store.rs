//! Where the history is kept, and what to do when it cannot be used.

use anyhow::Result;
use unstuck_store::{Location, StoreError};

use crate::environment;
use crate::report::hinted;

/// Where the store is: as the user says, or in the folder for such things.
pub(crate) fn location(given: Option<&str>) -> Result<Location> {
    if let Some(given) = given.filter(|given| !given.is_empty()) {
        return Location::parse(given).map_err(told);
    }
    let folder = environment::state_dir().ok_or_else(|| {
        hinted(
            "there is no place for the history: neither XDG_STATE_HOME nor HOME is set",
            "name a file with --store or UNSTUCK_STORE",
        )
    })?;
    Ok(Location::file(folder.join("unstuck.db")))
}

/// An error of the store, with the next step for the person who reads it.
pub(crate) fn told(error: StoreError) -> anyhow::Error {
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
            "make it writable, or name a file elsewhere with --store".into()
        }
        StoreError::Unreachable { .. } => {
            "check the path and its permissions, or name a file elsewhere with --store".into()
        }
        StoreError::Full { path } => format!(
            "make room, or `unstuck store prune --older-than 30d` and `unstuck store vacuum`; what was kept before is safe in {}",
            path.display()
        ),
        StoreError::Busy { .. } => "try again; another unstuck is writing much, or has hung".into(),
        StoreError::LostLease { .. } => "let the other process go on with it".into(),
        StoreError::UnknownRun { .. } => {
            "`unstuck store export --event run_started` shows the ids of all runs".into()
        }
        StoreError::RunExists { .. } | StoreError::Database(_) => return None,
    };
    Some(hint)
}
