//! What agents told that their attempts used, kept beside the calls that the gateway saw of them.

use rusqlite::{Connection, params};
use unstuck_core::episode::RunView;
use unstuck_core::event::{AttemptEnd, Event, Recorded};

use super::read;
use crate::rollup;
use crate::spending::token_count;

/// An attempt began when its session last began one.
const ADD: &str = "INSERT INTO told VALUES (?1, ?2, ?3,
    coalesce((
        SELECT max(at) FROM events WHERE run = ?1 AND session = ?3 AND event = 'attempt_started' AND seq < ?2
    ), ?4), ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";

/// Takes in what an agent told about an attempt that has ended.
pub(super) fn record(
    connection: &Connection,
    recorded: &Recorded,
    view: Option<&RunView>,
) -> rusqlite::Result<()> {
    let Some(end) = told(&recorded.event) else {
        return Ok(());
    };
    let tokens = end.used.tokens;
    connection.prepare_cached(ADD)?.execute(params![
        recorded.run.as_str(),
        recorded.seq as i64,
        end.session.as_str(),
        recorded.at.millis(),
        rollup::hour(recorded.at),
        view.map_or("", |view| view.project.as_str()),
        end.model.as_deref().unwrap_or_default(),
        end.used.cost_usd.map(rollup::nanos),
        tokens.map(|tokens| token_count(tokens.input)),
        tokens.map(|tokens| token_count(tokens.cached)),
        tokens.map(|tokens| token_count(tokens.output)),
    ])?;
    Ok(())
}

/// The end of an attempt whose agent told what it used.
fn told(event: &Event) -> Option<&AttemptEnd> {
    let end = match event {
        Event::AttemptSucceeded(attempt) => &attempt.end,
        Event::AttemptFailed(attempt) => &attempt.end,
        _ => return None,
    };
    let used = &end.used;
    let is_told = !used.is_counted && (used.cost_usd.is_some() || used.tokens.is_some());
    is_told.then_some(end)
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
