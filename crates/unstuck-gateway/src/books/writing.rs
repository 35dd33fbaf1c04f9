//! How what has been noted gets into the store, and what is done when it does not.

use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use unstuck_core::duration::in_millis;
use unstuck_core::episode::{RunFold, RunView, Status};
use unstuck_core::event::RunFinished;
use unstuck_core::money::known;
use unstuck_core::{Event, RunId, Timestamp};
use unstuck_store::{Append, CallFilter, Claim, ClaimRequest, Outgoing, RunFilter, StoreError};

use super::Books;
use super::begun::{GATEWAY, outcome};
use super::queue::{Batch, Happened};
use crate::clock;

/// So many runs that were left without an end are looked at.
const FORSAKEN: usize = 1000;

impl Books {
    /// Writes all that has been noted, until there is nothing more or the store refuses.
    pub(super) async fn write_out(&self) {
        let _turn = self.turn.lock().await;
        loop {
            let batch = self.noted().queue.take();
            if batch.is_empty() {
                break;
            }
            let left = self.write(batch).await;
            if !left.is_empty() {
                self.noted().queue.put_back(left);
                break;
            }
        }
        if self.noted().queue.dropped() > 0 {
            self.complain("the store does not keep up: some records of API calls are left out");
        }
    }

    /// Writes a batch, and gives back what can be tried again.
    async fn write(&self, batch: Batch) -> Batch {
        let begins = self.append(batch.begins).await;
        if !begins.is_empty() {
            // Nothing can be written of a run that has not begun.
            return Batch { begins, ..batch };
        }
        let mut left = Batch::default();
        self.claim().await;
        left.events = self.append(batch.events).await;
        if !batch.calls.is_empty()
            && let Err(error) = self.store.record_calls(batch.calls.clone()).await
        {
            self.refused(&error);
            left.calls = batch.calls;
        }
        let ended: Vec<RunId> = batch.ends.iter().map(|end| end.run.clone()).collect();
        left.ends = self.append(batch.ends).await;
        if left.ends.is_empty() {
            self.release(&ended).await;
        }
        left
    }

    /// Writes events, and gives back those that can be tried again.
    async fn append(&self, events: Vec<Happened>) -> Vec<Happened> {
        let mut told = Vec::with_capacity(events.len());
        for happened in &events {
            told.push(self.announced(happened).await);
        }
        let writes = events.iter().zip(told).map(|(happened, told)| {
            let Happened { run, at, event } = happened.clone();
            let append = Append::new(run, at, [event]);
            self.store.append(append.telling(told))
        });
        // All are asked for before the first is waited for: one flush of the disk keeps them all.
        let written = join_all(writes).await;
        let mut left = Vec::new();
        for (happened, written) in events.into_iter().zip(written) {
            match written {
                Ok(_) => {}
                Err(error) if is_final(&error) => {
                    self.noted().queue.give_up();
                    self.refused(&error);
                }
                Err(error) => {
                    self.refused(&error);
                    left.push(happened);
                }
            }
        }
        left
    }

    /// What people are told about an event: that they are asked something.
    async fn announced(&self, happened: &Happened) -> Vec<Outgoing> {
        let (Some(announce), Event::RecoveryEscalated(_)) =
            (&self.options.announce, &happened.event)
        else {
            return Vec::new();
        };
        // What cannot be told of is in the inbox all the same.
        let known = self.store.load(&happened.run).await.unwrap_or_default();
        let run = RunFold::fold(&known);
        let event = std::slice::from_ref(&happened.event);
        run.map_or_else(Vec::new, |run| announce(&run, event, happened.at))
    }

    fn refused(&self, error: &StoreError) {
        self.complain(&format!(
            "records of API calls cannot be written for now: {error}; the calls go on"
        ));
    }

    /// Says who serves the sessions that began here.
    async fn claim(&self) {
        let Some(owner) = &self.options.owner else {
            return;
        };
        let runs = self.noted().begun.unleased();
        for run in runs {
            let request = ClaimRequest {
                run,
                owner: owner.clone(),
                now: clock::at(),
                instead_of: None,
            };
            // Without it a run is shown as cut off, and nothing else is lost.
            if let Ok(Claim::Yours(lease)) = self.store.claim(request).await {
                self.noted().begun.leased(lease);
            }
        }
    }

    /// Says that they are still served.
    pub(super) async fn renew(&self) {
        let leases = self.noted().begun.leases();
        let now = clock::at();
        // What cannot be renewed now can be the next time, before it has run out.
        join_all(leases.iter().map(|lease| self.store.renew(lease, now))).await;
    }

    async fn release(&self, runs: &[RunId]) {
        for run in runs {
            let lease = self.noted().begun.take_lease(run);
            if let Some(lease) = lease {
                // It runs out by itself.
                let _ = self.store.release(&lease).await;
            }
        }
    }

    /// Ends the sessions of clients whose gateway was killed.
    pub(super) async fn end_forsaken(&self) {
        if self.options.owner.is_none() || self.has_told.load(Ordering::Relaxed) {
            return;
        }
        let filter = RunFilter {
            status: vec![Status::Running],
            limit: Some(FORSAKEN),
            ..RunFilter::default()
        };
        let (Ok(runs), Ok(leases)) = (self.store.runs(&filter).await, self.store.leases().await)
        else {
            return;
        };
        let now = clock::at();
        let is_served = |run: &RunId| {
            let mut of_run = leases.iter().filter(|lease| lease.token.run == *run);
            of_run.any(|lease| !lease.is_expired(now)) || self.noted().begun.knows(run)
        };
        for run in runs {
            let is_clients = run.command.first().is_some_and(|word| word == GATEWAY);
            if is_clients && !is_served(&run.id) {
                self.end_one(&run, now).await;
            }
        }
    }

    async fn end_one(&self, run: &RunView, now: Timestamp) {
        let filter = CallFilter {
            run: Some(run.id.clone()),
            limit: Some(1),
            ..CallFilter::default()
        };
        let Ok(newest) = self.store.calls(&filter).await else {
            return;
        };
        let last = newest.first().map(|call| &call.record);
        let end = RunFinished {
            outcome: outcome(last.map(|call| call.outcome), run.error_count > 0),
            exit_code: 0,
            reason: "its gateway was stopped from outside".to_owned(),
            attempts: 0,
            retry_count: run.retry_count,
            recovery_level: run.recovery_level,
            cost_usd: known(run.cost_usd, run.unpriced),
            duration_ms: in_millis(last.map_or(run.updated, |call| call.at).since(run.started)),
        };
        let end = Append::new(run.id.clone(), now, [end.into()]);
        // The next gateway tries again.
        let _ = self.store.append(end).await;
    }
}

/// Whether trying again cannot help.
fn is_final(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::UnknownRun { .. } | StoreError::RunExists { .. }
    )
}
