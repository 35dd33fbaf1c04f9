//! The calls of LLM APIs in the file: written and listed.

use rusqlite::{Connection, Row, params};
use unstuck_core::Timestamp;
use unstuck_core::decision::Tokens;
use unstuck_core::event::{CallOutcome, CallRecord};
use unstuck_core::event::{RunId, SessionId};

use super::failure;
use super::read::{Conditions, limit};
use crate::calls::{Call, CallFilter};
use crate::rollup;
use crate::spending::token_count;

const INSERT: &str =
    "INSERT INTO calls (call, run, session, project, at, protocol, endpoint, upstream, asked_model,
        model, stream, outcome, status, kind, attempts, waited_ms, first_byte_ms, duration_ms, sent_bytes,
        input_tokens, cached_tokens, output_tokens, cost_nanos)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23)";

/// The columns of a call, as [`call`] reads them.
const CALL: &str = "call, run, session, project, at, protocol, endpoint, upstream, asked_model,
    model, stream, outcome, status, kind, attempts, waited_ms, first_byte_ms, duration_ms, sent_bytes,
    input_tokens, cached_tokens, output_tokens, cost_nanos";

/// Writes a call of a project.
pub(super) fn insert(
    connection: &Connection,
    call: &CallRecord,
    project: &str,
) -> rusqlite::Result<()> {
    let count = |tokens: fn(Tokens) -> u64| call.tokens.map(tokens).map(token_count);
    connection.prepare_cached(INSERT)?.execute(params![
        call.call,
        call.run.as_str(),
        call.session.as_str(),
        project,
        call.at.millis(),
        call.protocol,
        call.endpoint,
        call.upstream,
        call.asked_model,
        call.model,
        call.stream,
        call.outcome.name(),
        call.status,
        call.kind.map(|kind| kind.name()),
        call.attempts,
        number(call.waited_ms),
        number(call.first_byte_ms),
        number(call.duration_ms),
        number(call.sent_bytes),
        count(|tokens| tokens.input),
        count(|tokens| tokens.cached),
        count(|tokens| tokens.output),
        call.cost_usd.map(rollup::nanos),
    ])?;
    Ok(())
}

fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The calls that are asked for, the newest first.
pub(super) fn list(connection: &Connection, filter: &CallFilter) -> rusqlite::Result<Vec<Call>> {
    let mut conditions = Conditions::default();
    conditions.equal("run", filter.run.as_ref().map(RunId::as_str));
    if let Some(session) = &filter.session {
        let id = || session.as_str().to_owned().into();
        conditions.add(
            "run IN (SELECT run FROM sessions WHERE session = ?) AND session = ?",
            [id(), id()],
        );
    }
    conditions.equal("project", filter.project.as_deref());
    conditions.any_of("outcome", filter.outcome.iter().map(|one| one.name()));
    conditions.compare("at >= ?", filter.since.map(Timestamp::millis));
    conditions.compare("at < ?", filter.until.map(Timestamp::millis));
    let sql = format!(
        "SELECT {CALL} FROM calls {} ORDER BY at DESC, id DESC LIMIT {}",
        conditions.sql(),
        limit(filter.limit)
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(conditions.values(), call)?;
    rows.collect()
}

fn call(row: &Row<'_>) -> rusqlite::Result<Call> {
    let count = |column: usize| row.get::<_, i64>(column).map(|number| number as u64);
    let outcome: String = row.get(11)?;
    let outcome =
        CallOutcome::named(&outcome).ok_or_else(|| failure::unreadable(11, NoOutcome(outcome)))?;
    let kind: Option<String> = row.get(13)?;
    let cost: Option<i64> = row.get(22)?;
    let record = CallRecord {
        call: row.get(0)?,
        run: RunId::new(row.get::<_, String>(1)?),
        session: SessionId::new(row.get::<_, String>(2)?),
        at: Timestamp::from_millis(row.get(4)?),
        protocol: row.get(5)?,
        endpoint: row.get(6)?,
        upstream: row.get(7)?,
        asked_model: row.get(8)?,
        model: row.get(9)?,
        stream: row.get(10)?,
        outcome,
        status: row.get(12)?,
        // A kind that only a newer unstuck knows is none here.
        kind: kind.and_then(|name| name.parse().ok()),
        attempts: row.get(14)?,
        waited_ms: count(15)?,
        first_byte_ms: count(16)?,
        duration_ms: count(17)?,
        sent_bytes: count(18)?,
        tokens: tokens(row)?,
        cost_usd: cost.map(|nanos| nanos as f64 / 1e9),
    };
    Ok(Call {
        id: record.call.clone(),
        project: row.get(3)?,
        record,
    })
}

fn tokens(row: &Row<'_>) -> rusqlite::Result<Option<Tokens>> {
    let count = |column: usize| row.get::<_, Option<i64>>(column);
    let (Some(input), Some(cached), Some(output)) = (count(19)?, count(20)?, count(21)?) else {
        return Ok(None);
    };
    Ok(Some(Tokens {
        input: input as u64,
        cached: cached as u64,
        output: output as u64,
        requests: 1,
    }))
}

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not known as the end of a call")]
struct NoOutcome(String);
