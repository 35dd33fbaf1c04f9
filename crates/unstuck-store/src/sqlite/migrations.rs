//! Automatic forward-only migrations; a backup is made first.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, Transaction, TransactionBehavior, backup};

use super::{
    connections, escalations, hourly_daily_tables, rebuild_counts, reported_usage, sqlite_error,
};
use crate::error::StoreError;

/// The application id of a store file: the letters `unst`.
pub(super) const APPLICATION_ID: i32 = 0x756e_7374;

/// A migration from one schema version to the next.
struct Migration {
    sql: &'static str,
    /// Fills new tables from the existing data; it runs after the SQL of all migrations, so it uses the newest schema.
    backfill: fn(&Connection) -> rusqlite::Result<()>,
}

const MIGRATIONS: &[Migration] = &[
    Migration {
        sql: include_str!("../../migrations/sqlite/0001_events.sql"),
        backfill: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/sqlite/0002_hourly.sql"),
        backfill: rebuild_counts::backfill_hourly,
    },
    Migration {
        sql: include_str!("../../migrations/sqlite/0003_outbox.sql"),
        backfill: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/sqlite/0004_questions.sql"),
        backfill: escalations::backfill,
    },
    Migration {
        sql: include_str!("../../migrations/sqlite/0005_calls.sql"),
        backfill: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/sqlite/0006_dashboard.sql"),
        backfill: rebuild_counts::backfill_dashboard,
    },
    Migration {
        sql: include_str!("../../migrations/sqlite/0007_many_questions.sql"),
        backfill: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/sqlite/0008_daily.sql"),
        backfill: hourly_daily_tables::backfill_daily,
    },
    Migration {
        sql: include_str!("../../migrations/sqlite/0009_upstreams.sql"),
        backfill: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/sqlite/0010_told.sql"),
        backfill: reported_usage::backfill,
    },
    Migration {
        sql: include_str!("../../migrations/sqlite/0011_truncated_calls.sql"),
        backfill: |_| Ok(()),
    },
    Migration {
        sql: include_str!("../../migrations/sqlite/0012_release_waves.sql"),
        backfill: |_| Ok(()),
    },
];

/// The newest supported schema version.
pub(super) const LATEST_VERSION: u32 = MIGRATIONS.len() as u32;

pub(super) fn schema_version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

pub(super) fn refuse_newer(path: &Path, found: u32) -> Result<(), StoreError> {
    if found <= LATEST_VERSION {
        return Ok(());
    }
    Err(StoreError::NewerSchema {
        path: path.to_owned(),
        found,
        known: LATEST_VERSION,
    })
}

/// Applies all missing migrations in one transaction.
pub(super) fn migrate(
    connection: &Connection,
    path: &Path,
    patience: Duration,
) -> Result<(), StoreError> {
    let told = |error| sqlite_error::to_store_error(path, error);
    let begin = || Transaction::new_unchecked(connection, TransactionBehavior::Immediate);
    let transaction = connections::retry_while_busy(patience, begin).map_err(told)?;
    // Another process may have migrated it already.
    let old = schema_version(&transaction).map_err(told)?;
    refuse_newer(path, old)?;
    if (1..LATEST_VERSION).contains(&old) {
        back_up(path, old, patience)?;
    }
    apply(&transaction, old).map_err(told)?;
    transaction.commit().map_err(told)
}

fn apply(transaction: &Transaction<'_>, old: u32) -> rusqlite::Result<()> {
    let missing = MIGRATIONS.get(old as usize..).unwrap_or_default();
    for migration in missing {
        transaction.execute_batch(migration.sql)?;
    }
    for migration in missing {
        (migration.backfill)(transaction)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", LATEST_VERSION)
}

/// Copies the store. The write lock is held, so it does not change meanwhile.
fn back_up(path: &Path, old: u32, patience: Duration) -> Result<(), StoreError> {
    let aside = free_backup_path(path, old);
    connections::create_private_file(&aside)
        .map_err(|error| StoreError::inaccessible("create", &aside, error))?;
    let from = connections::open_reader(path, patience)?;
    let copy = || {
        let mut to = Connection::open(&aside)?;
        backup::Backup::new(&from, &mut to)?.run_to_completion(4096, Duration::ZERO, None)
    };
    copy().map_err(|error| sqlite_error::to_store_error(&aside, error))
}

/// Returns the first unused backup name: `unstuck.db.bak-v1`, then `unstuck.db.bak-v1.2`.
fn free_backup_path(path: &Path, old: u32) -> PathBuf {
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
