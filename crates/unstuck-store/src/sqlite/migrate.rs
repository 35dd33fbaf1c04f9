//! Brings an older store up to date, by itself and forward only, after a copy of it was put aside.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior, backup};

use super::{connect, failure, questions, recount, told};
use crate::error::StoreError;

/// Marks a file as a store of unstuck: the letters `unst`.
pub(super) const APPLICATION: i32 = 0x756e_7374;

/// One step from a schema to the next.
struct Migration {
    sql: &'static str,
    /// What SQL alone cannot do.
    then: fn(&Connection) -> rusqlite::Result<()>,
}

const MIGRATIONS: &[Migration] = &[
    Migration {
        sql: include_str!("../../migrations/sqlite/0001_events.sql"),
        then: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/sqlite/0002_hourly.sql"),
        then: recount::fill_hourly,
    },
    Migration {
        sql: include_str!("../../migrations/sqlite/0003_outbox.sql"),
        then: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/sqlite/0004_questions.sql"),
        then: questions::fill,
    },
    Migration {
        sql: include_str!("../../migrations/sqlite/0005_calls.sql"),
        then: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/sqlite/0006_dashboard.sql"),
        then: recount::fill_dashboard,
    },
    Migration {
        sql: include_str!("../../migrations/sqlite/0007_many_questions.sql"),
        then: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/sqlite/0008_daily.sql"),
        then: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/sqlite/0009_upstreams.sql"),
        then: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/sqlite/0010_told.sql"),
        then: told::fill,
    },
];

/// The newest schema that is known here.
pub(super) const KNOWN: u32 = MIGRATIONS.len() as u32;

pub(super) fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

pub(super) fn refuse_newer(path: &Path, found: u32) -> Result<(), StoreError> {
    if found <= KNOWN {
        return Ok(());
    }
    Err(StoreError::Newer {
        path: path.to_owned(),
        found,
        known: KNOWN,
    })
}

/// Takes all steps that are missing, in one transaction.
pub(super) fn migrate(
    connection: &Connection,
    path: &Path,
    patience: Duration,
) -> Result<(), StoreError> {
    let told = |error| failure::told(path, error);
    let begin = || Transaction::new_unchecked(connection, TransactionBehavior::Immediate);
    let transaction = connect::patiently(patience, begin).map_err(told)?;
    // Another process may have been faster.
    let old = version(&transaction).map_err(told)?;
    refuse_newer(path, old)?;
    if (1..KNOWN).contains(&old) {
        put_aside(path, old, patience)?;
    }
    apply(&transaction, old).map_err(told)?;
    transaction.commit().map_err(told)
}

fn apply(transaction: &Transaction<'_>, old: u32) -> rusqlite::Result<()> {
    for step in MIGRATIONS.iter().skip(old as usize) {
        transaction.execute_batch(step.sql)?;
        (step.then)(transaction)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", KNOWN)
}

/// Copies the store as it is. The write lock is held, so it stays as it is meanwhile.
fn put_aside(path: &Path, old: u32, patience: Duration) -> Result<(), StoreError> {
    let aside = free_name(path, old);
    connect::create(&aside).map_err(|error| StoreError::unreachable("create", &aside, error))?;
    let from = connect::reader(path, patience)?;
    let copy = || {
        let mut to = Connection::open(&aside)?;
        backup::Backup::new(&from, &mut to)?.run_to_completion(4096, Duration::ZERO, None)
    };
    copy().map_err(|error| failure::told(&aside, error))
}

/// The first name for the copy that is not taken: `unstuck.db.bak-v1`, then `unstuck.db.bak-v1.2`.
fn free_name(path: &Path, old: u32) -> PathBuf {
    let named = |suffix: String| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let others = (2..).map(|number| named(format!(".bak-v{old}.{number}")));
    let mut names = std::iter::once(named(format!(".bak-v{old}"))).chain(others);
    names
        .find(|name| !name.exists())
        .unwrap_or_else(|| named(format!(".bak-v{old}")))
}
