//! Run and event queries.

use std::sync::Arc;

use rusqlite::types::Value;
use rusqlite::{Connection, Params, Row, params_from_iter};
use unstuck_core::Timestamp;
use unstuck_core::event::{Event, EventRecord, RunId};
use unstuck_core::views::{RunStatus, RunSummary};

use super::sqlite_error;
use crate::query::{
    EventFilter, EventLogEntry, EventLogOffset, EventOrder, EventPage, RunCursor, RunFilter,
};

/// The columns of an event, in the order of [`event_from_row`].
const EVENT_COLUMNS: &str =
    "events.run, events.seq, events.at, events.v, events.payload, events.id";

/// Returns all events of a run, in order.
pub(super) fn load(connection: &Connection, run: &RunId) -> rusqlite::Result<Vec<EventRecord>> {
    let sql = format!("SELECT {EVENT_COLUMNS} FROM events WHERE run = ?1 ORDER BY seq");
    let mut statement = connection.prepare_cached(&sql)?;
    statement
        .query_map([run.as_str()], event_from_row)?
        .collect()
}

/// Returns the matching runs, newest first.
pub(super) fn runs(
    connection: &Connection,
    filter: &RunFilter,
) -> rusqlite::Result<Vec<RunSummary>> {
    let mut conditions = WhereClause::default();
    if let Some(prefix) = &filter.prefix {
        // Not LIKE: there `_` and `%` are wildcards, and it cannot use the index.
        let end = format!("{prefix}\u{10FFFF}");
        conditions.add("id >= ? AND id < ?", [prefix.clone().into(), end.into()]);
    }
    conditions.add_equal("project", filter.project.as_deref());
    add_status(&mut conditions, filter);
    conditions.add_equal("kind", filter.kind.map(|kind| kind.name()));
    conditions.add_comparison("started >= ?", filter.since.map(Timestamp::millis));
    conditions.add_comparison("started < ?", filter.until.map(Timestamp::millis));
    if let Some(RunCursor { started, id }) = &filter.after {
        conditions.add(
            "started <= ? AND (started < ? OR id > ?)",
            [(*started).into(), (*started).into(), id.clone().into()],
        );
    }
    // Summaries are large: read only those that are returned, not all that are sorted.
    let sql = format!(
        "SELECT view, id FROM runs JOIN (
            SELECT id AS told FROM runs {} ORDER BY started DESC, id LIMIT {}
        ) ON id = told ORDER BY started DESC, id",
        conditions.sql(),
        sql_limit(filter.limit)
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(conditions.values())?;
    let mut runs = Vec::new();
    while let Some(row) = rows.next()? {
        let told = match view_from_row(row)? {
            Some(view) => Some(view),
            // A newer unstuck may store it differently; its events are still readable.
            None => {
                RunSummary::from_events(&load(connection, &RunId::new(row.get::<_, String>(1)?))?)
            }
        };
        runs.extend(told);
    }
    Ok(runs)
}

/// Matches the statuses; unsupervised runs are neither running nor waiting.
fn add_status(conditions: &mut WhereClause, filter: &RunFilter) {
    let names = || filter.status.iter().map(|status| status.name());
    let Some(alive) = &filter.alive else {
        return conditions.add_any_of("status", names());
    };
    if filter.status.is_empty() {
        return;
    }
    let text = |text: &str| Value::from(text.to_owned());
    let list = |count: usize| vec!["?"; count].join(", ");
    let should_continue = "finished IS NULL AND status IN ('running', 'waiting')";
    let crashed = format!("({should_continue} AND id NOT IN ({}))", list(alive.len()));
    let alive = || alive.iter().map(|run| text(run.as_str()));
    let mut sql = format!(
        "(status IN ({}) AND NOT {crashed})",
        list(filter.status.len())
    );
    let mut values: Vec<Value> = names().map(text).chain(alive()).collect();
    if filter.status.contains(&RunStatus::Crashed) {
        sql = format!("({sql} OR {crashed})");
        values.extend(alive());
    }
    conditions.add(&sql, values);
}

/// Returns the matching events.
pub(super) fn events(connection: &Connection, filter: &EventFilter) -> rusqlite::Result<EventPage> {
    let mut page = EventPage {
        events: Vec::new(),
        last: filter.after.unwrap_or_default(),
    };
    for_each_filtered(connection, filter, |event, position| {
        page.events.push(event);
        page.last = page.last.max(position);
    })?;
    Ok(page)
}

/// Returns the matching events with their offsets.
pub(super) fn log_entries(
    connection: &Connection,
    filter: &EventFilter,
) -> rusqlite::Result<Vec<EventLogEntry>> {
    let mut events = Vec::new();
    for_each_filtered(connection, filter, |event, place| {
        let recorded = Arc::new(event);
        events.push(EventLogEntry {
            offset: place,
            record: recorded,
        });
    })?;
    Ok(events)
}

fn for_each_filtered(
    connection: &Connection,
    filter: &EventFilter,
    look: impl FnMut(EventRecord, EventLogOffset),
) -> rusqlite::Result<()> {
    let conditions = event_conditions(filter);
    let join = match filter.project {
        Some(_) => "JOIN runs ON runs.id = events.run",
        None => "",
    };
    let order = match (filter.order, filter.since, filter.after) {
        // The unary plus keeps SQLite from scanning all older rows in log order.
        (EventOrder::OldestFirst, Some(_), None) => "+events.id ASC",
        (EventOrder::OldestFirst, ..) => "events.id ASC",
        (EventOrder::NewestFirst, ..) => "events.id DESC",
    };
    let sql = format!(
        "SELECT {EVENT_COLUMNS} FROM events {join} {} ORDER BY {order} LIMIT {}",
        conditions.sql(),
        sql_limit(filter.limit)
    );
    for_each_event(connection, &sql, conditions.values(), look)
}

/// Returns the offset of the newest event.
pub(super) fn newest_offset(connection: &Connection) -> rusqlite::Result<EventLogOffset> {
    let mut statement = connection.prepare_cached("SELECT coalesce(max(id), 0) FROM events")?;
    statement.query_row([], |row| row.get(0).map(EventLogOffset))
}

/// Returns the first events after an offset, in order.
pub(super) fn entries_after(
    connection: &Connection,
    place: EventLogOffset,
    most: usize,
) -> rusqlite::Result<Vec<EventLogEntry>> {
    let sql = format!(
        "SELECT {EVENT_COLUMNS} FROM events WHERE id > ?1 ORDER BY id LIMIT {}",
        sql_limit(Some(most))
    );
    let mut events = Vec::new();
    for_each_event(connection, &sql, [place.0], |event, place| {
        let recorded = Arc::new(event);
        events.push(EventLogEntry {
            offset: place,
            record: recorded,
        });
    })?;
    Ok(events)
}

fn event_conditions(filter: &EventFilter) -> WhereClause {
    let mut conditions = WhereClause::default();
    conditions.add_equal("events.run", filter.run.as_ref().map(RunId::as_str));
    if let Some(session) = &filter.session {
        let id = || session.as_str().to_owned().into();
        conditions.add(
            "events.run IN (SELECT run FROM sessions WHERE session = ?) AND events.session = ?",
            [id(), id()],
        );
    }
    conditions.add_equal("runs.project", filter.project.as_deref());
    conditions.add_equal("events.kind", filter.kind.map(|kind| kind.name()));
    conditions.add_any_of("events.event", filter.names.iter().map(String::as_str));
    conditions.add_comparison("events.id > ?", filter.after.map(|position| position.0));
    conditions.add_comparison("events.id < ?", filter.before.map(|position| position.0));
    conditions.add_comparison("events.at >= ?", filter.since.map(Timestamp::millis));
    conditions.add_comparison("events.at < ?", filter.until.map(Timestamp::millis));
    conditions
}

/// Visits the events of every run, run by run.
pub(super) fn for_each_run(
    connection: &Connection,
    mut look: impl FnMut(&[EventRecord]),
) -> rusqlite::Result<()> {
    let mut run: Vec<EventRecord> = Vec::new();
    let sql = format!("SELECT {EVENT_COLUMNS} FROM events ORDER BY run, seq");
    for_each_event(connection, &sql, [], |event, _| {
        if run.first().is_some_and(|first| first.run != event.run) {
            look(&run);
            run.clear();
        }
        run.push(event);
    })?;
    if !run.is_empty() {
        look(&run);
    }
    Ok(())
}

fn for_each_event(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    mut look: impl FnMut(EventRecord, EventLogOffset),
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    while let Some(row) = rows.next()? {
        look(event_from_row(row)?, EventLogOffset(row.get(5)?));
    }
    Ok(())
}

fn event_from_row(row: &Row<'_>) -> rusqlite::Result<EventRecord> {
    let payload = row.get_ref(4)?.as_str()?;
    let fields =
        serde_json::from_str(payload).map_err(|error| sqlite_error::invalid_json(4, error))?;
    Ok(EventRecord {
        version: row.get(3)?,
        run: RunId::new(row.get::<_, String>(0)?),
        seq: row.get::<_, i64>(1)? as u64,
        at: Timestamp::from_millis(row.get(2)?),
        event: Event::from_value(fields),
    })
}

/// Returns the run summary in the first column; `None` if it cannot be read.
pub(super) fn view_from_row(row: &Row<'_>) -> rusqlite::Result<Option<RunSummary>> {
    Ok(serde_json::from_str(row.get_ref(0)?.as_str()?).ok())
}

/// Returns the LIMIT value; negative means no limit.
pub(super) fn sql_limit(limit: Option<usize>) -> i64 {
    limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX))
}

/// The conditions of a WHERE clause and their values.
#[derive(Debug, Default)]
pub(super) struct WhereClause {
    parts: Vec<String>,
    values: Vec<Value>,
}

impl WhereClause {
    pub(super) fn add(&mut self, part: &str, values: impl IntoIterator<Item = Value>) {
        self.parts.push(part.to_owned());
        self.values.extend(values);
    }

    /// Requires a column value, if one is given.
    pub(super) fn add_equal(&mut self, column: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.add(&format!("{column} = ?"), [value.to_owned().into()]);
        }
    }

    /// Requires a comparison with a value, if one is given.
    pub(super) fn add_comparison(&mut self, comparison: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.add(comparison, [value.into()]);
        }
    }

    /// Requires one of these values, if any are given.
    pub(super) fn add_any_of<'a>(&mut self, column: &str, values: impl Iterator<Item = &'a str>) {
        let values: Vec<Value> = values.map(|value| value.to_owned().into()).collect();
        if !values.is_empty() {
            let places = vec!["?"; values.len()].join(", ");
            self.add(&format!("{column} IN ({places})"), values);
        }
    }

    pub(super) fn sql(&self) -> String {
        if self.parts.is_empty() {
            String::new()
        } else {
            format!("WHERE {}", self.parts.join(" AND "))
        }
    }

    pub(super) fn values(&self) -> impl Params + '_ {
        params_from_iter(self.values.iter())
    }
}
