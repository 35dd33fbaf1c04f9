//! Single failures, the newest first, a page at a time: of attempts from the events, of calls from the calls.

use std::cmp::Reverse;

use rusqlite::types::Value;
use rusqlite::{Connection, Row};
use unstuck_core::event::{AttemptFailed, Event, RunId, SessionId};
use unstuck_core::{Kind, Timestamp};

use super::failure;
use super::read::{Conditions, limit};
use crate::failures::{FailureCursor, FailureLine, FailurePage, FailureQuery, Source};
use crate::rollup;

/// What an attempt does not tell of its model, its run does.
const MODEL: &str =
    "coalesce(json_extract(events.payload, '$.model'), json_extract(runs.view, '$.model'))";

type Found = (FailureCursor, FailureLine);

/// The failures that are asked for.
pub(super) fn page(
    connection: &Connection,
    query: &FailureQuery,
    after: Option<FailureCursor>,
    most: usize,
) -> rusqlite::Result<FailurePage> {
    let moment = connection.unchecked_transaction()?;
    let mut found = attempts(&moment, query, after, most)?;
    found.extend(calls(&moment, query, after, most)?);
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

fn attempts(
    connection: &Connection,
    query: &FailureQuery,
    after: Option<FailureCursor>,
    most: usize,
) -> rusqlite::Result<Vec<Found>> {
    let mut conditions = Conditions::default();
    conditions.add("events.event = 'attempt_failed'", []);
    times(&mut conditions, "events", query);
    after_place(&mut conditions, "events", Source::Attempt, after);
    conditions.equal("events.kind", query.kind.map(|kind| kind.name()));
    conditions.equal("runs.project", query.project.as_deref());
    conditions.equal(MODEL, query.model.as_deref());
    let sql = format!(
        "SELECT events.at, events.id, events.run, events.payload, coalesce(runs.project, ''), {MODEL}
        FROM events INDEXED BY events_failed LEFT JOIN runs ON runs.id = events.run {}
        ORDER BY events.at DESC, events.id DESC LIMIT {}",
        conditions.sql(),
        limit(Some(most.saturating_add(1)))
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(conditions.values())?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.extend(attempt(row)?);
    }
    Ok(found)
}

/// None if only a newer unstuck understands it.
fn attempt(row: &Row<'_>) -> rusqlite::Result<Option<Found>> {
    let payload = row.get_ref(3)?.as_str()?;
    let fields = serde_json::from_str(payload).map_err(|error| failure::unreadable(3, error))?;
    let Event::AttemptFailed(failed) = Event::from_value(fields) else {
        return Ok(None);
    };
    let AttemptFailed { end, diagnosis, .. } = *failed;
    let place = place(row, Source::Attempt)?;
    let line = FailureLine {
        at: Timestamp::from_millis(place.at),
        run: RunId::new(row.get::<_, String>(2)?),
        session: end.session,
        attempt: end.number,
        call: None,
        project: row.get(4)?,
        model: row.get(5)?,
        kind: diagnosis.kind,
        message: diagnosis.said(),
        fingerprint: diagnosis.fingerprint,
    };
    Ok(Some((place, line)))
}

fn calls(
    connection: &Connection,
    query: &FailureQuery,
    after: Option<FailureCursor>,
    most: usize,
) -> rusqlite::Result<Vec<Found>> {
    let mut conditions = Conditions::default();
    conditions.add("alone = 1 AND outcome IN ('failed', 'cut')", []);
    times(&mut conditions, "calls", query);
    after_place(&mut conditions, "calls", Source::Call, after);
    let kind = "coalesce(kind, 'unknown')";
    conditions.equal(kind, query.kind.map(|kind| kind.name()));
    conditions.equal("project", query.project.as_deref());
    conditions.equal("model", query.model.as_deref());
    let sql = format!(
        "SELECT at, id, run, session, attempts, call, project, model, {kind}, fingerprint, message
        FROM calls INDEXED BY calls_failed {} ORDER BY at DESC, id DESC LIMIT {}",
        conditions.sql(),
        limit(Some(most.saturating_add(1)))
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(conditions.values(), call)?;
    rows.collect()
}

fn call(row: &Row<'_>) -> rusqlite::Result<Found> {
    let place = place(row, Source::Call)?;
    let kind: String = row.get(8)?;
    let said = |column: usize| {
        let text: Option<String> = row.get(column)?;
        Ok::<_, rusqlite::Error>(text.unwrap_or_else(|| kind.clone()))
    };
    let line = FailureLine {
        at: Timestamp::from_millis(place.at),
        run: RunId::new(row.get::<_, String>(2)?),
        session: SessionId::new(row.get::<_, String>(3)?),
        attempt: row.get(4)?,
        call: row.get(5)?,
        project: row.get(6)?,
        model: row.get(7)?,
        fingerprint: said(9)?,
        message: said(10)?,
        // A kind that only a newer unstuck knows is unknown here.
        kind: kind.parse().unwrap_or(Kind::Unknown),
    };
    Ok((place, line))
}

fn place(row: &Row<'_>, source: Source) -> rusqlite::Result<FailureCursor> {
    Ok(FailureCursor {
        at: row.get(0)?,
        source,
        id: row.get(1)?,
    })
}

/// The same hours that the counts are asked for.
fn times(conditions: &mut Conditions, table: &str, query: &FailureQuery) {
    let beginning = |at: Timestamp| rollup::beginning(rollup::hour(at)).millis();
    let since = query.since.map(beginning);
    let until = query.until.map(beginning);
    conditions.compare(&format!("{table}.at >= ?"), since);
    conditions.compare(&format!("{table}.at < ?"), until);
}

fn after_place(
    conditions: &mut Conditions,
    table: &str,
    source: Source,
    after: Option<FailureCursor>,
) {
    if let Some(after) = after {
        let (at, id) = after.below(source);
        let below = format!("({table}.at, {table}.id) < (?, ?)");
        conditions.add(&below, [Value::from(at), Value::from(id)]);
    }
}
