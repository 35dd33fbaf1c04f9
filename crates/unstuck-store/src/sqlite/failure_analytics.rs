//! Failure analytics, from attempt counts alone.

use std::collections::HashMap;

use rusqlite::{Connection, params};
use unstuck_core::Timestamp;
use unstuck_core::views::{
    AttemptGroupCount, FailureAnalytics, FailureMessageCount, NormalizedPrompt,
    NormalizedPromptFailureCount,
};

use super::hourly_daily_tables::ATTEMPT_TABLES;
use super::run_and_event_queries::WhereClause;
use crate::failure_query::FailureQuery;
use crate::rollup;

/// The default number of messages and prompts.
const DEFAULT_TOP: usize = 10;

/// The scope and result of an attempt.
struct AttemptScope {
    project: String,
    model: String,
    /// The failure kind, if it matches the filter.
    kind: Option<String>,
}

/// The counts by text id.
#[derive(Default)]
struct FailureSums {
    days: HashMap<(i64, i64), u64>,
    messages: HashMap<i64, (u64, i64)>,
    patterns: HashMap<i64, u64>,
}

/// Returns aggregated failure data.
pub(super) fn failure_analytics(
    connection: &Connection,
    query: &FailureQuery,
) -> rusqlite::Result<FailureAnalytics> {
    // Texts and counts must come from the same snapshot.
    let moment = connection.unchecked_transaction()?;
    let scopes = load_scopes(&moment, query)?;
    let sums = sum_counts(&moment, query, &scopes)?;
    let mut analytics = FailureAnalytics::default();
    for ((day, scope), count) in &sums.days {
        if let Some(scope) = scopes.get(scope) {
            analytics.record(&AttemptGroupCount {
                at: rollup::hour_start(day.saturating_mul(24)),
                project: &scope.project,
                model: &scope.model,
                kind: scope.kind.as_deref(),
                count: *count,
            });
        }
    }
    let top = query.top.unwrap_or(DEFAULT_TOP);
    analytics.top_error_messages = top_messages(&moment, &sums, top)?;
    analytics.by_prompt_pattern = top_patterns(&moment, &sums, top)?;
    moment.finish()?;
    Ok(analytics)
}

fn load_scopes(
    connection: &Connection,
    query: &FailureQuery,
) -> rusqlite::Result<HashMap<i64, AttemptScope>> {
    let mut conditions = WhereClause::default();
    conditions.add_equal("project", query.project.as_deref());
    conditions.add_equal("model", query.model.as_deref());
    let sql = format!(
        "SELECT id, project, model, kind FROM try_scopes {}",
        conditions.sql()
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let is_asked_for = |kind: &String| match query.kind {
        Some(wanted) => kind == wanted.name(),
        None => kind != "none",
    };
    let rows = statement.query_map(conditions.values(), |row| {
        let kind: String = row.get(3)?;
        let scope = AttemptScope {
            project: row.get(1)?,
            model: row.get(2)?,
            kind: Some(kind).filter(is_asked_for),
        };
        Ok((row.get(0)?, scope))
    })?;
    rows.collect()
}

fn sum_counts(
    connection: &Connection,
    query: &FailureQuery,
    scopes: &HashMap<i64, AttemptScope>,
) -> rusqlite::Result<FailureSums> {
    let mut conditions = WhereClause::default();
    let hour = |at: Option<Timestamp>| at.map(rollup::hour_number);
    conditions.add_comparison("hour >= ?", hour(query.since));
    conditions.add_comparison("hour < ?", hour(query.until));
    let sql = format!(
        "SELECT hour, scope, message, pattern, count, newest FROM {} {}",
        ATTEMPT_TABLES.table_for(query.since, query.until),
        conditions.sql()
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(conditions.values())?;
    let mut sums = FailureSums::default();
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(1)?;
        let Some(scope) = scopes.get(&id) else {
            continue;
        };
        let (hour, count): (i64, i64) = (row.get(0)?, row.get(4)?);
        let count = count as u64;
        *sums.days.entry((hour.div_euclid(24), id)).or_default() += count;
        if scope.kind.is_some() {
            let newest: i64 = row.get(5)?;
            let message = sums.messages.entry(row.get(2)?).or_insert((0, newest));
            *message = (message.0 + count, message.1.max(newest));
            *sums.patterns.entry(row.get(3)?).or_default() += count;
        }
    }
    // Counts without a text are left out.
    sums.messages.remove(&0);
    sums.patterns.remove(&0);
    Ok(sums)
}

fn top_messages(
    connection: &Connection,
    sums: &FailureSums,
    top: usize,
) -> rusqlite::Result<Vec<FailureMessageCount>> {
    let sql = "SELECT message, kind, fingerprint FROM try_messages WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let counts = sums.messages.iter().map(|(id, (count, _))| (*id, *count));
    let told = top_counts(counts, top).into_iter().map(|(id, count)| {
        let newest = sums.messages.get(&id).map_or(0, |(_, newest)| *newest);
        statement.query_row(params![id], |row| {
            Ok(FailureMessageCount {
                message: row.get(0)?,
                count,
                error_type: row.get(1)?,
                fingerprint: row.get(2)?,
                last_seen: Timestamp::from_millis(newest),
            })
        })
    });
    let mut told: Vec<_> = told.collect::<rusqlite::Result<_>>()?;
    told.sort_by(|a, b| (b.count, &a.message).cmp(&(a.count, &b.message)));
    Ok(told)
}

fn top_patterns(
    connection: &Connection,
    sums: &FailureSums,
    top: usize,
) -> rusqlite::Result<Vec<NormalizedPromptFailureCount>> {
    let sql = "SELECT role, template FROM try_patterns WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let counts = sums.patterns.iter().map(|(id, count)| (*id, *count));
    let told = top_counts(counts, top).into_iter().map(|(id, count)| {
        statement.query_row(params![id], |row| {
            let role: String = row.get(0)?;
            let pattern = NormalizedPrompt {
                role: Some(role).filter(|role| !role.is_empty()),
                template: row.get(1)?,
            };
            Ok(NormalizedPromptFailureCount { pattern, count })
        })
    });
    let mut told: Vec<_> = told.collect::<rusqlite::Result<_>>()?;
    told.sort_by(|a, b| (b.count, &a.pattern).cmp(&(a.count, &b.pattern)));
    Ok(told)
}

/// Returns the highest counts; among equal ones the lowest ids first.
fn top_counts(counts: impl Iterator<Item = (i64, u64)>, top: usize) -> Vec<(i64, u64)> {
    let mut counts: Vec<_> = counts.collect();
    counts.sort_unstable_by_key(|(id, count)| (std::cmp::Reverse(*count), *id));
    counts.truncate(top);
    counts
}
