//! Stored hourly counts, updated with every event and queried for statistics.

use std::collections::HashMap;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};
use unstuck_core::Timestamp;
use unstuck_core::event::EventRecord;

use super::hourly_daily_tables::{self, OUTCOME_TABLES};
use super::run_and_event_queries::WhereClause;
use crate::outcome_statistics::{StatisticsDimension, StatsQuery, StatsRow};
use crate::recovery_statistics::{
    RecoveryStatisticsQuery, RecoveryStatisticsReport, RecoveryStatisticsSums,
};
use crate::rollup::{self, BUCKETS, RollupCell, RollupKey};

/// The upsert clause after `INSERT INTO` and the table name.
const UPSERT_VALUES: &str = "
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)
    ON CONFLICT DO UPDATE SET count = count + excluded.count,
        duration_ms = duration_ms + excluded.duration_ms, cost_nanos = cost_nanos + excluded.cost_nanos,
        b0 = b0 + excluded.b0, b1 = b1 + excluded.b1, b2 = b2 + excluded.b2, b3 = b3 + excluded.b3,
        b4 = b4 + excluded.b4, b5 = b5 + excluded.b5, b6 = b6 + excluded.b6, b7 = b7 + excluded.b7,
        b8 = b8 + excluded.b8, b9 = b9 + excluded.b9, b10 = b10 + excluded.b10, b11 = b11 + excluded.b11";

/// The first failure of a session since its last success, before an event.
const FAILING_SINCE: &str = "SELECT at FROM events
    WHERE run = ?1 AND session = ?2 AND event = 'attempt_failed' AND seq < ?3 AND seq > coalesce((
        SELECT max(seq) FROM events WHERE run = ?1 AND session = ?2 AND event = 'attempt_succeeded' AND seq < ?3
    ), 0) ORDER BY seq LIMIT 1";

const SUM_COLUMNS: &str = "sum(count), sum(duration_ms), sum(cost_nanos),
    sum(b0), sum(b1), sum(b2), sum(b3), sum(b4), sum(b5), sum(b6), sum(b7), sum(b8), sum(b9), sum(b10), sum(b11)";

/// Adds the counts under one key to its hour and day.
pub(super) fn add_cell(
    connection: &Connection,
    key: &RollupKey,
    cell: &RollupCell,
) -> rusqlite::Result<()> {
    add_to(connection, OUTCOME_TABLES.by_hour, key.hour, key, cell)?;
    add_to(
        connection,
        OUTCOME_TABLES.by_day,
        hourly_daily_tables::day_start(key.hour),
        key,
        cell,
    )
}

fn add_to(
    connection: &Connection,
    table: &str,
    hour: i64,
    key: &RollupKey,
    cell: &RollupCell,
) -> rusqlite::Result<()> {
    let text = |text: &str| Value::from(text.to_owned());
    let number = |number: u64| Value::from(number as i64);
    let values = [
        hour.into(),
        text(&key.project),
        text(key.kind),
        text(&key.model),
        text(&key.strategy),
        text(&key.outcome),
        number(cell.count),
        number(cell.duration_ms),
        cell.cost_nanos.into(),
    ];
    let values = values.into_iter().chain(cell.histogram.map(number));
    connection
        .prepare_cached(&format!("INSERT INTO {table}{UPSERT_VALUES}"))?
        .execute(params_from_iter(values))?;
    Ok(())
}

/// Returns the time since which an event's session has been failing, if the event completes it successfully.
pub(super) fn failing_since(
    connection: &Connection,
    recorded: &EventRecord,
) -> rusqlite::Result<Option<Timestamp>> {
    let Some(session) = rollup::recovered_session(&recorded.event) else {
        return Ok(None);
    };
    let mut statement = connection.prepare_cached(FAILING_SINCE)?;
    let row = params![recorded.run.as_str(), session.as_str(), recorded.seq as i64];
    let at = statement.query_row(row, |row| row.get(0)).optional()?;
    Ok(at.map(Timestamp::from_millis))
}

/// Recomputes the recoveries of sessions, in a store without daily counts.
pub(super) fn backfill_recoveries(
    connection: &Connection,
    cells: &HashMap<RollupKey, RollupCell>,
) -> rusqlite::Result<()> {
    // A store of schema 1 was counted by an earlier migration step.
    let sql = "DELETE FROM hourly WHERE outcome = ?1";
    connection.execute(sql, [rollup::RECOVERED])?;
    let mut recovered = cells
        .iter()
        .filter(|(key, _)| key.outcome == rollup::RECOVERED);
    recovered
        .try_for_each(|(key, cell)| add_to(connection, OUTCOME_TABLES.by_hour, key.hour, key, cell))
}

/// Adds all counts, in a store without daily counts.
pub(super) fn write_cells(
    connection: &Connection,
    cells: &HashMap<RollupKey, RollupCell>,
) -> rusqlite::Result<()> {
    cells
        .iter()
        .try_for_each(|(key, cell)| add_to(connection, OUTCOME_TABLES.by_hour, key.hour, key, cell))
}

/// Returns the stored counts, with the kind as stored.
pub(super) fn load_cells(
    connection: &Connection,
) -> rusqlite::Result<HashMap<[String; 6], RollupCell>> {
    let sql = format!(
        "SELECT CAST(hour AS TEXT), project, kind, model, strategy, outcome, {SUM_COLUMNS} FROM hourly GROUP BY hour, project, kind, model, strategy, outcome"
    );
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map([], |row| {
        let key = [
            row.get(0)?,
            row.get(1)?,
            row.get(2)?,
            row.get(3)?,
            row.get(4)?,
            row.get(5)?,
        ];
        Ok((key, cell_from_row(row, 6)?))
    })?;
    rows.collect()
}

/// Returns statistics over many runs.
pub(super) fn stats(
    connection: &Connection,
    query: &StatsQuery,
) -> rusqlite::Result<Vec<StatsRow>> {
    let mut conditions = WhereClause::default();
    match query.metric.outcomes() {
        Some(outcomes) => conditions.add_any_of("outcome", outcomes.iter().copied()),
        None => conditions.add("outcome LIKE 'run_%'", []),
    }
    conditions.add_equal("project", query.project.as_deref());
    conditions.add_equal("model", query.model.as_deref());
    conditions.add_equal("kind", query.kind.map(|kind| kind.name()));
    let hour = |at: Option<Timestamp>| at.map(rollup::hour_number);
    conditions.add_comparison("hour >= ?", hour(query.since));
    conditions.add_comparison("hour < ?", hour(query.until));
    let table = if query.group_by.contains(&StatisticsDimension::Hour) {
        OUTCOME_TABLES.by_hour
    } else {
        OUTCOME_TABLES.table_for(query.since, query.until)
    };
    let columns: Vec<_> = query
        .group_by
        .iter()
        .map(|by| dimension_column(*by))
        .collect();
    let grouped = (1..=columns.len()).map(|place| place.to_string());
    let group = grouped.collect::<Vec<_>>().join(", ");
    let (grouping, ordering) = if columns.is_empty() {
        (String::new(), String::new())
    } else {
        (format!("GROUP BY {group}"), format!("ORDER BY {group}"))
    };
    let named = columns.iter().map(|column| format!("{column}, "));
    let sql = format!(
        "SELECT {}{SUM_COLUMNS} FROM {table} {} {grouping} HAVING sum(count) > 0 {ordering}",
        named.collect::<String>(),
        conditions.sql()
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(conditions.values(), |row| {
        stats_from_row(row, &query.group_by)
    })?;
    rows.collect()
}

/// Returns recovery statistics. Summed up here instead of in SQL: the report needs sums by level, strategy and day, and
/// this way the counts are read only once.
pub(super) fn recovery_report(
    connection: &Connection,
    query: &RecoveryStatisticsQuery,
) -> rusqlite::Result<RecoveryStatisticsReport> {
    let mut conditions = WhereClause::default();
    conditions.add("outcome NOT IN ('succeeded', 'failed', 'interrupted')", []);
    conditions.add_equal("project", query.project.as_deref());
    conditions.add_equal("model", query.model.as_deref());
    conditions.add_equal("kind", query.kind.map(|kind| kind.name()));
    conditions.add_comparison("hour >= ?", query.since.map(rollup::hour_number));
    conditions.add_comparison("hour < ?", query.until.map(rollup::hour_number));
    let sql = format!(
        "SELECT hour, strategy, outcome, count, duration_ms, cost_nanos,
            b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11 FROM {} {}",
        OUTCOME_TABLES.table_for(query.since, query.until),
        conditions.sql()
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(conditions.values())?;
    let mut sums = RecoveryStatisticsSums::default();
    while let Some(row) = rows.next()? {
        let day = row.get::<_, i64>(0)?.div_euclid(24);
        let strategy = row.get_ref(1)?.as_str()?;
        match row.get_ref(2)?.as_str()? {
            rollup::RECOVERED => sums.add_recoveries(day, &cell_from_row(row, 3)?),
            outcome => sums.add_outcome(day, strategy, outcome, row.get::<_, i64>(3)? as u64),
        }
    }
    Ok(sums.report())
}

const fn dimension_column(by: StatisticsDimension) -> &'static str {
    match by {
        StatisticsDimension::Hour => "hour",
        // Integer division rounds toward zero, which is correct for hours since the epoch.
        StatisticsDimension::Day => "hour / 24 * 24",
        StatisticsDimension::Project => "project",
        StatisticsDimension::Kind => "kind",
        StatisticsDimension::Model => "model",
        StatisticsDimension::Strategy => "strategy",
        // Only level 2 uses strategies of a chain.
        StatisticsDimension::Level => {
            "iif(strategy IN ('', 'same', 'alternative', 'clarify', 'escalate'), strategy, 'alternative')"
        }
        StatisticsDimension::Outcome => "outcome",
    }
}

fn stats_from_row(row: &Row<'_>, by: &[StatisticsDimension]) -> rusqlite::Result<StatsRow> {
    let text = |wanted| match by.iter().position(|by| *by == wanted) {
        Some(place) => row.get::<_, String>(place).map(Some),
        None => Ok(None),
    };
    let is_time = |by: &StatisticsDimension| {
        matches!(by, StatisticsDimension::Hour | StatisticsDimension::Day)
    };
    let from = match by.iter().position(is_time) {
        Some(place) => Some(rollup::hour_start(row.get(place)?)),
        None => None,
    };
    let sums = cell_from_row(row, by.len())?;
    Ok(StatsRow {
        from,
        project: text(StatisticsDimension::Project)?,
        kind: text(StatisticsDimension::Kind)?,
        model: text(StatisticsDimension::Model)?,
        strategy: text(StatisticsDimension::Strategy)?,
        level: text(StatisticsDimension::Level)?,
        outcome: text(StatisticsDimension::Outcome)?,
        count: sums.count,
        duration_ms: sums.duration_ms,
        cost_usd: sums.cost_nanos as f64 / 1e9,
        histogram: sums.histogram,
    })
}

/// Reads the sums that start at this column.
fn cell_from_row(row: &Row<'_>, first: usize) -> rusqlite::Result<RollupCell> {
    let number = |place: usize| row.get::<_, i64>(first + place).map(|number| number as u64);
    let mut histogram = [0; BUCKETS];
    for (place, count) in histogram.iter_mut().enumerate() {
        *count = number(3 + place)?;
    }
    Ok(RollupCell {
        count: number(0)?,
        duration_ms: number(1)?,
        cost_nanos: row.get(first + 2)?,
        histogram,
    })
}
