//! The store interface, independent of the backend.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::Stream;
use unstuck_core::Timestamp;
use unstuck_core::event::ApiCallRecord;
use unstuck_core::event::{EventRecord, RunId, SessionId};
use unstuck_core::views::{FailureAnalytics, RunStatus, RunSummary, UsageGap};

use crate::api_calls::{CallFilter, PreparedCalls, StoredCall};
use crate::append_request::{PreparedEventBatch, RunEventBatch};
use crate::error::StoreError;
use crate::escalation::{EscalationFilter, EscalationRow};
use crate::failure_query::{FailureCursor, FailurePage, FailureQuery};
use crate::lease::{Lease, LeaseClaim, LeaseClaimOutcome, LeaseToken};
use crate::location::StoreLocation;
use crate::maintenance::{MaintenanceReport, MaintenanceTask};
use crate::options::StoreOptions;
use crate::outbox::{DeliveryResult, OutboxChange, OutboxFilter, OutboxMessage};
use crate::outcome_statistics::{StatsQuery, StatsRow};
use crate::projects::ProjectSummary;
use crate::query::{
    EventFilter, EventLogEntry, EventLogOffset, EventPage, RunCursor, RunFilter, RunPage,
};
use crate::recovery_statistics::{RecoveryStatisticsQuery, RecoveryStatisticsReport};
use crate::spending::{CostSummary, SpendingQuery};
use crate::sqlite::{self, SqliteStore};
use crate::stored_settings::{SettingHistoryEntry, SettingUpdate, StoredSetting};
use crate::upstream_health::{CallRelease, ProbeClaimOutcome, UpstreamHealthChange};

/// The log of all runs and its queries; clones share one connection.
#[derive(Debug, Clone)]
pub enum Store {
    /// A file on this machine.
    Sqlite(SqliteStore),
}

/// Reads the settings of a store without opening it; empty if there is no store yet.
pub fn read_settings_at(
    store: &StoreLocation,
    prefix: &str,
) -> Result<Vec<StoredSetting>, StoreError> {
    sqlite::stored_settings::read_settings_at(store.path(), prefix)
}

impl Store {
    /// Opens the store, creating or migrating it as needed.
    pub async fn open(location: &StoreLocation, options: StoreOptions) -> Result<Self, StoreError> {
        SqliteStore::open(location.path(), options)
            .await
            .map(Self::Sqlite)
    }

    /// Opens the store if it exists; a missing store is an empty history.
    pub async fn open_existing(
        location: &StoreLocation,
        options: StoreOptions,
    ) -> Result<Option<Self>, StoreError> {
        if let Ok(false) = location.path().try_exists() {
            return Ok(None);
        }
        let error = match Self::open(location, options.clone()).await {
            Ok(store) => return Ok(Some(store)),
            Err(error) => error,
        };
        if !matches!(
            error,
            StoreError::ReadOnly { .. } | StoreError::Inaccessible { .. }
        ) {
            return Err(error);
        }
        // A store that cannot be written can still be read.
        let read_only = SqliteStore::open_read_only(location.path(), options).await;
        read_only
            .map(|store| Some(Self::Sqlite(store)))
            .map_err(|_| error)
    }

    /// Returns an error if nothing can currently be written (full or read-only disk). Blocks on the disk.
    pub fn probe_disk_space(&self) -> Result<(), StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.probe_disk_space()
    }

    /// Writes events atomically, and returns when they are on disk.
    ///
    /// The events of one append stay together and in order, and get their numbers here. The first event of a run must
    /// be its start. The end of a run releases its lease. If the future is dropped, the events may or may not be
    /// written.
    pub async fn append(&self, append: RunEventBatch) -> Result<Vec<EventRecord>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        let prepared = PreparedEventBatch::new(append, sqlite.redactor())?;
        sqlite.append(prepared).await
    }

    /// Returns all events of a run, in order; empty if the run does not exist.
    pub async fn load(&self, run: &RunId) -> Result<Vec<EventRecord>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.load(run).await
    }

    /// Returns the matching runs, newest first; costs that agents did not report are taken from their calls.
    pub async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.runs(filter).await
    }

    /// Returns a page of the matching runs, newest first; 50 by default.
    pub async fn run_page(&self, filter: &RunFilter) -> Result<RunPage, StoreError> {
        let most = filter.limit.unwrap_or(50);
        let one_more = RunFilter {
            limit: Some(most.saturating_add(1)),
            ..filter.clone()
        };
        let mut runs = self.runs(&one_more).await?;
        let is_more = runs.len() > most;
        runs.truncate(most);
        let last = runs.last().map(RunCursor::at_run);
        Ok(RunPage {
            next: last.filter(|_| is_more),
            runs,
        })
    }

    /// Returns the matching events with their offsets; the last offset leads to the next page.
    pub async fn log_entries(
        &self,
        filter: &EventFilter,
    ) -> Result<Vec<EventLogEntry>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.log_entries(filter).await
    }

    /// Returns all projects, the most recently active first.
    pub async fn projects(&self) -> Result<Vec<ProjectSummary>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.projects().await
    }

    /// Returns the matching events.
    pub async fn events(&self, filter: &EventFilter) -> Result<EventPage, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.events(filter).await
    }

    /// Streams every event that any process writes to this store, in order, exactly once.
    ///
    /// Starts after that offset, or with the next event. Events of this process arrive at once, those of other
    /// processes within a fifth of a second. All followers share one tailing thread. The stream ends when the store is
    /// closed, and after an error.
    pub async fn follow(
        &self,
        after: Option<EventLogOffset>,
    ) -> Result<impl Stream<Item = Result<Vec<EventLogEntry>, StoreError>> + Send + use<>, StoreError>
    {
        let Self::Sqlite(sqlite) = self;
        sqlite.follow(after).await
    }

    /// Returns the matching escalations, in the order of their [`EscalationStatusFilter`](crate::EscalationStatusFilter).
    pub async fn escalations(
        &self,
        filter: &EscalationFilter,
    ) -> Result<Vec<EscalationRow>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.escalations(filter).await
    }

    /// Returns the number of open escalations.
    pub async fn count_open_escalations(&self) -> Result<usize, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.count_open_escalations().await
    }

    /// Returns whether an escalation is still open.
    pub async fn is_escalation_open(
        &self,
        run: &RunId,
        question: &str,
    ) -> Result<bool, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.is_escalation_open(run, question).await
    }

    /// Claims a run. The claim succeeds if nobody holds the lease, if the lease has expired, or if it is the lease that
    /// the caller found to belong to a dead process.
    pub async fn claim(&self, request: LeaseClaim) -> Result<LeaseClaimOutcome, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.claim(request).await
    }

    /// Renews a lease; fails if another process has taken the run.
    pub async fn renew(&self, token: &LeaseToken, now: Timestamp) -> Result<(), StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.renew(token, now).await
    }

    /// Releases a run; does nothing if the lease was already lost.
    pub async fn release(&self, token: &LeaseToken) -> Result<(), StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.release(token).await
    }

    /// Returns all leases, including expired ones.
    pub async fn leases(&self) -> Result<Vec<Lease>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.leases().await
    }

    /// Claims due messages from the outbox, up to this many groups, exclusively for [a while](crate::OUTBOX_CLAIM_TTL).
    /// Messages of one group to one target are adjacent, oldest first.
    pub async fn claim_due_messages(
        &self,
        now: Timestamp,
        groups: usize,
    ) -> Result<Vec<OutboxMessage>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        let take = OutboxChange::Claim {
            now,
            due_by: now,
            groups,
        };
        sqlite.change_outbox(take).await
    }

    /// Claims all pending messages, even those not yet due; otherwise like [`Store::claim_due_messages`].
    pub async fn claim_waiting_messages(
        &self,
        now: Timestamp,
    ) -> Result<Vec<OutboxMessage>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        let take = OutboxChange::Claim {
            now,
            due_by: Timestamp::from_millis(i64::MAX),
            groups: usize::MAX,
        };
        sqlite.change_outbox(take).await
    }

    /// Records the result of a delivery attempt.
    pub async fn record_delivery(
        &self,
        ids: Vec<String>,
        sent: DeliveryResult,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Self::Sqlite(sqlite) = self;
        let settle = OutboxChange::RecordDelivery {
            ids,
            result: sent,
            now,
        };
        sqlite.change_outbox(settle).await.map(drop)
    }

    /// Returns the matching messages, newest first.
    pub async fn outbox_messages(
        &self,
        filter: &OutboxFilter,
    ) -> Result<Vec<OutboxMessage>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.outbox_messages(filter).await
    }

    /// Writes API calls atomically, and returns when they are on disk.
    pub async fn record_calls(&self, calls: Vec<ApiCallRecord>) -> Result<(), StoreError> {
        let Self::Sqlite(sqlite) = self;
        let ready = PreparedCalls::new(calls, sqlite.redactor());
        sqlite.record_calls(ready).await
    }

    /// Returns the matching calls, newest first.
    pub async fn calls(&self, filter: &CallFilter) -> Result<Vec<StoredCall>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.calls(filter).await
    }

    /// Returns the spending on calls, from the hourly sums alone.
    pub async fn spending(&self, query: &SpendingQuery) -> Result<Vec<CostSummary>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.spending(query).await
    }

    /// Returns the usage of all calls of a run; `None` if it made none.
    pub async fn run_cost(&self, run: &RunId) -> Result<Option<CostSummary>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.run_cost(run).await
    }

    /// Returns the usage of the calls of a run, by session.
    pub(crate) async fn session_costs(&self, run: &RunId) -> Result<Vec<CostSummary>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.session_costs(run).await
    }

    /// Returns the model that answered the newest calls of a session; `None` if it made none.
    pub(crate) async fn session_model(
        &self,
        run: &RunId,
        session: &SessionId,
    ) -> Result<Option<String>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.session_model(run, session).await
    }

    /// Returns the number of runs in each status, over all projects.
    pub async fn count_runs(&self) -> Result<BTreeMap<RunStatus, u64>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.count_runs().await
    }

    /// Returns all unfinished runs and their statuses.
    pub async fn unfinished_runs(&self) -> Result<Vec<(RunId, RunStatus)>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.unfinished_runs().await
    }

    /// Returns the usage of a session's calls within a time interval.
    pub async fn cost_in_gap(
        &self,
        run: &RunId,
        time: &UsageGap,
    ) -> Result<CostSummary, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.cost_in_gap(run, time).await
    }

    /// Returns counts and sums over many runs, from the hourly counts alone.
    pub async fn stats(&self, query: &StatsQuery) -> Result<Vec<StatsRow>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.stats(query).await
    }

    /// Returns recovery statistics: which levels and strategies helped, how long it took, how many runs were saved.
    pub async fn recovery_report(
        &self,
        query: &RecoveryStatisticsQuery,
    ) -> Result<RecoveryStatisticsReport, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.recovery_report(query).await
    }

    /// Returns failure analytics, from the hourly attempt counts alone.
    pub async fn failure_analytics(
        &self,
        query: &FailureQuery,
    ) -> Result<FailureAnalytics, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.failure_analytics(query).await
    }

    /// Returns a page of single failures, newest first.
    pub async fn failure_page(
        &self,
        query: &FailureQuery,
        after: Option<FailureCursor>,
        most: usize,
    ) -> Result<FailurePage, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.failure_page(query, after, most).await
    }

    /// Returns the setting with this key.
    pub async fn setting(&self, key: &str) -> Result<Option<StoredSetting>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.setting(key).await
    }

    /// Returns the settings with this key prefix, in key order.
    pub async fn settings(&self, prefix: &str) -> Result<Vec<StoredSetting>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.settings(prefix).await
    }

    /// Sets or deletes a value if the current value is the expected one.
    ///
    /// Otherwise returns [`StoreError::SettingChanged`] with the current value. Writing an equal value keeps the
    /// version.
    pub async fn put_setting(&self, mut put: SettingUpdate) -> Result<StoredSetting, StoreError> {
        let Self::Sqlite(sqlite) = self;
        // Secrets must not reach the disk.
        if let (Some(redact), Some(value)) = (sqlite.redactor(), &mut put.value) {
            redact.apply(value);
        }
        sqlite.put_setting(put).await
    }

    /// Returns the latest changes of a setting, newest first.
    pub async fn setting_changes(
        &self,
        key: &str,
        most: usize,
    ) -> Result<Vec<SettingHistoryEntry>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.setting_changes(key, most).await
    }

    /// Claims the right to probe an upstream once; per interval only one process gets it.
    pub async fn claim_probe(
        &self,
        url: &str,
        now: Timestamp,
        every: Duration,
    ) -> Result<ProbeClaimOutcome, StoreError> {
        let Self::Sqlite(sqlite) = self;
        let url = url.to_owned();
        let take = UpstreamHealthChange::ClaimProbe { url, now, every };
        sqlite.change_upstream(take).await
    }

    /// Tells all processes that an upstream has recovered.
    pub async fn record_upstream_recovery(
        &self,
        url: &str,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let Self::Sqlite(sqlite) = self;
        let url = url.to_owned();
        let change = UpstreamHealthChange::Recovered { url, at };
        sqlite.change_upstream(change).await.map(|_| ())
    }

    /// Counts a call that stops waiting because its upstream has recovered, and returns its position among the calls of
    /// all processes that do so: 1 for the first.
    pub async fn count_released_call(&self, url: &str, now: Timestamp) -> Result<u32, StoreError> {
        let Self::Sqlite(sqlite) = self;
        let url = url.to_owned();
        sqlite.count_released_call(CallRelease { url, now }).await
    }

    /// Returns the last time any process saw the upstream recovered.
    pub async fn upstream_recovered_at(&self, url: &str) -> Result<Option<Timestamp>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.upstream_recovered_at(url).await
    }

    /// Runs a maintenance task.
    pub async fn maintain(&self, task: MaintenanceTask) -> Result<MaintenanceReport, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.maintain(task).await
    }

    /// Stops the writer thread after the queued requests are done.
    pub async fn close(self) -> Result<(), StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.close().await
    }
}
