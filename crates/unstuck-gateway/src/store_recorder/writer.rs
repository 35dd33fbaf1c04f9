//! Writes queued records to the store, and handles its errors.

use std::sync::atomic::Ordering;

use futures_util::future::join_all;
use unstuck_core::duration::to_millis;
use unstuck_core::event::RunFinished;
use unstuck_core::money::known_cost;
use unstuck_core::views::{RunProjection, RunStatus, RunSummary};
use unstuck_core::{Event, RunId, Timestamp};
use unstuck_store::{
    CallFilter, LeaseClaim, LeaseClaimOutcome, NewOutboxMessage, RunEventBatch, RunFilter,
    StoreError,
};

use super::RecorderState;
use super::client_runs::{GATEWAY_PROGRAM, run_outcome};
use super::write_queue::{QueuedEvent, WriteBatch};
use crate::system_clock;

/// The maximum number of orphaned runs that are checked.
const MAX_ORPHANS: usize = 1000;

impl RecorderState {
    /// Writes all queued records, until none is left or the store fails.
    pub(super) async fn flush_queue(&self) {
        let _turn = self.write_lock.lock().await;
        loop {
            let batch = self.pending().queue.take_batch();
            if batch.is_empty() {
                break;
            }
            let left = self.write_batch(batch).await;
            if !left.is_empty() {
                self.pending().queue.put_back(left);
                break;
            }
        }
        if self.pending().queue.dropped_count() > 0 {
            self.warn_once("the store cannot keep up: some records of API calls are dropped");
        }
    }

    /// Writes a batch and returns the records to retry.
    async fn write_batch(&self, batch: WriteBatch) -> WriteBatch {
        let begins = self.append_events(batch.begins).await;
        if !begins.is_empty() {
            // Nothing of a run can be written before its start.
            return WriteBatch { begins, ..batch };
        }
        let mut left = WriteBatch::default();
        self.claim_leases().await;
        left.events = self.append_events(batch.events).await;
        if !batch.calls.is_empty()
            && let Err(error) = self.store.record_calls(batch.calls.clone()).await
        {
            self.report_refusal(&error);
            left.calls = batch.calls;
        }
        let ended: Vec<RunId> = batch.ends.iter().map(|end| end.run.clone()).collect();
        left.ends = self.append_events(batch.ends).await;
        if left.ends.is_empty() {
            self.release_leases(&ended).await;
        }
        left
    }

    /// Writes events and returns those to retry.
    async fn append_events(&self, events: Vec<QueuedEvent>) -> Vec<QueuedEvent> {
        let mut told = Vec::with_capacity(events.len());
        for happened in &events {
            told.push(self.messages_for(happened).await);
        }
        let writes = events.iter().zip(told).map(|(happened, told)| {
            let QueuedEvent { run, at, event } = happened.clone();
            let append = RunEventBatch::new(run, at, [event]);
            self.store.append(append.with_messages(told))
        });
        // All writes are started before the first is awaited: one disk sync covers them all.
        let written = join_all(writes).await;
        let mut left = Vec::new();
        for (happened, written) in events.into_iter().zip(written) {
            match written {
                Ok(_) => {}
                Err(error) if is_permanent(&error) => {
                    self.pending().queue.count_dropped();
                    self.report_refusal(&error);
                }
                Err(error) => {
                    self.report_refusal(&error);
                    left.push(happened);
                }
            }
        }
        left
    }

    /// Returns the notifications about an event: an escalation.
    async fn messages_for(&self, happened: &QueuedEvent) -> Vec<NewOutboxMessage> {
        let (Some(announce), Event::EscalationOpened(_)) =
            (&self.options.build_messages, &happened.event)
        else {
            return Vec::new();
        };
        // An escalation without notification is still in the inbox.
        let known = self.store.load(&happened.run).await.unwrap_or_default();
        let run = RunProjection::from_events(&known);
        let event = std::slice::from_ref(&happened.event);
        run.map_or_else(Vec::new, |run| announce(&run, event, happened.at))
    }

    fn report_refusal(&self, error: &StoreError) {
        self.warn_once(&format!(
            "cannot write records of API calls for now: {error}; calls continue"
        ));
    }

    /// Claims the leases of the sessions that began here.
    async fn claim_leases(&self) {
        let Some(owner) = &self.options.owner else {
            return;
        };
        let runs = self.pending().client_runs.runs_without_lease();
        for run in runs {
            let request = LeaseClaim {
                run,
                owner: owner.clone(),
                now: system_clock::timestamp_now(),
                replaces: None,
            };
            // Without a lease a run is shown as crashed, and nothing else is lost.
            if let Ok(LeaseClaimOutcome::Granted(lease)) = self.store.claim(request).await {
                self.pending().client_runs.add_lease(lease);
            }
        }
    }

    /// Renews the leases.
    pub(super) async fn renew_leases(&self) {
        let leases = self.pending().client_runs.leases();
        let now = system_clock::timestamp_now();
        // A lease that cannot be renewed now can be the next time, before it expires.
        join_all(leases.iter().map(|lease| self.store.renew(lease, now))).await;
    }

    async fn release_leases(&self, runs: &[RunId]) {
        for run in runs {
            let lease = self.pending().client_runs.take_lease(run);
            if let Some(lease) = lease {
                // The lease expires by itself.
                let _ = self.store.release(&lease).await;
            }
        }
    }

    /// Ends the client sessions of killed gateways.
    pub(super) async fn end_orphaned_runs(&self) {
        if self.options.owner.is_none() || self.has_warned.load(Ordering::Relaxed) {
            return;
        }
        let filter = RunFilter {
            status: vec![RunStatus::Running],
            limit: Some(MAX_ORPHANS),
            ..RunFilter::default()
        };
        let (Ok(runs), Ok(leases)) = (self.store.runs(&filter).await, self.store.leases().await)
        else {
            return;
        };
        let now = system_clock::timestamp_now();
        let is_served = |run: &RunId| {
            let mut of_run = leases.iter().filter(|lease| lease.token.run == *run);
            of_run.any(|lease| !lease.is_expired(now)) || self.pending().client_runs.contains(run)
        };
        for run in runs {
            let is_clients = run
                .command
                .first()
                .is_some_and(|word| word == GATEWAY_PROGRAM);
            if is_clients && !is_served(&run.id) {
                self.end_orphaned_run(&run, now).await;
            }
        }
    }

    async fn end_orphaned_run(&self, run: &RunSummary, now: Timestamp) {
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
            outcome: run_outcome(last.map(|call| call.outcome), run.error_count > 0),
            exit_code: 0,
            reason: "the gateway exited unexpectedly".to_owned(),
            attempts: 0,
            retry_count: run.retry_count,
            recovery_level: run.recovery_level,
            cost_usd: known_cost(run.cost_usd, run.unpriced_count),
            duration_ms: to_millis(last.map_or(run.updated, |call| call.at).since(run.started)),
        };
        let end = RunEventBatch::new(run.id.clone(), now, [end.into()]);
        // The next gateway retries.
        let _ = self.store.append(end).await;
    }
}

/// Returns true if a retry cannot help.
fn is_permanent(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::UnknownRun { .. } | StoreError::RunExists { .. }
    )
}
