//! Reads the store for commands that only show runs: runs by id prefix, the newest by default.

use anyhow::Result;
use serde::Serialize;
use unstuck_core::views::{
    RunStatus, RunSummary, RunTimeline, SessionStatusSummary, SessionSummary,
};
use unstuck_core::{EventRecord, RunId, Timestamp};
use unstuck_run::runner::is_alive;
use unstuck_store::{CostSummary, Lease, RunFilter, SpendingQuery, Store, StoreLocation};

use crate::error_report::refusal;
use crate::project_lookup::{abbreviate_home, current_project};
use crate::sanitized_text::truncate;
use crate::store::with_hint;

/// History of all runs; empty if there is no store yet.
pub(crate) struct RunHistory {
    store: Option<Store>,
}

/// A run in a list.
#[derive(Debug, Serialize)]
pub(crate) struct RunEntry {
    #[serde(flatten)]
    pub(crate) run: RunSummary,
    /// Its status as shown in lists.
    pub(crate) state: SessionStatusSummary,
    /// True if a process currently supervises it.
    pub(crate) supervised: bool,
}

impl RunEntry {
    pub(crate) fn new(mut run: RunSummary, supervised: bool) -> Self {
        let state = SessionStatusSummary::for_run(&run, supervised);
        run.status = state.state;
        Self {
            run,
            state,
            supervised,
        }
    }

    /// Returns the status of one of its sessions.
    pub(crate) fn session_status(&self, session: &SessionSummary) -> SessionStatusSummary {
        let is_orphaned = self.run.finished.is_none() && !self.supervised;
        SessionStatusSummary::for_session(session, is_orphaned)
    }
}

impl RunHistory {
    pub(crate) async fn open(location: &StoreLocation) -> Result<Self> {
        let store = crate::store::open_existing(location).await?;
        Ok(Self { store })
    }

    /// Returns the matching runs, newest first.
    pub(crate) async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>> {
        match &self.store {
            Some(store) => store.runs(filter).await.map_err(with_hint),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the matching runs, each with whether a process supervises it.
    pub(crate) async fn run_entries(
        &self,
        filter: &RunFilter,
        now: Timestamp,
    ) -> Result<Vec<RunEntry>> {
        let leases = self.leases().await?;
        let alive = leases.iter().filter(|lease| is_alive(lease, now));
        let alive: Vec<RunId> = alive.map(|lease| lease.token.run.clone()).collect();
        let filter = RunFilter {
            alive: Some(alive.clone()),
            ..filter.clone()
        };
        let runs = self.runs(&filter).await?;
        let listed = runs.into_iter().map(|run| {
            let supervised = alive.contains(&run.id);
            RunEntry::new(run, supervised)
        });
        Ok(listed.collect())
    }

    /// True if a process currently supervises the run.
    pub(crate) async fn is_driven(&self, run: &RunId, now: Timestamp) -> Result<bool> {
        Ok(is_driven(&self.leases().await?, run, now))
    }

    async fn leases(&self) -> Result<Vec<Lease>> {
        match &self.store {
            Some(store) => store.leases().await.map_err(with_hint),
            None => Ok(Vec::new()),
        }
    }

    /// Finds one run by a prefix of its id, or the newest of this project.
    pub(crate) async fn find(&self, letters: Option<&str>) -> Result<RunSummary> {
        match letters {
            Some(letters) => self.find_by_prefix(letters).await,
            None => match self.newest(&[], 1).await?.pop() {
                Some(newest) => Ok(newest),
                None => Err(self.no_runs_error().await?),
            },
        }
    }

    async fn no_runs_error(&self) -> Result<anyhow::Error> {
        let any = RunFilter {
            limit: Some(1),
            ..RunFilter::default()
        };
        Ok(if self.runs(&any).await?.is_empty() {
            refusal(
                "no runs yet",
                "start one with `unstuck exec -- COMMAND`, or try `unstuck demo`",
            )
        } else {
            refusal(
                format!(
                    "no runs in this project ({})",
                    abbreviate_home(&current_project())
                ),
                "`unstuck runs` lists the runs of all projects; specify one by its id",
            )
        })
    }

    async fn find_by_prefix(&self, letters: &str) -> Result<RunSummary> {
        // The id of a session or an escalation begins with that of its run.
        let of_run = letters.split_once('-').map_or(letters, |(run, _)| run);
        let filter = RunFilter {
            prefix: Some(of_run.to_ascii_lowercase()),
            limit: Some(9),
            ..RunFilter::default()
        };
        let mut found = self.runs(&filter).await?;
        match (found.len(), found.pop()) {
            (1, Some(run)) => Ok(run),
            (0, _) => Err(refusal(
                format!("run `{}` not found", truncate(letters, 40)),
                "`unstuck runs` lists runs",
            )),
            (_, last) => {
                let ids = found.iter().chain(&last).map(|run| run.id.to_string());
                Err(refusal(
                    format!("`{letters}` is ambiguous"),
                    format!("use one of {}", ids.collect::<Vec<_>>().join(", ")),
                ))
            }
        }
    }

    /// Returns the newest runs of this project with one of these statuses.
    pub(crate) async fn newest(
        &self,
        status: &[RunStatus],
        most: usize,
    ) -> Result<Vec<RunSummary>> {
        let filter = RunFilter {
            project: Some(current_project()),
            status: status.to_vec(),
            limit: Some(most),
            ..RunFilter::default()
        };
        self.runs(&filter).await
    }

    /// Returns the timeline of the selected run, and whether a process currently supervises it.
    pub(crate) async fn timeline_and_supervision(
        &self,
        letters: Option<&str>,
        now: Timestamp,
    ) -> Result<(RunTimeline, bool)> {
        let run = self.find(letters).await?;
        let supervised = self.is_driven(&run.id, now).await?;
        Ok((self.timeline(&run.id).await?, supervised))
    }

    /// Returns all events of a run.
    pub(crate) async fn events(&self, run: &RunId) -> Result<Vec<EventRecord>> {
        match &self.store {
            Some(store) => store.load(run).await.map_err(with_hint),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the timeline of a run.
    pub(crate) async fn timeline(&self, run: &RunId) -> Result<RunTimeline> {
        let story = match &self.store {
            Some(store) => store.timeline(run).await.map_err(with_hint)?,
            None => None,
        };
        story.ok_or_else(|| {
            refusal(
                format!("the start of run {run} is missing from the store"),
                "check the store with `unstuck store check`",
            )
        })
    }

    /// Returns the usage of a run's calls as counted by the gateway; none without calls.
    pub(crate) async fn spent(&self, run: &RunId) -> Result<Option<CostSummary>> {
        match &self.store {
            Some(store) => store.run_cost(run).await.map_err(with_hint),
            None => Ok(None),
        }
    }

    /// Returns the spending on calls.
    pub(crate) async fn spending(&self, query: &SpendingQuery) -> Result<Vec<CostSummary>> {
        match &self.store {
            Some(store) => store.spending(query).await.map_err(with_hint),
            None => Ok(Vec::new()),
        }
    }
}

fn is_driven(leases: &[Lease], run: &RunId, now: Timestamp) -> bool {
    let mut leases = leases.iter().filter(|lease| lease.token.run == *run);
    leases.any(|lease| is_alive(lease, now))
}
