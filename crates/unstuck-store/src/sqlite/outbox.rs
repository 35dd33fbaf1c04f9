//! The stored outbox; every change is part of a writer transaction.

use rusqlite::{Connection, Row, params};
use serde_json::Value;
use unstuck_core::Timestamp;
use unstuck_core::event::{EventRecord, RunId};

use super::run_and_event_queries::{WhereClause, sql_limit};
use super::sqlite_error;
use crate::append_request::PreparedOutboxMessage;
use crate::outbox::{
    DeliveryResult, DeliveryState, OUTBOX_CLAIM_TTL, OutboxChange, OutboxFilter, OutboxMessage,
};

const INSERT_MESSAGE: &str = "INSERT INTO outbox
    (id, run, occasion, target, body, grp, created, not_before, due)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8)";

/// The end of the latest quiet period of a group and target.
const SELECT_QUIET_END: &str = "SELECT max(not_before) FROM outbox WHERE grp = ?1 AND target = ?2";

const SELECT_DUE: &str = "SELECT grp, target FROM outbox
    WHERE closed IS NULL AND due <= ?1 AND held_until <= ?3
    GROUP BY grp, target ORDER BY min(place) LIMIT ?2";

const MESSAGE_COLUMNS: &str =
    "id, run, occasion, target, body, grp, created, due, attempts, last_error,
    closed, delivered";

const CLAIM: &str = "UPDATE outbox SET held_until = ?2 WHERE id = ?1";

const DELIVERED: &str =
    "UPDATE outbox SET closed = ?2, delivered = 1, held_until = 0 WHERE id = ?1";

const FAILED: &str =
    "UPDATE outbox SET attempts = attempts + 1, last_error = ?2, due = ifnull(?3, due),
    closed = iif(?3 IS NULL, ?4, NULL), held_until = 0 WHERE id = ?1 AND closed IS NULL";

/// Writes messages about events that were just written.
pub(super) fn insert_messages(
    connection: &Connection,
    messages: &[PreparedOutboxMessage],
    written: &[EventRecord],
) -> rusqlite::Result<()> {
    let mut last = (0, 0);
    for message in messages {
        let Some(about) = written.get(message.event) else {
            continue;
        };
        last = match last {
            (seq, number) if seq == about.seq => (seq, number + 1),
            _ => (about.seq, 1),
        };
        let id = format!("{}.{}.{}", about.run, about.seq, last.1);
        let not_before = not_before(connection, message, about.at)?;
        connection.prepare_cached(INSERT_MESSAGE)?.execute(params![
            id,
            about.run.as_str(),
            message.event_name,
            message.target,
            message.body,
            message.group,
            about.at.millis(),
            not_before.millis(),
        ])?;
    }
    Ok(())
}

/// Returns the earliest send time of a new message: now, or the end of the quiet period.
fn not_before(
    connection: &Connection,
    message: &PreparedOutboxMessage,
    now: Timestamp,
) -> rusqlite::Result<Timestamp> {
    if message.window.is_zero() {
        return Ok(now);
    }
    let mut statement = connection.prepare_cached(SELECT_QUIET_END)?;
    let newest: Option<i64> =
        statement.query_row(params![message.group, message.target], |row| row.get(0))?;
    Ok(match newest.map(Timestamp::from_millis) {
        Some(newest) if newest > now => newest,
        Some(newest) if newest.after(message.window) > now => newest.after(message.window),
        _ => now,
    })
}

/// Applies a change.
pub(super) fn apply_change(
    connection: &Connection,
    change: &OutboxChange,
) -> rusqlite::Result<Vec<OutboxMessage>> {
    match change {
        OutboxChange::Claim {
            now,
            due_by,
            groups,
        } => claim_due(connection, *now, *due_by, *groups),
        OutboxChange::RecordDelivery {
            ids,
            result: sent,
            now,
        } => {
            for id in ids {
                record_delivery(connection, id, sent, *now)?;
            }
            Ok(Vec::new())
        }
    }
}

fn record_delivery(
    connection: &Connection,
    id: &str,
    sent: &DeliveryResult,
    now: Timestamp,
) -> rusqlite::Result<usize> {
    match sent {
        DeliveryResult::Delivered => {
            let mut statement = connection.prepare_cached(DELIVERED)?;
            statement.execute(params![id, now.millis()])
        }
        DeliveryResult::Failed { error, next } => {
            let next = next.map(Timestamp::millis);
            let mut statement = connection.prepare_cached(FAILED)?;
            statement.execute(params![id, error, next, now.millis()])
        }
    }
}

/// Claims due messages, and those that can be sent along, exclusively for a while.
fn claim_due(
    connection: &Connection,
    now: Timestamp,
    due_by: Timestamp,
    groups: usize,
) -> rusqlite::Result<Vec<OutboxMessage>> {
    let (now, by, held) = (
        now.millis(),
        due_by.millis(),
        now.after(OUTBOX_CLAIM_TTL).millis(),
    );
    let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let groups: Vec<(String, String)> = connection
        .prepare_cached(SELECT_DUE)?
        .query_map(params![by, sql_limit(Some(groups)), now], row)?
        .collect::<rusqlite::Result<_>>()?;
    let sql = format!(
        "SELECT {MESSAGE_COLUMNS} FROM outbox WHERE grp = ?1 AND target = ?2
        AND closed IS NULL AND not_before <= ?3 AND held_until <= ?4 ORDER BY place"
    );
    let mut taken = Vec::new();
    for (group, target) in groups {
        let mut statement = connection.prepare_cached(&sql)?;
        let letters = statement.query_map(params![group, target, by, now], message_from_row)?;
        for letter in letters {
            taken.push(letter?);
        }
    }
    for letter in &taken {
        let mut statement = connection.prepare_cached(CLAIM)?;
        statement.execute(params![letter.id, held])?;
    }
    Ok(taken)
}

/// Returns the matching messages, newest first.
pub(super) fn list(
    connection: &Connection,
    filter: &OutboxFilter,
) -> rusqlite::Result<Vec<OutboxMessage>> {
    let mut conditions = WhereClause::default();
    conditions.add_equal("run", filter.run.as_ref().map(RunId::as_str));
    let states = filter.state.iter().map(|state| match state {
        DeliveryState::Waiting => "closed IS NULL",
        DeliveryState::Delivered => "delivered = 1",
        DeliveryState::GivenUp => "closed IS NOT NULL AND delivered = 0",
    });
    let states: Vec<_> = states.collect();
    if !states.is_empty() {
        conditions.add(&format!("({})", states.join(" OR ")), []);
    }
    let sql = format!(
        "SELECT {MESSAGE_COLUMNS} FROM outbox {} ORDER BY place DESC LIMIT {}",
        conditions.sql(),
        sql_limit(filter.limit)
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement
        .query_map(conditions.values(), message_from_row)?
        .collect()
}

fn message_from_row(row: &Row<'_>) -> rusqlite::Result<OutboxMessage> {
    let (closed, delivered): (Option<i64>, bool) = (row.get(10)?, row.get(11)?);
    Ok(OutboxMessage {
        id: row.get(0)?,
        run: RunId::new(row.get::<_, String>(1)?),
        event_name: row.get(2)?,
        target: json_column(row, 3)?,
        body: json_column(row, 4)?,
        group: row.get(5)?,
        created: Timestamp::from_millis(row.get(6)?),
        due: Timestamp::from_millis(row.get(7)?),
        attempts: row.get(8)?,
        last_error: row.get(9)?,
        state: match (closed, delivered) {
            (None, _) => DeliveryState::Waiting,
            (Some(_), true) => DeliveryState::Delivered,
            (Some(_), false) => DeliveryState::GivenUp,
        },
    })
}

fn json_column(row: &Row<'_>, column: usize) -> rusqlite::Result<Value> {
    let text = row.get_ref(column)?.as_str()?;
    serde_json::from_str(text).map_err(|error| sqlite_error::invalid_json(column, error))
}
