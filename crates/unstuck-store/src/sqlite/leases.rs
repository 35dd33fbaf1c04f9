//! Stored leases; every change is part of a writer transaction.

use rusqlite::{Connection, OptionalExtension, params};
use unstuck_core::Timestamp;
use unstuck_core::event::RunId;

use super::sqlite_error;
use crate::error::StoreError;
use crate::lease::{Lease, LeaseChange, LeaseClaim, LeaseClaimOutcome, LeaseOwner, LeaseToken};

const FIND: &str = "SELECT number, owner, heartbeat FROM leases WHERE run = ?1";

const ALL: &str = "SELECT run FROM leases WHERE owner IS NOT NULL";

const TAKE: &str = "INSERT INTO leases (run, number, owner, heartbeat) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (run) DO UPDATE SET number = ?2, owner = ?3, heartbeat = ?4";

const RENEW: &str = "UPDATE leases SET heartbeat = max(heartbeat, ?3)
    WHERE run = ?1 AND number = ?2 AND owner IS NOT NULL";

const RELEASE: &str = "UPDATE leases SET owner = NULL WHERE run = ?1 AND number = ?2";

const HOLDS: &str = "SELECT 1 FROM leases WHERE run = ?1 AND number = ?2 AND owner IS NOT NULL";

/// Applies a change or returns why it is rejected; the outer error is a database error.
pub(super) fn apply_change(
    connection: &Connection,
    change: &LeaseChange,
) -> rusqlite::Result<Result<LeaseClaimOutcome, StoreError>> {
    match change {
        LeaseChange::Claim(request) => claim(connection, request).map(Ok),
        LeaseChange::Renew(token, now) => {
            let mut statement = connection.prepare_cached(RENEW)?;
            let renewed = statement.execute(params![
                token.run.as_str(),
                to_sql_integer(token),
                now.millis()
            ])?;
            Ok(ensure_held(token, renewed == 1))
        }
        LeaseChange::Release(token) => {
            release(connection, token)?;
            Ok(Ok(LeaseClaimOutcome::Granted(token.clone())))
        }
    }
}

/// Releases a run.
pub(super) fn release(connection: &Connection, token: &LeaseToken) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(RELEASE)?;
    statement.execute(params![token.run.as_str(), to_sql_integer(token)])?;
    Ok(())
}

/// Returns all held leases.
pub(super) fn load_all(connection: &Connection) -> rusqlite::Result<Vec<Lease>> {
    let mut statement = connection.prepare_cached(ALL)?;
    let runs = statement.query_map([], |row| row.get::<_, String>(0))?;
    let leases = runs.map(|run| Ok(find_lease(connection, &RunId::new(run?))?.1));
    let leases: rusqlite::Result<Vec<_>> = leases.collect();
    Ok(leases?.into_iter().flatten().collect())
}

/// Returns whether the lease is held under this token.
pub(super) fn is_held(connection: &Connection, token: &LeaseToken) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare_cached(HOLDS)?;
    statement.exists(params![token.run.as_str(), to_sql_integer(token)])
}

fn claim(connection: &Connection, request: &LeaseClaim) -> rusqlite::Result<LeaseClaimOutcome> {
    let (newest, lease) = find_lease(connection, &request.run)?;
    if let Some(lease) = lease {
        let declared_dead = request.replaces.as_ref() == Some(&lease.token);
        if !lease.is_expired(request.now) && !declared_dead {
            return Ok(LeaseClaimOutcome::HeldBy(lease));
        }
    }
    let token = LeaseToken {
        run: request.run.clone(),
        number: newest + 1,
    };
    let owner = serde_json::to_string(&request.owner)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    connection.prepare_cached(TAKE)?.execute(params![
        token.run.as_str(),
        to_sql_integer(&token),
        owner,
        request.now.millis()
    ])?;
    Ok(LeaseClaimOutcome::Granted(token))
}

/// Returns the newest lease number of a run, and the lease if it is held.
fn find_lease(connection: &Connection, run: &RunId) -> rusqlite::Result<(u64, Option<Lease>)> {
    let row = |row: &rusqlite::Row<'_>| {
        let owner: Option<String> = row.get(1)?;
        Ok((row.get::<_, i64>(0)? as u64, owner, row.get::<_, i64>(2)?))
    };
    let mut statement = connection.prepare_cached(FIND)?;
    let found = statement.query_row([run.as_str()], row).optional()?;
    let Some((number, owner, heartbeat)) = found else {
        return Ok((0, None));
    };
    let owner: Option<LeaseOwner> = owner
        .map(|owner| serde_json::from_str(&owner))
        .transpose()
        .map_err(|error| sqlite_error::invalid_json(1, error))?;
    let lease = owner.map(|owner| Lease {
        token: LeaseToken {
            run: run.clone(),
            number,
        },
        owner,
        heartbeat: Timestamp::from_millis(heartbeat),
    });
    Ok((number, lease))
}

fn ensure_held(token: &LeaseToken, held: bool) -> Result<LeaseClaimOutcome, StoreError> {
    if held {
        return Ok(LeaseClaimOutcome::Granted(token.clone()));
    }
    Err(StoreError::LostLease {
        run: token.run.clone(),
    })
}

/// Returns the number as SQLite stores it; a number out of range was never issued.
fn to_sql_integer(token: &LeaseToken) -> i64 {
    i64::try_from(token.number).unwrap_or(-1)
}
