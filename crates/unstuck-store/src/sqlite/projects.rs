//! Stored project summaries.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, params};
use unstuck_core::Timestamp;
use unstuck_core::event::RunId;
use unstuck_core::views::RunStatus;

use crate::projects::{ProjectSummary, ProjectTotals};

const ADD: &str = "INSERT INTO projects (project, updated, cost_nanos) VALUES (?1, ?2, ?3)
    ON CONFLICT DO UPDATE SET updated = max(updated, excluded.updated),
        cost_nanos = cost_nanos + excluded.cost_nanos";

/// Project totals that are not yet written.
#[derive(Debug, Default)]
pub(super) struct PendingProjectTotals(HashMap<String, ProjectTotals>);

impl PendingProjectTotals {
    /// Adds an event of a project.
    pub(super) fn add(&mut self, project: &str, at: Timestamp, cost_nanos: i64) {
        match self.0.get_mut(project) {
            Some(sum) => sum.add(at, cost_nanos),
            None => {
                let sum = self.0.entry(project.to_owned()).or_default();
                sum.add(at, cost_nanos);
            }
        }
    }

    /// Writes the pending totals.
    pub(super) fn flush(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        for (project, sum) in self.0.drain() {
            let row = params![project, sum.newest, sum.cost_nanos];
            connection.prepare_cached(ADD)?.execute(row)?;
        }
        Ok(())
    }

    /// Discards all state: the transaction failed, or another process has written.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns whether the stored totals match; after pruning the stored ones may be higher.
    pub(super) fn match_stored(
        &self,
        connection: &Connection,
        pruned: bool,
    ) -> rusqlite::Result<bool> {
        let kept = load_totals(connection)?;
        let right = self.0.iter().all(|(project, sum)| {
            let is_right = |kept: &ProjectTotals| {
                kept == sum
                    || (pruned && kept.newest >= sum.newest && kept.cost_nanos >= sum.cost_nanos)
            };
            kept.get(project).is_some_and(is_right)
        });
        Ok(right && (pruned || kept.len() == self.0.len()))
    }
}

fn load_totals(connection: &Connection) -> rusqlite::Result<HashMap<String, ProjectTotals>> {
    let sql = "SELECT project, updated, cost_nanos FROM projects";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        let sum = ProjectTotals {
            newest: row.get(1)?,
            cost_nanos: row.get(2)?,
        };
        Ok((row.get(0)?, sum))
    })?;
    rows.collect()
}

/// Returns all projects, the most recently active first.
pub(super) fn list(connection: &Connection) -> rusqlite::Result<Vec<ProjectSummary>> {
    let moment = connection.unchecked_transaction()?;
    let mut runs = status_counts_by_project(&moment)?;
    let sums = load_totals(&moment)?;
    let costs = costs_by_project(&moment)?;
    moment.finish()?;
    let named = sums.into_iter().filter(|(project, _)| !project.is_empty());
    let mut projects: Vec<_> = named
        .map(|(project, sum)| ProjectSummary {
            name: ProjectSummary::name_from_root(&project),
            runs: runs.remove(&project).unwrap_or_default(),
            last_activity: Timestamp::from_millis(sum.newest),
            cost_usd: costs.get(&project).map_or(0, |(cost, _)| *cost) as f64 / 1e9,
            unpriced: costs
                .get(&project)
                .map_or(0, |(_, unpriced)| (*unpriced).max(0).unsigned_abs()),
            root: project,
        })
        .collect();
    projects.sort_by(|a, b| (b.last_activity, &a.root).cmp(&(a.last_activity, &b.root)));
    Ok(projects)
}

/// Returns the number of runs by status, over all projects.
pub(super) fn count_runs(connection: &Connection) -> rusqlite::Result<BTreeMap<RunStatus, u64>> {
    let mut all = BTreeMap::new();
    for (status, count) in status_counts_by_project(connection)?
        .into_values()
        .flatten()
    {
        *all.entry(status).or_default() += count;
    }
    Ok(all)
}

/// Returns all unfinished runs and their statuses.
pub(super) fn unfinished_runs(
    connection: &Connection,
) -> rusqlite::Result<Vec<(RunId, RunStatus)>> {
    let sql = "SELECT id, status FROM runs WHERE finished IS NULL AND status IN ('running', 'waiting', 'awaiting_human')";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| {
        let status = RunStatus::from_name(row.get_ref(1)?.as_str()?);
        Ok((RunId::new(row.get::<_, String>(0)?), status))
    })?;
    let known = rows.map(|row| row.map(|(id, status)| status.map(|status| (id, status))));
    known.filter_map(Result::transpose).collect()
}

/// Returns the cost of each project, in billionths of a USD.
fn costs_by_project(connection: &Connection) -> rusqlite::Result<HashMap<String, (i64, i64)>> {
    let sql = "SELECT project, sum(cost_nanos), sum(unpriced) FROM costs GROUP BY project";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
    rows.collect()
}

/// Returns the number of runs by project and status.
fn status_counts_by_project(
    connection: &Connection,
) -> rusqlite::Result<HashMap<String, BTreeMap<RunStatus, u64>>> {
    let sql = "SELECT project, status, count(*) FROM runs INDEXED BY runs_by_standing
        GROUP BY project, status";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut runs: HashMap<String, BTreeMap<RunStatus, u64>> = HashMap::new();
    while let Some(row) = rows.next()? {
        // A status that only a newer unstuck knows is not counted.
        if let Some(status) = RunStatus::from_name(row.get_ref(1)?.as_str()?) {
            let of_project = runs.entry(row.get(0)?).or_default();
            of_project.insert(status, row.get::<_, i64>(2)? as u64);
        }
    }
    Ok(runs)
}
