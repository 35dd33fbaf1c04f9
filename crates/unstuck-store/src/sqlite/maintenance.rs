//! Store maintenance: check, vacuum, prune.

use std::collections::HashMap;

use rusqlite::{Connection, TransactionBehavior, params};
use unstuck_core::Timestamp;
use unstuck_core::views::{RunStatus, RunSummary};

use super::hourly_daily_tables::{ATTEMPT_TABLES, OUTCOME_TABLES};
use super::rebuild_counts::RebuiltCounts;
use super::{hourly_stats, run_and_event_queries, spending};
use crate::maintenance::{IntegrityFinding, MaintenanceReport};
use crate::rollup::{RollupCell, RollupKey};

/// The number of runs deleted per transaction, to keep lock times short.
const PRUNE_BATCH: usize = 200;

/// The note that marks hourly counts as including deleted runs.
const PRUNED_NOTE: &str = "pruned_before";

/// Checks for damage in a consistent snapshot.
pub(super) fn check(connection: &Connection) -> rusqlite::Result<MaintenanceReport> {
    connection.execute_batch("BEGIN")?;
    let checked = check_all(connection);
    connection.execute_batch("COMMIT")?;
    checked
}

fn check_all(connection: &Connection) -> rusqlite::Result<MaintenanceReport> {
    let mut findings = check_file(connection)?;
    let (mut runs, mut events) = (0, 0);
    if findings.is_empty() {
        let mut views = stored_views(connection)?;
        let mut recount = RebuiltCounts::default();
        run_and_event_queries::for_each_run(connection, |run| {
            recount.add_run(run);
            runs += 1;
            events += run.len() as u64;
            let numbered = (1..).zip(run).all(|(seq, event)| event.seq == seq);
            let view = RunSummary::from_events(run);
            let id = run
                .first()
                .map(|first| first.run.to_string())
                .unwrap_or_default();
            if !numbered {
                findings.push(IntegrityFinding::new(&*id, "event numbers have gaps"));
            }
            if views.remove(&id) != view.map(Some) {
                findings.push(IntegrityFinding::new(
                    id,
                    "summary does not match the events",
                ));
            }
        })?;
        let without = views.into_keys();
        findings.extend(without.map(|id| IntegrityFinding::new(id, "no events")));
        recount.add_calls(connection)?;
        findings.extend(check_hourly(connection, &recount)?);
        findings.extend(check_daily(connection)?);
        findings.extend(check_cost_totals(connection)?);
        findings.extend(check_dashboard(connection, &recount)?);
    }
    Ok(MaintenanceReport::Checked {
        findings,
        runs,
        events,
    })
}

fn check_file(connection: &Connection) -> rusqlite::Result<Vec<IntegrityFinding>> {
    let mut statement = connection.prepare("PRAGMA integrity_check(20)")?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
    let lines: Vec<String> = lines.collect::<rusqlite::Result<_>>()?;
    let wrong = lines.into_iter().filter(|line| line != "ok");
    Ok(wrong
        .map(|line| IntegrityFinding::new("file", line))
        .collect())
}

/// Returns the stored run summaries; `None` for unreadable ones.
fn stored_views(connection: &Connection) -> rusqlite::Result<HashMap<String, Option<RunSummary>>> {
    let mut statement = connection.prepare("SELECT view, id FROM runs")?;
    let rows = statement.query_map([], |row| {
        Ok((row.get(1)?, run_and_event_queries::view_from_row(row)?))
    })?;
    rows.collect()
}

fn check_hourly(
    connection: &Connection,
    recount: &RebuiltCounts,
) -> rusqlite::Result<Option<IntegrityFinding>> {
    let pruned = is_pruned(connection)?;
    let kept = hourly_stats::load_cells(connection)?;
    let right = recount.cells.iter().all(|(key, cell)| {
        kept.get(&sql_key(key))
            .is_some_and(|kept| kept == cell || (pruned && covers_cell(kept, cell)))
    });
    let complete = pruned || kept.len() == recount.cells.len();
    let wrong = !(right && complete);
    Ok(wrong.then(|| IntegrityFinding::new("hourly", "hourly counts do not match the events")))
}

fn check_daily(connection: &Connection) -> rusqlite::Result<Option<IntegrityFinding>> {
    let right =
        OUTCOME_TABLES.are_consistent(connection)? && ATTEMPT_TABLES.are_consistent(connection)?;
    Ok((!right)
        .then(|| IntegrityFinding::new("daily", "daily counts do not match the hourly counts")))
}

fn check_dashboard(
    connection: &Connection,
    recount: &RebuiltCounts,
) -> rusqlite::Result<Vec<IntegrityFinding>> {
    let pruned = is_pruned(connection)?;
    let mut findings = Vec::new();
    if !recount.attempts.match_stored(connection, pruned)? {
        let problem = "failure counts do not match the events and calls";
        findings.push(IntegrityFinding::new("tries", problem));
    }
    if !recount.projects.match_stored(connection, pruned)? {
        let problem = "project summaries do not match the events and calls";
        findings.push(IntegrityFinding::new("projects", problem));
    }
    Ok(findings)
}

/// Returns whether the counts include deleted runs.
fn is_pruned(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM notes WHERE name = ?1)";
    connection.query_row(sql, [PRUNED_NOTE], |row| row.get(0))
}

fn check_cost_totals(connection: &Connection) -> rusqlite::Result<Option<IntegrityFinding>> {
    let wrong = !spending::is_consistent(connection)?;
    Ok(wrong.then(|| IntegrityFinding::new("spent", "cost totals do not match the calls")))
}

fn sql_key(key: &RollupKey) -> [String; 6] {
    [
        key.hour.to_string(),
        key.project.clone(),
        key.kind.to_owned(),
        key.model.clone(),
        key.strategy.clone(),
        key.outcome.clone(),
    ]
}

fn covers_cell(whole: &RollupCell, part: &RollupCell) -> bool {
    let mut buckets = whole.histogram.iter().zip(part.histogram);
    whole.count >= part.count
        && whole.duration_ms >= part.duration_ms
        && buckets.all(|(whole, part)| *whole >= part)
}

/// Reclaims the disk space of deleted rows.
pub(super) fn vacuum(connection: &mut Connection) -> rusqlite::Result<MaintenanceReport> {
    let before = file_size(connection)?;
    connection.execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)")?;
    Ok(MaintenanceReport::Vacuumed {
        before,
        after: file_size(connection)?,
    })
}

fn file_size(connection: &Connection) -> rusqlite::Result<u64> {
    let sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
    connection
        .query_row(sql, [], |row| row.get::<_, i64>(0))
        .map(|size| size as u64)
}

/// Deletes the runs that finished before this time, in small batches.
pub(super) fn prune(
    connection: &mut Connection,
    before: Timestamp,
) -> rusqlite::Result<MaintenanceReport> {
    let (mut runs, mut events) = (0, 0);
    loop {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = find_prunable_runs(&transaction, before)?;
        for id in &done {
            events += delete_run(&transaction, id)?;
        }
        if !done.is_empty() {
            transaction.execute(
                "INSERT OR REPLACE INTO notes (name, value) VALUES (?1, ?2)",
                params![PRUNED_NOTE, before.to_string()],
            )?;
        }
        transaction.commit()?;
        runs += done.len() as u64;
        if done.len() < PRUNE_BATCH {
            break;
        }
    }
    // Delivered messages of unfinished runs are not needed either.
    let sql = "DELETE FROM outbox WHERE closed < ?1";
    connection.execute(sql, [before.millis()])?;
    let sql = "SELECT count(*) FROM runs WHERE updated < ?1";
    let kept: i64 = connection.query_row(sql, [before.millis()], |row| row.get(0))?;
    Ok(MaintenanceReport::Pruned {
        runs,
        events,
        kept: kept as u64,
    })
}

/// Deletes a run, and returns the number of its events.
fn delete_run(connection: &Connection, run: &str) -> rusqlite::Result<u64> {
    let delete = |sql: &str| connection.prepare_cached(sql)?.execute([run]);
    delete(
        "DELETE FROM sessions WHERE run = ?1
            AND session IN (SELECT session FROM events WHERE run = ?1)",
    )?;
    delete("DELETE FROM leases WHERE run = ?1")?;
    delete("DELETE FROM questions WHERE run = ?1")?;
    // Reported usage replaces that of the calls, so both are summed up before they are deleted.
    spending::anonymize_run(connection, run)?;
    delete("DELETE FROM calls WHERE run = ?1")?;
    delete("DELETE FROM outbox WHERE run = ?1 AND closed IS NOT NULL")?;
    delete("DELETE FROM runs WHERE id = ?1")?;
    Ok(delete("DELETE FROM events WHERE run = ?1")? as u64)
}

/// Returns a few runs that finished before this time and cannot be resumed.
fn find_prunable_runs(connection: &Connection, before: Timestamp) -> rusqlite::Result<Vec<String>> {
    let last = RunStatus::ALL.iter().filter(|status| status.is_final());
    let names = last.map(|status| format!("'{status}'")).collect::<Vec<_>>();
    let sql = format!(
        "SELECT id FROM runs WHERE status IN ({}) AND finished < ?1 AND updated < ?1 LIMIT {PRUNE_BATCH}",
        names.join(", ")
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement
        .query_map([before.millis()], |row| row.get(0))?
        .collect()
}
