//! Stored LLM API calls: writing and listing.

use rusqlite::{Connection, OptionalExtension, Row, params};
use unstuck_core::decision::TokenUsage;
use unstuck_core::event::{ApiCallOutcome, ApiCallRecord, Event, RunId, SessionId};
use unstuck_core::views::RunSummary;
use unstuck_core::{FailureKind, Timestamp};

use super::run_and_event_queries::{WhereClause, sql_limit};
use super::sqlite_error;
use crate::api_calls::{CallFilter, StoredCall};
use crate::attempt_stats::{self, CallFailure};
use crate::rollup;
use crate::spending::token_count;

const INSERT_CALL: &str =
    "INSERT INTO calls (call, run, session, project, at, protocol, endpoint, upstream, asked_model,
        model, stream, outcome, status, kind, attempts, waited_ms, first_byte_ms, duration_ms, sent_bytes,
        input_tokens, cached_tokens, output_tokens, cost_nanos, alone, fingerprint, message)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23,
        ?24, ?25, ?26)";

/// The columns of a call, in the order of [`call_from_row`].
const CALL_COLUMNS: &str = "call, run, session, project, at, protocol, endpoint, upstream, asked_model,
    model, stream, outcome, status, kind, attempts, waited_ms, first_byte_ms, duration_ms, sent_bytes,
    input_tokens, cached_tokens, output_tokens, cost_nanos";

/// The last failure reported by the attempts of a call. Only the newest rows are searched: those of one call are
/// adjacent.
const SELECT_LAST_FAILURE: &str = "SELECT payload FROM (
        SELECT payload FROM events WHERE run = ?1 AND event = 'call_failed' ORDER BY seq DESC LIMIT 64
    ) WHERE json_extract(payload, '$.call') = ?2 LIMIT 1";

/// The classification of a call as an attempt.
#[derive(Debug)]
pub(super) struct CallClassification {
    /// True if the session of the call is unsupervised.
    pub(super) is_unsupervised: bool,
    /// The failure, if the call counts as an attempt and failed.
    pub(super) failure: Option<CallFailure>,
}

impl CallClassification {
    /// Classifies a call of that run.
    pub(super) fn classify(
        connection: &Connection,
        call: &ApiCallRecord,
        run: Option<&RunSummary>,
    ) -> rusqlite::Result<Self> {
        let alone = run.is_none_or(|run| run.attempts == 0);
        let failed = alone && attempt_stats::is_failed_attempt(call.outcome) == Some(true);
        let fault = failed.then(|| last_failure(connection, call.run.as_str(), &call.call));
        let fault = fault.transpose()?.flatten();
        let unknown = || CallFailure::of_kind(call.kind.unwrap_or(FailureKind::Unknown));
        Ok(Self {
            is_unsupervised: alone,
            failure: failed.then(|| fault.unwrap_or_else(unknown)),
        })
    }
}

fn last_failure(
    connection: &Connection,
    run: &str,
    call: &str,
) -> rusqlite::Result<Option<CallFailure>> {
    let mut statement = connection.prepare_cached(SELECT_LAST_FAILURE)?;
    let payload: Option<String> = statement
        .query_row([run, call], |row| row.get(0))
        .optional()?;
    let event = payload.and_then(|payload| serde_json::from_str(&payload).ok());
    Ok(event.and_then(|fields| match Event::from_value(fields) {
        Event::CallFailed(failed) => Some(CallFailure {
            message: failed.diagnosis.masked_evidence(),
            fingerprint: failed.diagnosis.fingerprint,
        }),
        _ => None,
    }))
}

/// Visits all calls that count as attempts, with their projects.
pub(super) fn for_each_unsupervised(
    connection: &Connection,
    mut look: impl FnMut(&ApiCallRecord, &str, Option<&CallFailure>),
) -> rusqlite::Result<()> {
    let sql = format!("SELECT {CALL_COLUMNS}, fingerprint, message FROM calls WHERE alone = 1");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let told: (Option<String>, Option<String>) = (row.get(23)?, row.get(24)?);
        let fault = match told {
            (Some(fingerprint), Some(message)) => Some(CallFailure {
                fingerprint,
                message,
            }),
            _ => None,
        };
        let call = call_from_row(row)?;
        look(&call.record, &call.project, fault.as_ref());
    }
    Ok(())
}

/// Classifies existing calls, in a store that did not record it.
pub(super) fn backfill_unsupervised(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "UPDATE calls SET alone = 1
        WHERE run NOT IN (SELECT id FROM runs WHERE json_extract(view, '$.attempts') > 0)",
    )?;
    let sql = "SELECT id, run, call, coalesce(kind, 'unknown') FROM calls
        WHERE alone = 1 AND outcome IN ('failed', 'truncated')";
    let mut statement = connection.prepare(sql)?;
    let failed = statement.query_map([], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
    })?;
    let failed: Vec<(i64, String, String, String)> = failed.collect::<rusqlite::Result<_>>()?;
    for (id, run, call, kind) in failed {
        let told = last_failure(connection, &run, &call)?;
        let fault = told
            .unwrap_or_else(|| CallFailure::of_kind(kind.parse().unwrap_or(FailureKind::Unknown)));
        let sql = "UPDATE calls SET fingerprint = ?2, message = ?3 WHERE id = ?1";
        let row = params![id, fault.fingerprint, fault.message];
        connection.prepare_cached(sql)?.execute(row)?;
    }
    Ok(())
}

/// Writes a call of a project.
pub(super) fn insert(
    connection: &Connection,
    call: &ApiCallRecord,
    project: &str,
    counting: &CallClassification,
) -> rusqlite::Result<()> {
    let fault = counting.failure.as_ref();
    let count = |tokens: fn(TokenUsage) -> u64| call.tokens.map(tokens).map(token_count);
    connection.prepare_cached(INSERT_CALL)?.execute(params![
        call.call,
        call.run.as_str(),
        call.session.as_str(),
        project,
        call.at.millis(),
        call.protocol,
        call.endpoint,
        call.upstream,
        call.requested_model,
        call.model,
        call.is_stream,
        call.outcome.name(),
        call.status,
        call.kind.map(|kind| kind.name()),
        call.attempts,
        to_sql_integer(call.waited_ms),
        to_sql_integer(call.first_byte_ms),
        to_sql_integer(call.duration_ms),
        to_sql_integer(call.sent_bytes),
        count(|tokens| tokens.input),
        count(|tokens| tokens.cached),
        count(|tokens| tokens.output),
        call.cost_usd.map(rollup::usd_to_nanos),
        counting.is_unsupervised,
        fault.map(|fault| &fault.fingerprint),
        fault.map(|fault| &fault.message),
    ])?;
    Ok(())
}

fn to_sql_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns the matching calls, newest first.
pub(super) fn list(
    connection: &Connection,
    filter: &CallFilter,
) -> rusqlite::Result<Vec<StoredCall>> {
    let mut conditions = WhereClause::default();
    conditions.add_equal("run", filter.run.as_ref().map(RunId::as_str));
    if let Some(session) = &filter.session {
        let id = || session.as_str().to_owned().into();
        conditions.add(
            "run IN (SELECT run FROM sessions WHERE session = ?) AND session = ?",
            [id(), id()],
        );
    }
    conditions.add_equal("project", filter.project.as_deref());
    conditions.add_any_of("outcome", filter.outcome.iter().map(|one| one.name()));
    conditions.add_comparison("at >= ?", filter.since.map(Timestamp::millis));
    conditions.add_comparison("at < ?", filter.until.map(Timestamp::millis));
    let sql = format!(
        "SELECT {CALL_COLUMNS} FROM calls {} ORDER BY at DESC, id DESC LIMIT {}",
        conditions.sql(),
        sql_limit(filter.limit)
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(conditions.values(), call_from_row)?;
    rows.collect()
}

fn call_from_row(row: &Row<'_>) -> rusqlite::Result<StoredCall> {
    let count = |column: usize| row.get::<_, i64>(column).map(|number| number as u64);
    let outcome: String = row.get(11)?;
    let outcome = ApiCallOutcome::from_name(&outcome)
        .ok_or_else(|| sqlite_error::invalid_json(11, UnknownOutcome(outcome)))?;
    let kind: Option<String> = row.get(13)?;
    let cost: Option<i64> = row.get(22)?;
    let record = ApiCallRecord {
        call: row.get(0)?,
        run: RunId::new(row.get::<_, String>(1)?),
        session: SessionId::new(row.get::<_, String>(2)?),
        at: Timestamp::from_millis(row.get(4)?),
        protocol: row.get(5)?,
        endpoint: row.get(6)?,
        upstream: row.get(7)?,
        requested_model: row.get(8)?,
        model: row.get(9)?,
        is_stream: row.get(10)?,
        outcome,
        status: row.get(12)?,
        // A kind that only a newer unstuck knows is treated as none.
        kind: kind.and_then(|name| name.parse().ok()),
        attempts: row.get(14)?,
        waited_ms: count(15)?,
        first_byte_ms: count(16)?,
        duration_ms: count(17)?,
        sent_bytes: count(18)?,
        tokens: tokens_from_row(row)?,
        cost_usd: cost.map(|nanos| nanos as f64 / 1e9),
    };
    Ok(StoredCall {
        id: record.call.clone(),
        project: row.get(3)?,
        record,
    })
}

fn tokens_from_row(row: &Row<'_>) -> rusqlite::Result<Option<TokenUsage>> {
    let count = |column: usize| row.get::<_, Option<i64>>(column);
    let (Some(input), Some(cached), Some(output)) = (count(19)?, count(20)?, count(21)?) else {
        return Ok(None);
    };
    Ok(Some(TokenUsage {
        input: input as u64,
        cached: cached as u64,
        output: output as u64,
        requests: 1,
    }))
}

#[derive(Debug, thiserror::Error)]
#[error("unknown call outcome `{0}`")]
struct UnknownOutcome(String);
