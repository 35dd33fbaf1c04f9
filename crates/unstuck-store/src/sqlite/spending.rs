//! Hourly spending sums. They are updated with every gateway call and checked against the calls; queries use the view
//! `costs`, in which usage reported by agents replaces what the gateway measured.

use rusqlite::{Connection, OptionalExtension, Row, params};
use unstuck_core::Timestamp;
use unstuck_core::event::{RunId, SessionId};
use unstuck_core::views::{RunSummary, UsageGap};

use super::run_and_event_queries::WhereClause;
use crate::rollup;
use crate::spending::{CostGroupBy, CostSummary, SpendingKey, SpendingQuery, SpendingTotals};

const UPSERT_SPENDING: &str = "INSERT INTO spent
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
    ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, tries = tries + excluded.tries,
        input_tokens = input_tokens + excluded.input_tokens,
        cached_tokens = cached_tokens + excluded.cached_tokens,
        output_tokens = output_tokens + excluded.output_tokens,
        cost_nanos = cost_nanos + excluded.cost_nanos, unpriced = unpriced + excluded.unpriced";

/// The spending of a deleted run is kept without its name.
const ANONYMIZE_RUN: &str = "INSERT INTO spent
    SELECT hour, project, '', '', model, upstream, outcome, sum(calls), sum(tries), sum(input_tokens),
        sum(cached_tokens), sum(output_tokens), sum(cost_nanos), sum(unpriced)
    FROM costs WHERE run = ?1 GROUP BY hour, project, model, upstream, outcome
    ON CONFLICT DO UPDATE SET calls = calls + excluded.calls, tries = tries + excluded.tries,
        input_tokens = input_tokens + excluded.input_tokens,
        cached_tokens = cached_tokens + excluded.cached_tokens,
        output_tokens = output_tokens + excluded.output_tokens,
        cost_nanos = cost_nanos + excluded.cost_nanos, unpriced = unpriced + excluded.unpriced";

/// The columns of [`cost_from_row`], from the hourly sums.
const SUMS: &str = "sum(calls), sum(iif(outcome = 'recovered', calls, 0)),
    sum(iif(outcome IN ('failed', 'truncated'), calls, 0)), sum(tries), sum(input_tokens), sum(cached_tokens),
    sum(output_tokens), sum(cost_nanos), sum(unpriced)";

/// The same columns, from single calls.
const SUMS_OF_CALLS: &str = "count(*), coalesce(sum(outcome = 'recovered'), 0),
    coalesce(sum(outcome IN ('failed', 'truncated')), 0), coalesce(sum(attempts), 0),
    coalesce(sum(input_tokens), 0), coalesce(sum(cached_tokens), 0), coalesce(sum(output_tokens), 0),
    coalesce(sum(cost_nanos), 0),
    coalesce(sum(cost_nanos IS NULL AND input_tokens + cached_tokens + output_tokens > 0), 0)";

/// The differences between the sums and the calls, without deleted runs.
const DIFFERENCES: &str = "WITH counted AS (
        SELECT (at - (at % 3600000 + 3600000) % 3600000) / 3600000 AS hour, project, run, session, coalesce(model, '') AS model,
            upstream, outcome, count(*) AS calls, sum(attempts) AS tries,
            coalesce(sum(input_tokens), 0), coalesce(sum(cached_tokens), 0), coalesce(sum(output_tokens), 0),
            coalesce(sum(cost_nanos), 0),
            sum(cost_nanos IS NULL AND coalesce(input_tokens + cached_tokens + output_tokens, 0) > 0)
        FROM calls GROUP BY 1, 2, 3, 4, 5, 6, 7
    ), kept AS (SELECT * FROM spent WHERE run <> '')
    SELECT EXISTS (SELECT * FROM counted EXCEPT SELECT * FROM kept)
        OR EXISTS (SELECT * FROM kept EXCEPT SELECT * FROM counted)";

/// Adds the totals under one key.
pub(super) fn add_totals(
    connection: &Connection,
    key: &SpendingKey,
    sum: &SpendingTotals,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(UPSERT_SPENDING)?
        .execute(params![
            key.hour,
            key.project,
            key.run,
            key.session,
            key.model,
            key.upstream,
            key.outcome,
            sum.calls,
            sum.tries,
            sum.input,
            sum.cached,
            sum.output,
            sum.cost_nanos,
            sum.unpriced,
        ])?;
    Ok(())
}

/// Keeps the spending of a run without its name.
pub(super) fn anonymize_run(connection: &Connection, run: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(ANONYMIZE_RUN)?.execute([run])?;
    for delete in [
        "DELETE FROM spent WHERE run = ?1",
        "DELETE FROM told WHERE run = ?1",
    ] {
        connection.prepare_cached(delete)?.execute([run])?;
    }
    Ok(())
}

/// Returns whether the sums match the calls.
pub(super) fn is_consistent(connection: &Connection) -> rusqlite::Result<bool> {
    let differ: bool = connection.query_row(DIFFERENCES, [], |row| row.get(0))?;
    Ok(!differ)
}

/// Returns the spending by group.
pub(super) fn list(
    connection: &Connection,
    query: &SpendingQuery,
) -> rusqlite::Result<Vec<CostSummary>> {
    let mut conditions = WhereClause::default();
    let hour = |at: Option<Timestamp>| at.map(rollup::hour_number);
    conditions.add_comparison("hour >= ?", hour(query.since));
    conditions.add_comparison("hour < ?", hour(query.until));
    conditions.add_equal("project", query.project.as_deref());
    if matches!(query.group_by, CostGroupBy::Run | CostGroupBy::Session) {
        conditions.add("run <> ''", []);
    }
    let (column, order) = match query.group_by {
        // Integer division rounds toward zero, which is correct for hours since the epoch.
        CostGroupBy::Day => ("hour / 24 * 24", "1"),
        CostGroupBy::Project => ("project", "9 DESC, 1"),
        CostGroupBy::Run => ("run", "max(hour) DESC, 1"),
        CostGroupBy::Session => ("session", "max(hour) DESC, 1"),
        CostGroupBy::Model => ("model", "9 DESC, 1"),
        CostGroupBy::Upstream => ("upstream", "9 DESC, 1"),
    };
    let sql = format!(
        "SELECT {column}, {SUMS} FROM costs {} GROUP BY 1 ORDER BY {order}",
        conditions.sql()
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(conditions.values(), |row| {
        let id = match query.group_by {
            CostGroupBy::Day => {
                // The day of an RFC 3339 timestamp is its first ten characters.
                let mut day = rollup::hour_start(row.get(0)?).to_string();
                day.truncate(10);
                day
            }
            _ => row.get(0)?,
        };
        cost_from_row(row, id, 1)
    })?;
    rows.collect()
}

/// Returns the usage of a run; `None` if none was reported or measured.
pub(super) fn for_run(
    connection: &Connection,
    run: &RunId,
) -> rusqlite::Result<Option<CostSummary>> {
    let sql = format!("SELECT {SUMS} FROM costs WHERE run = ?1 GROUP BY run");
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement.query_row([run.as_str()], |row| cost_from_row(row, run.to_string(), 0));
    found.optional()
}

/// Returns the usage of each session of a run, by id.
pub(super) fn for_sessions(
    connection: &Connection,
    run: &RunId,
) -> rusqlite::Result<Vec<CostSummary>> {
    let sql = format!("SELECT session, {SUMS} FROM costs WHERE run = ?1 GROUP BY session");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([run.as_str()], |row| cost_from_row(row, row.get(0)?, 1))?;
    rows.collect()
}

/// Returns the model that answered the newest calls of a run or session: the one with the most output, if there are
/// several.
pub(super) fn answering_model(
    connection: &Connection,
    run: &RunId,
    session: Option<&SessionId>,
) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT model FROM (
            SELECT model, output_tokens FROM calls
            WHERE run = ?1 AND (?2 IS NULL OR session = ?2) AND model IS NOT NULL ORDER BY at DESC LIMIT 20
        ) GROUP BY model ORDER BY sum(coalesce(output_tokens, 0)) DESC, count(*) DESC, model LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    let row = params![run.as_str(), session.map(SessionId::as_str)];
    statement.query_row(row, |row| row.get(0)).optional()
}

/// Returns the usage of a session's calls within a time interval.
pub(super) fn for_gap(
    connection: &Connection,
    run: &RunId,
    time: &UsageGap,
) -> rusqlite::Result<CostSummary> {
    let sql = format!(
        "SELECT {SUMS_OF_CALLS} FROM calls WHERE run = ?1 AND session = ?2 AND at >= ?3 AND at < ?4"
    );
    let to = time.to.map_or(i64::MAX, Timestamp::millis);
    let session = time.session.as_str();
    let values = params![run.as_str(), session, time.from.millis(), to];
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_row(values, |row| cost_from_row(row, session.to_owned(), 0))
}

/// Fills in the cost of a run, and its model if only its calls name it.
pub(super) fn fill_run_cost(connection: &Connection, run: &mut RunSummary) -> rusqlite::Result<()> {
    let Some(all) = for_run(connection, &run.id)? else {
        return Ok(());
    };
    run.cost_usd = all.cost_usd;
    run.tokens = all.new_tokens();
    run.unpriced_count = run.unpriced_count.max(all.unpriced);
    if run.model.is_none() && all.calls > 0 {
        run.model = answering_model(connection, &run.id, None)?;
    }
    Ok(())
}

/// Reads the sums that start at this column.
fn cost_from_row(row: &Row<'_>, id: String, first: usize) -> rusqlite::Result<CostSummary> {
    let count = |place: usize| {
        let number = row.get::<_, i64>(first + place);
        number.map(|number| number.max(0).unsigned_abs())
    };
    Ok(CostSummary {
        id,
        calls: count(0)?,
        recovered: count(1)?,
        failed: count(2)?,
        tries: count(3)?,
        input_tokens: count(4)?,
        cached_tokens: count(5)?,
        output_tokens: count(6)?,
        cost_usd: row.get::<_, i64>(first + 7)? as f64 / 1e9,
        unpriced: count(8)?,
    })
}
