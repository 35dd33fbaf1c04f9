//! Keeps the questions to people beside the events that ask and answer them.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};
use unstuck_core::Timestamp;
use unstuck_core::episode::RunView;
use unstuck_core::event::{Event, Recorded, RecoveryEscalated, RecoveryResolved, RunId};

use super::failure;
use super::read::{self, Conditions};
use crate::error::StoreError;
use crate::question::{Answered, Answers, Question, QuestionFilter, Standing};

const ASK: &str =
    "INSERT OR REPLACE INTO questions (run, id, session, project, at, hash, asked, answered, answer)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, NULL, NULL)";

/// What names no question and no session is about all of them, but never about a budget.
const ANSWER: &str = "UPDATE questions SET answered = ?2, answer = ?3
    WHERE run = ?1 AND answered IS NULL AND (
        id = ?4 OR (
            ?4 IS NULL AND (?5 IS NULL OR session = ?5) AND NOT (
                json_extract(asked, '$.type') = 'cost_confirmation' AND json_extract(asked, '$.why') = 'max_cost'
            )
        )
    )";

/// A run that is taken up again has its questions answered, but not those about a budget.
const DROP_BUT_BUDGETS: &str = "UPDATE questions SET answered = ?2
    WHERE run = ?1 AND answered IS NULL AND NOT (
        json_extract(asked, '$.type') = 'cost_confirmation' AND json_extract(asked, '$.why') = 'max_cost'
    )";

const DROP: &str = "UPDATE questions SET answered = ?2 WHERE run = ?1 AND answered IS NULL";

/// Takes in what happened.
pub(super) fn record(
    connection: &Connection,
    recorded: &Recorded,
    view: Option<&RunView>,
) -> rusqlite::Result<()> {
    let (run, at) = (recorded.run.as_str(), recorded.at.millis());
    match &recorded.event {
        Event::RecoveryEscalated(asked) => {
            let text =
                serde_json::to_string(asked).map_err(|error| failure::unreadable(6, error))?;
            connection.prepare_cached(ASK)?.execute(params![
                run,
                asked.id,
                asked.session.as_ref().map(|session| session.as_str()),
                view.map_or("", |view| view.project.as_str()),
                at,
                asked.shown.hash,
                text,
            ])?;
        }
        Event::RecoveryResolved(resolved) if resolved.is_by_person() => {
            let text =
                serde_json::to_string(resolved).map_err(|error| failure::unreadable(8, error))?;
            let session = resolved.session.as_ref().map(|session| session.as_str());
            let row = params![run, at, text, resolved.id, session];
            connection.prepare_cached(ANSWER)?.execute(row)?;
        }
        Event::RunResumed(_) => {
            let resumed = params![run, at];
            connection
                .prepare_cached(DROP_BUT_BUDGETS)?
                .execute(resumed)?;
        }
        Event::RunFinished(end) if !end.outcome.is_resumable() => {
            connection.prepare_cached(DROP)?.execute(params![run, at])?;
        }
        _ => {}
    }
    Ok(())
}

/// Why an answer cannot be taken, if it cannot.
pub(super) fn refuse(
    connection: &Connection,
    run: &RunId,
    answers: &Answers,
) -> rusqlite::Result<Option<StoreError>> {
    let filter = QuestionFilter {
        run: Some(run.clone()),
        prefix: Some(answers.question.clone()),
        standing: Standing::Any,
        ..QuestionFilter::default()
    };
    let id = || answers.question.clone();
    let mut found = list(connection, &filter)?.into_iter();
    let found = found.find(|one| one.asked.id == answers.question);
    Ok(match found {
        None => Some(StoreError::NoQuestion { id: id() }),
        Some(Question {
            answered: Some(answered),
            ..
        }) => Some(StoreError::Answered {
            id: id(),
            answered: Box::new(answered),
        }),
        Some(question) if question.asked.shown.hash != answers.hash => {
            Some(StoreError::OtherQuestion { id: id() })
        }
        Some(_) => None,
    })
}

/// The questions that are asked for, in the order of their standing.
pub(super) fn list(
    connection: &Connection,
    filter: &QuestionFilter,
) -> rusqlite::Result<Vec<Question>> {
    let mut conditions = Conditions::default();
    let place = match filter.standing {
        Standing::Answered => "answered, run, id",
        Standing::Waiting | Standing::Any => "at, run, id",
    };
    match filter.standing {
        Standing::Waiting => conditions.add("answered IS NULL", []),
        Standing::Answered => conditions.add("answered IS NOT NULL", []),
        Standing::Any => {}
    }
    conditions.equal("run", filter.run.as_ref().map(RunId::as_str));
    if let Some(prefix) = &filter.prefix {
        let end = format!("{prefix}\u{10FFFF}");
        conditions.add("id >= ? AND id < ?", [prefix.clone().into(), end.into()]);
    }
    conditions.equal("project", filter.project.as_deref());
    if let Some(after) = &filter.after {
        let behind = format!("({place}) < (SELECT {place} FROM questions WHERE id = ?)");
        conditions.add(&behind, [Value::from(after.clone())]);
    }
    let sql = format!(
        "SELECT run, project, at, asked, answered, answer FROM questions {} ORDER BY {} LIMIT {}",
        conditions.sql(),
        place.replace(", ", " DESC, ") + " DESC",
        read::limit(filter.limit)
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(conditions.values(), question)?;
    rows.collect()
}

fn question(row: &Row<'_>) -> rusqlite::Result<Question> {
    let asked: String = row.get(3)?;
    let asked: RecoveryEscalated =
        serde_json::from_str(&asked).map_err(|error| failure::unreadable(3, error))?;
    let answer: Option<String> = row.get(5)?;
    let answer = answer.and_then(|text| serde_json::from_str::<RecoveryResolved>(&text).ok());
    let answered: Option<i64> = row.get(4)?;
    Ok(Question {
        run: RunId::new(row.get::<_, String>(0)?),
        project: row.get(1)?,
        at: Timestamp::from_millis(row.get(2)?),
        asked,
        answered: answered.map(|at| Answered {
            at: Timestamp::from_millis(at),
            answer,
        }),
    })
}

/// How many wait.
pub(super) fn waiting(connection: &Connection) -> rusqlite::Result<usize> {
    let sql = "SELECT count(*) FROM questions WHERE answered IS NULL";
    let count: i64 = connection
        .prepare_cached(sql)?
        .query_row([], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Whether one question still waits; cheap enough to be asked ten times a second.
pub(super) fn waits(connection: &Connection, run: &RunId, id: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT answered IS NULL FROM questions WHERE run = ?1 AND id = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let waits = statement.query_row([run.as_str(), id], |row| row.get(0));
    Ok(waits.optional()?.unwrap_or(false))
}

/// Fills the table from the events so far.
pub(super) fn fill(connection: &Connection) -> rusqlite::Result<()> {
    let mut done = Ok(());
    read::each_run(connection, |events| {
        let view = RunView::fold(events);
        for recorded in events {
            if done.is_ok() {
                done = record(connection, recorded, view.as_ref());
            }
        }
    })?;
    done
}
