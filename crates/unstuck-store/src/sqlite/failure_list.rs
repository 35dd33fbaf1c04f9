//! Paged list of single failures, newest first: attempts from events, calls from the call table.

use std::cmp::Reverse;

use rusqlite::types::Value;
use rusqlite::{Connection, Row};
use unstuck_core::event::{AttemptFailed, Event, RunId, SessionId};
use unstuck_core::{FailureKind, Timestamp};

use super::run_and_event_queries::{WhereClause, sql_limit};
use super::sqlite_error;
use crate::failure_query::{FailureCursor, FailurePage, FailureQuery, FailureRow, FailureSource};
use crate::rollup;

/// The model of an attempt; that of its run if the attempt does not name one.
const MODEL: &str =
    "coalesce(json_extract(events.payload, '$.model'), json_extract(runs.view, '$.model'))";

type CursorRow = (FailureCursor, FailureRow);

/// Returns a page of matching failures.
pub(super) fn page(
    connection: &Connection,
    query: &FailureQuery,
    after: Option<FailureCursor>,
    most: usize,
) -> rusqlite::Result<FailurePage> {
    let moment = connection.unchecked_transaction()?;
    let mut found = attempt_failures(&moment, query, after, most)?;
    found.extend(call_failures(&moment, query, after, most)?);
    moment.finish()?;
    found.sort_by_key(|(place, _)| (Reverse(place.at), place.source, Reverse(place.id)));
    let is_more = found.len() > most;
    found.truncate(most);
    let last = found.last().map(|(place, _)| *place);
    Ok(FailurePage {
        next: last.filter(|_| is_more),
        failures: found.into_iter().map(|(_, line)| line).collect(),
    })
}

fn attempt_failures(
    connection: &Connection,
    query: &FailureQuery,
    after: Option<FailureCursor>,
    most: usize,
) -> rusqlite::Result<Vec<CursorRow>> {
    let mut conditions = WhereClause::default();
    conditions.add("events.event = 'attempt_failed'", []);
    add_time_range(&mut conditions, "events", query);
    add_cursor_condition(&mut conditions, "events", FailureSource::Attempt, after);
    conditions.add_equal("events.kind", query.kind.map(|kind| kind.name()));
    conditions.add_equal("runs.project", query.project.as_deref());
    conditions.add_equal(MODEL, query.model.as_deref());
    let sql = format!(
        "SELECT events.at, events.id, events.run, events.payload, coalesce(runs.project, ''), {MODEL}
        FROM events INDEXED BY events_failed LEFT JOIN runs ON runs.id = events.run {}
        ORDER BY events.at DESC, events.id DESC LIMIT {}",
        conditions.sql(),
        sql_limit(Some(most.saturating_add(1)))
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(conditions.values())?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.extend(attempt_from_row(row)?);
    }
    Ok(found)
}

/// Returns `None` if only a newer unstuck can decode the row.
fn attempt_from_row(row: &Row<'_>) -> rusqlite::Result<Option<CursorRow>> {
    let payload = row.get_ref(3)?.as_str()?;
    let fields =
        serde_json::from_str(payload).map_err(|error| sqlite_error::invalid_json(3, error))?;
    let Event::AttemptFailed(failed) = Event::from_value(fields) else {
        return Ok(None);
    };
    let AttemptFailed { end, diagnosis, .. } = *failed;
    let place = cursor_from_row(row, FailureSource::Attempt)?;
    let line = FailureRow {
        at: Timestamp::from_millis(place.at),
        run: RunId::new(row.get::<_, String>(2)?),
        session: end.session,
        attempt: end.number,
        call: None,
        project: row.get(4)?,
        model: row.get(5)?,
        kind: diagnosis.kind,
        message: diagnosis.masked_evidence(),
        fingerprint: diagnosis.fingerprint,
    };
    Ok(Some((place, line)))
}

fn call_failures(
    connection: &Connection,
    query: &FailureQuery,
    after: Option<FailureCursor>,
    most: usize,
) -> rusqlite::Result<Vec<CursorRow>> {
    let mut conditions = WhereClause::default();
    conditions.add("alone = 1 AND outcome IN ('failed', 'truncated')", []);
    add_time_range(&mut conditions, "calls", query);
    add_cursor_condition(&mut conditions, "calls", FailureSource::Call, after);
    let kind = "coalesce(kind, 'unknown')";
    conditions.add_equal(kind, query.kind.map(|kind| kind.name()));
    conditions.add_equal("project", query.project.as_deref());
    conditions.add_equal("model", query.model.as_deref());
    let sql = format!(
        "SELECT at, id, run, session, attempts, call, project, model, {kind}, fingerprint, message
        FROM calls INDEXED BY calls_failed {} ORDER BY at DESC, id DESC LIMIT {}",
        conditions.sql(),
        sql_limit(Some(most.saturating_add(1)))
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(conditions.values(), call_from_row)?;
    rows.collect()
}

fn call_from_row(row: &Row<'_>) -> rusqlite::Result<CursorRow> {
    let place = cursor_from_row(row, FailureSource::Call)?;
    let kind: String = row.get(8)?;
    let said = |column: usize| {
        let text: Option<String> = row.get(column)?;
        Ok::<_, rusqlite::Error>(text.unwrap_or_else(|| kind.clone()))
    };
    let line = FailureRow {
        at: Timestamp::from_millis(place.at),
        run: RunId::new(row.get::<_, String>(2)?),
        session: SessionId::new(row.get::<_, String>(3)?),
        attempt: row.get(4)?,
        call: row.get(5)?,
        project: row.get(6)?,
        model: row.get(7)?,
        fingerprint: said(9)?,
        message: said(10)?,
        // A kind that only a newer unstuck knows is treated as unknown.
        kind: kind.parse().unwrap_or(FailureKind::Unknown),
    };
    Ok((place, line))
}

fn cursor_from_row(row: &Row<'_>, source: FailureSource) -> rusqlite::Result<FailureCursor> {
    Ok(FailureCursor {
        at: row.get(0)?,
        source,
        id: row.get(1)?,
    })
}

/// Adds the same hour range that the counts use.
fn add_time_range(conditions: &mut WhereClause, table: &str, query: &FailureQuery) {
    let beginning = |at: Timestamp| rollup::hour_start(rollup::hour_number(at)).millis();
    let since = query.since.map(beginning);
    let until = query.until.map(beginning);
    conditions.add_comparison(&format!("{table}.at >= ?"), since);
    conditions.add_comparison(&format!("{table}.at < ?"), until);
}

fn add_cursor_condition(
    conditions: &mut WhereClause,
    table: &str,
    source: FailureSource,
    after: Option<FailureCursor>,
) {
    if let Some(after) = after {
        let (at, id) = after.upper_bound(source);
        let below = format!("({table}.at, {table}.id) < (?, ?)");
        conditions.add(&below, [Value::from(at), Value::from(id)]);
    }
}
