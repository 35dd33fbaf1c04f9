//! The store, whatever keeps it.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::Stream;
use unstuck_core::Timestamp;
use unstuck_core::event::CallRecord;
use unstuck_core::event::{EventRecord, RunId, SessionId};
use unstuck_core::views::{FailureAnalytics, RunStatus, RunSummary, UsageGap};

use crate::append::{Append, PreparedAppend};
use crate::calls::{CallFilter, PreparedCalls, StoredCall};
use crate::error::StoreError;
use crate::escalation::{EscalationFilter, EscalationRow};
use crate::failure_query::{FailureCursor, FailurePage, FailureQuery};
use crate::lease::{ClaimOutcome, ClaimRequest, Lease, LeaseToken};
use crate::location::StoreLocation;
use crate::maintenance::{MaintenanceReport, MaintenanceTask};
use crate::options::StoreOptions;
use crate::outbox::{DeliveryResult, OutboxChange, OutboxFilter, OutboxMessage};
use crate::projects::ProjectSummary;
use crate::query::{EventFilter, EventPage, LogEntry, LogOffset, RunCursor, RunFilter, RunPage};
use crate::recovery_report::{RecoveryQuery, RecoveryReport};
use crate::settings::{SettingRevision, SettingUpdate, StoredSetting};
use crate::spending::{CostSummary, SpendingQuery};
use crate::sqlite::{self, SqliteStore};
use crate::stats::{StatsQuery, StatsRow};
use crate::upstreams::{ProbeGrant, UpstreamChange};

/// The log of all runs, and what can be asked about it; clones share one connection.
#[derive(Debug, Clone)]
pub enum Store {
    /// A file on this machine.
    Sqlite(SqliteStore),
}

/// What people have set in a store that nobody has to open for it; nothing where there is no store yet.
pub fn read_settings_at(
    store: &StoreLocation,
    prefix: &str,
) -> Result<Vec<StoredSetting>, StoreError> {
    sqlite::settings::read_settings_at(store.path(), prefix)
}

impl Store {
    /// Opens the store, makes it if there is none, and brings an older one up to date.
    pub async fn open(location: &StoreLocation, options: StoreOptions) -> Result<Self, StoreError> {
        SqliteStore::open(location.path(), options)
            .await
            .map(Self::Sqlite)
    }

    /// Opens the store if there is one; none is an empty history.
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
        // What cannot be written can be read all the same.
        let read_only = SqliteStore::open_read_only(location.path(), options).await;
        read_only
            .map(|store| Some(Self::Sqlite(store)))
            .map_err(|_| error)
    }

    /// Returns why nothing more could be written at present: a full or read-only disk. It waits for the disk.
    pub fn probe_disk_space(&self) -> Result<(), StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.probe_disk_space()
    }

    /// Writes events, and returns when they are on disk: all of them, or none.
    ///
    /// The events of one call stay together and in order. They get their numbers here. The first event of a run must
    /// say that it started. The end of a run gives its lease free. A call that is dropped while it waits may or may not be written.
    pub async fn append(&self, append: Append) -> Result<Vec<EventRecord>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        let prepared = PreparedAppend::new(append, sqlite.redactor())?;
        sqlite.append(prepared).await
    }

    /// All events of a run, in order; none if there is no such run.
    pub async fn load(&self, run: &RunId) -> Result<Vec<EventRecord>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.load(run).await
    }

    /// The runs that are asked for, the newest first; what an agent did not tell of its cost, its calls do.
    pub async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.runs(filter).await
    }

    /// A page of the runs that are asked for, the newest first, 50 of them unless told.
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

    /// The events that are asked for, each with its place; the place of the last one leads to the next page.
    pub async fn log_entries(&self, filter: &EventFilter) -> Result<Vec<LogEntry>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.log_entries(filter).await
    }

    /// All projects, those in which something happened last first.
    pub async fn projects(&self) -> Result<Vec<ProjectSummary>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.projects().await
    }

    /// The events that are asked for.
    pub async fn events(&self, filter: &EventFilter) -> Result<EventPage, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.events(filter).await
    }

    /// Every event of every process that writes to this store, in order, none twice and none left out.
    ///
    /// Begins after that place, or with what is written from now on. What this process writes is told at once,
    /// what others write within a fifth of a second. Any number can follow: one thread watches for all. It ends when
    /// the store is closed, and after an error.
    pub async fn follow(
        &self,
        after: Option<LogOffset>,
    ) -> Result<impl Stream<Item = Result<Vec<LogEntry>, StoreError>> + Send + use<>, StoreError>
    {
        let Self::Sqlite(sqlite) = self;
        sqlite.follow(after).await
    }

    /// The questions to people that are asked for, in the order that [`EscalationStatus`](crate::EscalationStatus) says.
    pub async fn escalations(
        &self,
        filter: &EscalationFilter,
    ) -> Result<Vec<EscalationRow>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.escalations(filter).await
    }

    /// How many questions wait for an answer.
    pub async fn count_open_escalations(&self) -> Result<usize, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.count_open_escalations().await
    }

    /// Whether a question still waits for an answer.
    pub async fn is_escalation_open(
        &self,
        run: &RunId,
        question: &str,
    ) -> Result<bool, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.is_escalation_open(run, question).await
    }

    /// Asks to drive a run. It is granted if nobody does, if their lease has expired, or if it is the very lease
    /// that the caller found to be a dead process's.
    pub async fn claim(&self, request: ClaimRequest) -> Result<ClaimOutcome, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.claim(request).await
    }

    /// Says that a run is still driven, or that it has been lost to another process.
    pub async fn renew(&self, token: &LeaseToken, now: Timestamp) -> Result<(), StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.renew(token, now).await
    }

    /// Gives a run free; nothing happens if it has been lost already.
    pub async fn release(&self, token: &LeaseToken) -> Result<(), StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.release(token).await
    }

    /// Who drives which run; those that have expired are told too.
    pub async fn leases(&self) -> Result<Vec<Lease>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.leases().await
    }

    /// Takes messages that are due out of the outbox, of so many groups at most; nobody else gets them for
    /// [a while](crate::OUTBOX_CLAIM_TTL). Those of one group to one target stand together, the oldest first.
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

    /// Takes all messages that wait, also those whose time has not come; else like [`Store::claim_due_messages`].
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

    /// Notes what came of the try to send these messages.
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

    /// The messages that are asked for, the newest first.
    pub async fn outbox_messages(
        &self,
        filter: &OutboxFilter,
    ) -> Result<Vec<OutboxMessage>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.outbox_messages(filter).await
    }

    /// Writes calls of LLM APIs, and returns when they are on disk: all of them, or none.
    pub async fn record_calls(&self, calls: Vec<CallRecord>) -> Result<(), StoreError> {
        let Self::Sqlite(sqlite) = self;
        let ready = PreparedCalls::new(calls, sqlite.redactor());
        sqlite.record_calls(ready).await
    }

    /// The calls that are asked for, the newest first.
    pub async fn calls(&self, filter: &CallFilter) -> Result<Vec<StoredCall>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.calls(filter).await
    }

    /// What was spent on calls, from the hourly sums alone.
    pub async fn spending(&self, query: &SpendingQuery) -> Result<Vec<CostSummary>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.spending(query).await
    }

    /// What all calls of a run used; none if it has made none.
    pub async fn run_cost(&self, run: &RunId) -> Result<Option<CostSummary>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.run_cost(run).await
    }

    /// What the calls used that a session of a run made in that time.
    pub(crate) async fn session_costs(&self, run: &RunId) -> Result<Vec<CostSummary>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.session_costs(run).await
    }

    /// The model that the newest calls of a session were answered by; none if it has made none.
    pub(crate) async fn session_model(
        &self,
        run: &RunId,
        session: &SessionId,
    ) -> Result<Option<String>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.session_model(run, session).await
    }

    /// How many runs of all projects stand where.
    pub async fn count_runs(&self) -> Result<BTreeMap<RunStatus, u64>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.count_runs().await
    }

    /// Every run that has not come to an end, and where it stands.
    pub async fn unfinished_runs(&self) -> Result<Vec<(RunId, RunStatus)>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.unfinished_runs().await
    }

    /// What the calls of a session used within a time.
    pub async fn cost_in_gap(
        &self,
        run: &RunId,
        time: &UsageGap,
    ) -> Result<CostSummary, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.cost_in_gap(run, time).await
    }

    /// Counts and sums over many runs, from the hourly counts alone.
    pub async fn stats(&self, query: &StatsQuery) -> Result<Vec<StatsRow>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.stats(query).await
    }

    /// How recovery went: which levels and strategies helped, how long it took, how many runs were saved.
    pub async fn recovery_report(
        &self,
        query: &RecoveryQuery,
    ) -> Result<RecoveryReport, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.recovery_report(query).await
    }

    /// What failures say together, from the hourly counts of tries alone.
    pub async fn failure_analytics(
        &self,
        query: &FailureQuery,
    ) -> Result<FailureAnalytics, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.failure_analytics(query).await
    }

    /// Failures one by one, the newest first, so many at most; a page goes on where the one before ended.
    pub async fn failure_page(
        &self,
        query: &FailureQuery,
        after: Option<FailureCursor>,
        most: usize,
    ) -> Result<FailurePage, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.failure_page(query, after, most).await
    }

    /// What somebody has set under this key, if anything.
    pub async fn setting(&self, key: &str) -> Result<Option<StoredSetting>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.setting(key).await
    }

    /// All that was set under keys that begin like this, in the order of the keys.
    pub async fn settings(&self, prefix: &str) -> Result<Vec<StoredSetting>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.settings(prefix).await
    }

    /// Sets a value or takes it away, if what is there is what the caller expects.
    ///
    /// Else the error is [`StoreError::SettingChanged`], which tells what is there. A value that is there already keeps
    /// its version.
    pub async fn put_setting(&self, mut put: SettingUpdate) -> Result<StoredSetting, StoreError> {
        let Self::Sqlite(sqlite) = self;
        // Secrets do not reach the disk.
        if let (Some(redact), Some(value)) = (sqlite.redactor(), &mut put.value) {
            redact.apply(value);
        }
        sqlite.put_setting(put).await
    }

    /// How a setting was changed, the newest change first, so many at most.
    pub async fn setting_changes(
        &self,
        key: &str,
        most: usize,
    ) -> Result<Vec<SettingRevision>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.setting_changes(key, most).await
    }

    /// Asks for the right to find out, once, whether an upstream is back; it is given to one of all processes within that time.
    pub async fn claim_probe(
        &self,
        url: &str,
        now: Timestamp,
        every: Duration,
    ) -> Result<ProbeGrant, StoreError> {
        let Self::Sqlite(sqlite) = self;
        let url = url.to_owned();
        let take = UpstreamChange::ClaimProbe { url, now, every };
        sqlite.change_upstream(take).await
    }

    /// Tells all processes that an upstream is back.
    pub async fn record_upstream_recovery(
        &self,
        url: &str,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let Self::Sqlite(sqlite) = self;
        let url = url.to_owned();
        let change = UpstreamChange::Recovered { url, at };
        sqlite.change_upstream(change).await.map(|_| ())
    }

    /// When an upstream was last seen to be back, by whichever process.
    pub async fn upstream_recovered_at(&self, url: &str) -> Result<Option<Timestamp>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.upstream_recovered_at(url).await
    }

    /// Does something to the store as a whole.
    pub async fn maintain(&self, task: MaintenanceTask) -> Result<MaintenanceReport, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.maintain(task).await
    }

    /// Ends the writing thread and waits for it; what was asked for before is still done.
    pub async fn close(self) -> Result<(), StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.close().await
    }
}
