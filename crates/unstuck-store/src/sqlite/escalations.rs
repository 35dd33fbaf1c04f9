//! The table of escalations, maintained next to the events that open and close them.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};
use unstuck_core::Timestamp;
use unstuck_core::event::{EscalationOpened, EscalationResolved, Event, EventRecord, RunId};
use unstuck_core::views::RunSummary;

use super::run_and_event_queries::{self, WhereClause};
use super::sqlite_error;
use crate::error::StoreError;
use crate::escalation::{
    EscalationAnswerPrecondition, EscalationClosure, EscalationFilter, EscalationRow,
    EscalationStatusFilter,
};

const INSERT_ESCALATION: &str =
    "INSERT OR REPLACE INTO questions (run, id, session, project, at, hash, asked, answered, answer)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, NULL, NULL)";

/// An event without escalation and session closes all escalations of the run, except those about a budget.
const CLOSE_ANSWERED: &str = "UPDATE questions SET answered = ?2, answer = ?3
    WHERE run = ?1 AND answered IS NULL AND (
        id = ?4 OR (
            ?4 IS NULL AND (?5 IS NULL OR session = ?5) AND NOT (
                json_extract(asked, '$.type') = 'cost_confirmation' AND coalesce(json_extract(asked, '$.reason_code'), json_extract(asked, '$.why')) = 'max_cost'
            )
        )
    )";

/// Resuming a run closes its escalations, except those about a budget.
const CLOSE_EXCEPT_BUDGETS: &str = "UPDATE questions SET answered = ?2
    WHERE run = ?1 AND answered IS NULL AND NOT (
        json_extract(asked, '$.type') = 'cost_confirmation' AND coalesce(json_extract(asked, '$.reason_code'), json_extract(asked, '$.why')) = 'max_cost'
    )";

const CLOSE_ALL: &str = "UPDATE questions SET answered = ?2 WHERE run = ?1 AND answered IS NULL";

/// Applies an event.
pub(super) fn apply_event(
    connection: &Connection,
    recorded: &EventRecord,
    view: Option<&RunSummary>,
) -> rusqlite::Result<()> {
    let (run, at) = (recorded.run.as_str(), recorded.at.millis());
    match &recorded.event {
        Event::EscalationOpened(asked) => {
            let text = serde_json::to_string(asked)
                .map_err(|error| sqlite_error::invalid_json(6, error))?;
            connection
                .prepare_cached(INSERT_ESCALATION)?
                .execute(params![
                    run,
                    asked.id,
                    asked.session.as_ref().map(|session| session.as_str()),
                    view.map_or("", |view| view.project.as_str()),
                    at,
                    asked.details.hash,
                    text,
                ])?;
        }
        Event::EscalationResolved(resolved) if resolved.is_by_human() => {
            let text = serde_json::to_string(resolved)
                .map_err(|error| sqlite_error::invalid_json(8, error))?;
            let session = resolved.session.as_ref().map(|session| session.as_str());
            let row = params![run, at, text, resolved.id, session];
            connection.prepare_cached(CLOSE_ANSWERED)?.execute(row)?;
        }
        Event::RunResumed(_) => {
            let resumed = params![run, at];
            connection
                .prepare_cached(CLOSE_EXCEPT_BUDGETS)?
                .execute(resumed)?;
        }
        Event::RunFinished(end) if !end.outcome.is_resumable() => {
            connection
                .prepare_cached(CLOSE_ALL)?
                .execute(params![run, at])?;
        }
        _ => {}
    }
    Ok(())
}

/// Returns the reason why an answer is rejected, if it is.
pub(super) fn answer_refusal(
    connection: &Connection,
    run: &RunId,
    answers: &EscalationAnswerPrecondition,
) -> rusqlite::Result<Option<StoreError>> {
    let filter = EscalationFilter {
        run: Some(run.clone()),
        prefix: Some(answers.escalation.clone()),
        status: EscalationStatusFilter::Any,
        ..EscalationFilter::default()
    };
    let id = || answers.escalation.clone();
    let mut found = list(connection, &filter)?.into_iter();
    let found = found.find(|one| one.request.id == answers.escalation);
    Ok(match found {
        None => Some(StoreError::UnknownEscalation { id: id() }),
        Some(EscalationRow {
            closure: Some(answered),
            ..
        }) => Some(StoreError::AlreadyAnswered {
            id: id(),
            closure: Box::new(answered),
        }),
        Some(question) if question.request.details.hash != answers.hash => {
            Some(StoreError::EscalationChanged { id: id() })
        }
        Some(_) => None,
    })
}

/// Returns the matching escalations in the order of the status filter.
pub(super) fn list(
    connection: &Connection,
    filter: &EscalationFilter,
) -> rusqlite::Result<Vec<EscalationRow>> {
    let mut conditions = WhereClause::default();
    let place = match filter.status {
        EscalationStatusFilter::Closed => "answered, run, id",
        EscalationStatusFilter::Open | EscalationStatusFilter::Any => "at, run, id",
    };
    match filter.status {
        EscalationStatusFilter::Open => conditions.add("answered IS NULL", []),
        EscalationStatusFilter::Closed => conditions.add("answered IS NOT NULL", []),
        EscalationStatusFilter::Any => {}
    }
    conditions.add_equal("run", filter.run.as_ref().map(RunId::as_str));
    if let Some(prefix) = &filter.prefix {
        let end = format!("{prefix}\u{10FFFF}");
        conditions.add("id >= ? AND id < ?", [prefix.clone().into(), end.into()]);
    }
    conditions.add_equal("project", filter.project.as_deref());
    if let Some(after) = &filter.after {
        let behind = format!("({place}) < (SELECT {place} FROM questions WHERE id = ?)");
        conditions.add(&behind, [Value::from(after.clone())]);
    }
    let sql = format!(
        "SELECT run, project, at, asked, answered, answer FROM questions {} ORDER BY {} LIMIT {}",
        conditions.sql(),
        place.replace(", ", " DESC, ") + " DESC",
        run_and_event_queries::sql_limit(filter.limit)
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(conditions.values(), escalation_from_row)?;
    rows.collect()
}

fn escalation_from_row(row: &Row<'_>) -> rusqlite::Result<EscalationRow> {
    let asked: String = row.get(3)?;
    let asked: EscalationOpened =
        serde_json::from_str(&asked).map_err(|error| sqlite_error::invalid_json(3, error))?;
    let answer: Option<String> = row.get(5)?;
    let answer = answer.and_then(|text| serde_json::from_str::<EscalationResolved>(&text).ok());
    let answered: Option<i64> = row.get(4)?;
    Ok(EscalationRow {
        run: RunId::new(row.get::<_, String>(0)?),
        project: row.get(1)?,
        at: Timestamp::from_millis(row.get(2)?),
        request: asked,
        closure: answered.map(|at| EscalationClosure {
            at: Timestamp::from_millis(at),
            answer,
        }),
    })
}

/// Returns the number of open escalations.
pub(super) fn count_open(connection: &Connection) -> rusqlite::Result<usize> {
    let sql = "SELECT count(*) FROM questions WHERE answered IS NULL";
    let count: i64 = connection
        .prepare_cached(sql)?
        .query_row([], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Returns whether an escalation is open; cheap enough for polling ten times a second.
pub(super) fn is_open(connection: &Connection, run: &RunId, id: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT answered IS NULL FROM questions WHERE run = ?1 AND id = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let waits = statement.query_row([run.as_str(), id], |row| row.get(0));
    Ok(waits.optional()?.unwrap_or(false))
}

/// Fills the table from the existing events.
pub(super) fn backfill(connection: &Connection) -> rusqlite::Result<()> {
    let mut done = Ok(());
    run_and_event_queries::for_each_run(connection, |events| {
        let view = RunSummary::from_events(events);
        for recorded in events {
            if done.is_ok() {
                done = apply_event(connection, recorded, view.as_ref());
            }
        }
    })?;
    done
}
