//! A store in one SQLite file: one writer thread, and a few reader threads on demand.

mod api_calls;
mod attempt_stats;
mod connections;
mod disk_space;
mod escalations;
mod failure_analytics;
mod failure_list;
mod hourly_daily_tables;
mod hourly_stats;
mod leases;
mod log_follower;
mod log_tailer;
mod maintenance;
mod migrations;
mod open;
mod outbox;
mod projections;
mod projects;
mod reader_pool;
mod rebuild_counts;
mod reported_usage;
mod run_and_event_queries;
mod spending;
mod sqlite_error;
pub(crate) mod stored_settings;
mod upstream_health;
mod writer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::oneshot;
use unstuck_core::Timestamp;
use unstuck_core::event::{EventRecord, RunId, SessionId};
use unstuck_core::views::{FailureAnalytics, RunStatus, RunSummary, UsageGap};

use self::log_tailer::{LogBroadcaster, TailerWakeUp};
use self::reader_pool::ReaderPool;
use self::writer::{StoreWriter, WriteJob};
use crate::api_calls::{CallFilter, PreparedCalls, StoredCall};
use crate::append_request::{EventPayloadRedactor, PreparedEventBatch};
use crate::error::StoreError;
use crate::escalation::{EscalationFilter, EscalationRow};
use crate::failure_query::{FailureCursor, FailurePage, FailureQuery};
use crate::lease::{Lease, LeaseChange, LeaseClaim, LeaseClaimOutcome, LeaseToken};
use crate::maintenance::{MaintenanceReport, MaintenanceTask};
use crate::options::StoreOptions;
use crate::outbox::{OutboxChange, OutboxFilter, OutboxMessage};
use crate::outcome_statistics::{StatsQuery, StatsRow};
use crate::projects::ProjectSummary;
use crate::query::{EventFilter, EventLogEntry, EventPage, RunFilter};
use crate::recovery_statistics::{RecoveryStatisticsQuery, RecoveryStatisticsReport};
use crate::spending::{CostSummary, SpendingQuery};
use crate::stored_settings::{SettingHistoryEntry, SettingUpdate, StoredSetting};
use crate::upstream_health::{CallRelease, ProbeClaimOutcome, UpstreamHealthChange};

/// The channel for the response to a request.
type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// A store in one SQLite file.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    state: Arc<SqliteState>,
}

#[derive(Debug)]
struct SqliteState {
    path: PathBuf,
    redact: Option<EventPayloadRedactor>,
    /// `None` if the store is read-only.
    writer: Option<Sender<WriteJob>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    readers: ReaderPool,
    tailer: LogBroadcaster,
}

impl SqliteStore {
    pub(crate) async fn open(path: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        let (writer, queue) = mpsc::channel();
        let (ready, opened) = oneshot::channel();
        let (given, patience) = (path.to_owned(), options.busy_timeout);
        let bell = Arc::new(TailerWakeUp::default());
        let rung = Arc::clone(&bell);
        let open = move || match open::open_writer(&given, patience) {
            Err(error) => drop(ready.send(Err(error))),
            Ok((connection, path)) => {
                let writer = StoreWriter::new(connection, path.clone(), patience, rung);
                // The receiver may be gone; then the queue has ended too.
                let _ = ready.send(Ok(path));
                writer.run(&queue);
            }
        };
        let thread = thread::Builder::new()
            .name("unstuck-store".into())
            .spawn(open)
            .map_err(StoreError::database)?;
        let path = opened.await.map_err(|_| StoreError::store_closed())??;
        Ok(Self {
            state: Arc::new(SqliteState {
                readers: ReaderPool::new(path.clone(), patience),
                tailer: LogBroadcaster::new(path.clone(), patience, bell),
                path,
                redact: options.redact,
                writer: Some(writer),
                thread: Mutex::new(Some(thread)),
            }),
        })
    }

    /// Opens a store read-only: writes are rejected.
    pub(crate) async fn open_read_only(
        path: &Path,
        options: StoreOptions,
    ) -> Result<Self, StoreError> {
        let (given, patience) = (path.to_owned(), options.busy_timeout);
        let (reply, opened) = oneshot::channel();
        let open = move || {
            // The receiver may be gone.
            let _ = reply.send(open::read_only_path(&given, patience));
        };
        thread::Builder::new()
            .name("unstuck-store".into())
            .spawn(open)
            .map_err(StoreError::database)?;
        let name = opened.await.map_err(|_| StoreError::store_closed())??;
        Ok(Self {
            state: Arc::new(SqliteState {
                readers: ReaderPool::new(name.clone(), patience),
                tailer: LogBroadcaster::new(name, patience, Arc::default()),
                path: path.to_owned(),
                redact: options.redact,
                writer: None,
                thread: Mutex::new(None),
            }),
        })
    }

    /// Checks that the store's directory is writable and has free space.
    pub(crate) fn probe_disk_space(&self) -> Result<(), StoreError> {
        let path = &self.state.path;
        if self.state.writer.is_none() {
            return Err(StoreError::ReadOnly { path: path.clone() });
        }
        disk_space::probe(path)
    }

    pub(crate) fn redactor(&self) -> Option<&EventPayloadRedactor> {
        self.state.redact.as_ref()
    }

    pub(crate) async fn append(
        &self,
        append: PreparedEventBatch,
    ) -> Result<Vec<EventRecord>, StoreError> {
        self.write(|reply| WriteJob::append(append, reply)).await
    }

    pub(crate) async fn claim(&self, request: LeaseClaim) -> Result<LeaseClaimOutcome, StoreError> {
        self.write(|reply| WriteJob::lease(LeaseChange::Claim(request), reply))
            .await
    }

    pub(crate) async fn renew(&self, token: &LeaseToken, now: Timestamp) -> Result<(), StoreError> {
        let change = LeaseChange::Renew(token.clone(), now);
        self.write(|reply| WriteJob::lease(change, reply)).await?;
        Ok(())
    }

    pub(crate) async fn release(&self, token: &LeaseToken) -> Result<(), StoreError> {
        let change = LeaseChange::Release(token.clone());
        self.write(|reply| WriteJob::lease(change, reply)).await?;
        Ok(())
    }

    pub(crate) async fn load(&self, run: &RunId) -> Result<Vec<EventRecord>, StoreError> {
        let run = run.clone();
        self.read(move |connection| run_and_event_queries::load(connection, &run))
            .await
    }

    pub(crate) async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| {
            let mut runs = run_and_event_queries::runs(connection, &filter)?;
            for run in &mut runs {
                spending::fill_run_cost(connection, run)?;
            }
            Ok(runs)
        })
        .await
    }

    pub(crate) async fn events(&self, filter: &EventFilter) -> Result<EventPage, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| run_and_event_queries::events(connection, &filter))
            .await
    }

    pub(crate) async fn log_entries(
        &self,
        filter: &EventFilter,
    ) -> Result<Vec<EventLogEntry>, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| run_and_event_queries::log_entries(connection, &filter))
            .await
    }

    pub(crate) async fn projects(&self) -> Result<Vec<ProjectSummary>, StoreError> {
        self.read(projects::list).await
    }

    pub(crate) async fn escalations(
        &self,
        filter: &EscalationFilter,
    ) -> Result<Vec<EscalationRow>, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| escalations::list(connection, &filter))
            .await
    }

    pub(crate) async fn count_open_escalations(&self) -> Result<usize, StoreError> {
        self.read(escalations::count_open).await
    }

    pub(crate) async fn is_escalation_open(
        &self,
        run: &RunId,
        question: &str,
    ) -> Result<bool, StoreError> {
        let (run, question) = (run.clone(), question.to_owned());
        self.read(move |connection| escalations::is_open(connection, &run, &question))
            .await
    }

    pub(crate) async fn leases(&self) -> Result<Vec<Lease>, StoreError> {
        self.read(leases::load_all).await
    }

    pub(crate) async fn outbox_messages(
        &self,
        filter: &OutboxFilter,
    ) -> Result<Vec<OutboxMessage>, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| outbox::list(connection, &filter))
            .await
    }

    pub(crate) async fn change_outbox(
        &self,
        change: OutboxChange,
    ) -> Result<Vec<OutboxMessage>, StoreError> {
        self.write(|reply| WriteJob::outbox(change, reply)).await
    }

    pub(crate) async fn record_calls(&self, calls: PreparedCalls) -> Result<(), StoreError> {
        self.write(|reply| WriteJob::calls(calls, reply)).await
    }

    pub(crate) async fn calls(&self, filter: &CallFilter) -> Result<Vec<StoredCall>, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| api_calls::list(connection, &filter))
            .await
    }

    pub(crate) async fn spending(
        &self,
        query: &SpendingQuery,
    ) -> Result<Vec<CostSummary>, StoreError> {
        let query = query.clone();
        self.read(move |connection| spending::list(connection, &query))
            .await
    }

    pub(crate) async fn run_cost(&self, run: &RunId) -> Result<Option<CostSummary>, StoreError> {
        let run = run.clone();
        self.read(move |connection| spending::for_run(connection, &run))
            .await
    }

    pub(crate) async fn session_costs(&self, run: &RunId) -> Result<Vec<CostSummary>, StoreError> {
        let run = run.clone();
        self.read(move |connection| spending::for_sessions(connection, &run))
            .await
    }

    pub(crate) async fn session_model(
        &self,
        run: &RunId,
        session: &SessionId,
    ) -> Result<Option<String>, StoreError> {
        let (run, session) = (run.clone(), session.clone());
        self.read(move |connection| spending::answering_model(connection, &run, Some(&session)))
            .await
    }

    pub(crate) async fn count_runs(&self) -> Result<BTreeMap<RunStatus, u64>, StoreError> {
        self.read(projects::count_runs).await
    }

    pub(crate) async fn unfinished_runs(&self) -> Result<Vec<(RunId, RunStatus)>, StoreError> {
        self.read(projects::unfinished_runs).await
    }

    pub(crate) async fn cost_in_gap(
        &self,
        run: &RunId,
        time: &UsageGap,
    ) -> Result<CostSummary, StoreError> {
        let (run, time) = (run.clone(), time.clone());
        self.read(move |connection| spending::for_gap(connection, &run, &time))
            .await
    }

    pub(crate) async fn stats(&self, query: &StatsQuery) -> Result<Vec<StatsRow>, StoreError> {
        let query = query.clone();
        self.read(move |connection| hourly_stats::stats(connection, &query))
            .await
    }

    pub(crate) async fn recovery_report(
        &self,
        query: &RecoveryStatisticsQuery,
    ) -> Result<RecoveryStatisticsReport, StoreError> {
        let query = query.clone();
        self.read(move |connection| hourly_stats::recovery_report(connection, &query))
            .await
    }

    pub(crate) async fn failure_analytics(
        &self,
        query: &FailureQuery,
    ) -> Result<FailureAnalytics, StoreError> {
        let query = query.clone();
        self.read(move |connection| failure_analytics::failure_analytics(connection, &query))
            .await
    }

    pub(crate) async fn failure_page(
        &self,
        query: &FailureQuery,
        after: Option<FailureCursor>,
        most: usize,
    ) -> Result<FailurePage, StoreError> {
        let query = query.clone();
        self.read(move |connection| failure_list::page(connection, &query, after, most))
            .await
    }

    pub(crate) async fn setting(&self, key: &str) -> Result<Option<StoredSetting>, StoreError> {
        let key = key.to_owned();
        self.read(move |connection| stored_settings::find(connection, &key))
            .await
    }

    pub(crate) async fn settings(&self, prefix: &str) -> Result<Vec<StoredSetting>, StoreError> {
        let prefix = prefix.to_owned();
        self.read(move |connection| stored_settings::list(connection, &prefix))
            .await
    }

    pub(crate) async fn setting_changes(
        &self,
        key: &str,
        most: usize,
    ) -> Result<Vec<SettingHistoryEntry>, StoreError> {
        let key = key.to_owned();
        self.read(move |connection| stored_settings::revisions(connection, &key, most))
            .await
    }

    pub(crate) async fn put_setting(
        &self,
        put: SettingUpdate,
    ) -> Result<StoredSetting, StoreError> {
        self.write(|reply| WriteJob::setting(put, reply)).await
    }

    pub(crate) async fn change_upstream(
        &self,
        change: UpstreamHealthChange,
    ) -> Result<ProbeClaimOutcome, StoreError> {
        self.write(|reply| WriteJob::upstream(change, reply)).await
    }

    pub(crate) async fn count_released_call(
        &self,
        release: CallRelease,
    ) -> Result<u32, StoreError> {
        self.write(|reply| WriteJob::release(release, reply)).await
    }

    pub(crate) async fn upstream_recovered_at(
        &self,
        url: &str,
    ) -> Result<Option<Timestamp>, StoreError> {
        let url = url.to_owned();
        self.read(move |connection| upstream_health::recovered_at(connection, &url))
            .await
    }

    pub(crate) async fn maintain(
        &self,
        task: MaintenanceTask,
    ) -> Result<MaintenanceReport, StoreError> {
        match task {
            MaintenanceTask::Check => self.read(maintenance::check).await,
            MaintenanceTask::Vacuum => self.write_exclusive(maintenance::vacuum).await,
            MaintenanceTask::Prune(before) => {
                self.write_exclusive(move |connection| maintenance::prune(connection, before))
                    .await
            }
        }
    }

    pub(crate) async fn close(self) -> Result<(), StoreError> {
        self.state.tailer.close();
        self.state.readers.close();
        if self.state.writer.is_none() {
            return Ok(());
        }
        self.write(WriteJob::Close).await?;
        let mut thread = self
            .state
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match thread.take().map(JoinHandle::join) {
            Some(Err(_)) => Err(StoreError::store_closed()),
            _ => Ok(()),
        }
    }

    async fn write<T>(&self, job: impl FnOnce(Reply<T>) -> WriteJob) -> Result<T, StoreError> {
        let Some(writer) = &self.state.writer else {
            let path = self.state.path.clone();
            return Err(StoreError::ReadOnly { path });
        };
        let (reply, answer) = oneshot::channel();
        let sent = writer.send(job(reply));
        sent.map_err(|_| StoreError::store_closed())?;
        answer.await.map_err(|_| StoreError::store_closed())?
    }

    async fn write_exclusive<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (path, patience) = (self.state.path.clone(), self.state.readers.busy_timeout());
        self.write(|reply: Reply<T>| {
            WriteJob::Exclusive(Box::new(move |connection| {
                let done = connections::with_busy_timeout(connection, patience, work)
                    .map_err(|error| sqlite_error::to_store_error(&path, error));
                // The receiver may be gone.
                let _ = reply.send(done);
            }))
        })
        .await
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.state.readers.read(work, reply)?;
        answer.await.map_err(|_| StoreError::store_closed())?
    }
}
