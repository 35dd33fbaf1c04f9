//! Usage reported by agents for their attempts, stored next to the calls the gateway measured.

use rusqlite::{Connection, params};
use unstuck_core::event::{AttemptEnd, Event, EventRecord};
use unstuck_core::views::RunSummary;

use super::run_and_event_queries;
use crate::rollup;
use crate::spending::token_count;

/// An attempt starts at the latest start event of its session.
const INSERT_REPORT: &str = "INSERT INTO told VALUES (?1, ?2, ?3,
    coalesce((
        SELECT max(at) FROM events WHERE run = ?1 AND session = ?3 AND event = 'attempt_started' AND seq < ?2
    ), ?4), ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";

/// Records the usage that an agent reported for an ended attempt.
pub(super) fn record(
    connection: &Connection,
    recorded: &EventRecord,
    view: Option<&RunSummary>,
) -> rusqlite::Result<()> {
    let Some(end) = reporting_end(&recorded.event) else {
        return Ok(());
    };
    let tokens = end.usage.tokens;
    connection.prepare_cached(INSERT_REPORT)?.execute(params![
        recorded.run.as_str(),
        recorded.seq as i64,
        end.session.as_str(),
        recorded.at.millis(),
        rollup::hour_number(recorded.at),
        view.map_or("", |view| view.project.as_str()),
        end.model.as_deref().unwrap_or_default(),
        end.usage.cost_usd.map(rollup::usd_to_nanos),
        tokens.map(|tokens| token_count(tokens.input)),
        tokens.map(|tokens| token_count(tokens.cached)),
        tokens.map(|tokens| token_count(tokens.output)),
    ])?;
    Ok(())
}

/// Returns the end of an attempt with reported usage.
fn reporting_end(event: &Event) -> Option<&AttemptEnd> {
    let end = match event {
        Event::AttemptSucceeded(attempt) => &attempt.end,
        Event::AttemptFailed(attempt) => &attempt.end,
        _ => return None,
    };
    let used = &end.usage;
    let is_told = !used.is_from_gateway && (used.cost_usd.is_some() || used.tokens.is_some());
    is_told.then_some(end)
}

/// Fills the table from the existing events.
pub(super) fn backfill(connection: &Connection) -> rusqlite::Result<()> {
    let mut done = Ok(());
    run_and_event_queries::for_each_run(connection, |events| {
        let view = RunSummary::from_events(events);
        for recorded in events {
            if done.is_ok() {
                done = record(connection, recorded, view.as_ref());
            }
        }
    })?;
    done
}
