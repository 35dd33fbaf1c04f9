//! The store recorder: writes calls and events to the store, in batches and with a short delay.
//!
//! No request waits for the disk. Records are written within half a second, or as soon as a thousand calls are queued;
//! so a kill loses less than a second of them. If the store cannot keep up, the oldest records are dropped, with one
//! warning.

mod client_runs;
mod write_queue;
mod writer;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use unstuck_core::agent::Agents;
use unstuck_core::event::ApiCallRecord;
use unstuck_core::event::{RunKind, RunResumed, RunStarted, SessionSpec};
use unstuck_core::views::RunProjection;
use unstuck_core::{Event, RetryPolicy, Timestamp};
use unstuck_store::{LeaseOwner, NewOutboxMessage, ProbeClaimOutcome, Store};

use self::client_runs::{ClientRuns, GATEWAY_PROGRAM};
use self::write_queue::WriteQueue;
use crate::recorder::{GatewayRecorder, RecorderLookupFuture};
use crate::session::{GatewaySession, GatewaySessionSetup, IDLE_TIMEOUT};
use crate::{id_generation, system_clock};

/// The maximum delay before records are written.
const FLUSH_INTERVAL: Duration = Duration::from_millis(500);
/// The number of queued calls that triggers a write.
const FLUSH_CALLS: usize = 1000;
/// The interval for renewing the leases of client sessions.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// The maximum length of a client name.
const LONGEST_NAME: usize = 100;

/// Builds the notifications for events that are about to be written to a run with the given facts.
pub type NotificationBuilderFn =
    dyn Fn(&RunProjection, &[Event], Timestamp) -> Vec<NewOutboxMessage> + Send + Sync;

/// The options of a store recorder.
pub struct StoreRecorderOptions {
    /// The project root directory of sessions of unknown clients; empty for none.
    pub project: String,
    /// The version of the knowledge that decisions are made with.
    pub knowledge: String,
    /// This process as the lease owner of client sessions; without it they are shown as crashed.
    pub owner: Option<LeaseOwner>,
    /// Builds the notifications about an escalation before it is written; `None` if nobody is notified.
    pub build_messages: Option<Box<NotificationBuilderFn>>,
    /// Receives one sentence when a record could not be written; once, and at the end.
    pub warn: Box<dyn Fn(&str) + Send + Sync>,
}

/// A recorder that writes calls and events to a store.
pub struct StoreRecorder {
    shared: Arc<RecorderState>,
    task: JoinHandle<()>,
}

/// The state shared by the writing task and its callers.
struct RecorderState {
    store: Store,
    options: StoreRecorderOptions,
    pending: Mutex<PendingRecords>,
    /// Signals queued records.
    wake: Notify,
    /// Signals a full batch.
    full: Notify,
    /// Serializes the writers.
    write_lock: tokio::sync::Mutex<()>,
    has_warned: AtomicBool,
}

#[derive(Default)]
struct PendingRecords {
    queue: WriteQueue,
    client_runs: ClientRuns,
}

impl StoreRecorder {
    /// Starts the recorder, on the runtime of the caller.
    pub fn start(store: Store, options: StoreRecorderOptions) -> Self {
        let shared = Arc::new(RecorderState {
            store,
            options,
            pending: Mutex::default(),
            wake: Notify::new(),
            full: Notify::new(),
            write_lock: tokio::sync::Mutex::default(),
            has_warned: AtomicBool::new(false),
        });
        let task = tokio::spawn(Arc::clone(&shared).write_loop());
        Self { shared, task }
    }

    /// Writes all queued records, as far as the store accepts them.
    pub async fn flush(&self) {
        self.shared.flush_queue().await;
    }

    /// Ends the client sessions of killed gateways, which would otherwise stay open. It also runs automatically after a
    /// few seconds.
    pub async fn end_orphaned_runs(&self) {
        self.shared.end_orphaned_runs().await;
    }

    /// Returns the number of calls and events that were dropped.
    pub fn dropped_count(&self) -> u64 {
        self.shared.pending().queue.dropped_count()
    }

    /// Ends the sessions that began here, and writes all queued records.
    pub async fn close(&self) {
        let books = &self.shared;
        books.end_all();
        books.flush_queue().await;
        let lost = books.pending().queue.unwritten_count();
        if lost > 0 {
            (books.options.warn)(&format!(
                "{lost} records of API calls could not be written to the store"
            ));
        }
        self.task.abort();
    }
}

impl Drop for StoreRecorder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl GatewayRecorder for StoreRecorder {
    fn begin_session(
        &self,
        name: &str,
        client: Option<&str>,
        policy: &RetryPolicy,
    ) -> GatewaySessionSetup {
        let run = id_generation::new_run_id();
        let at = system_clock::timestamp_now();
        let agent = client.and_then(|client| Agents::built_in().by_user_agent(client));
        let spec = SessionSpec {
            session: run.session_id(1),
            cwd: self.shared.options.project.clone(),
            command: vec![GATEWAY_PROGRAM.to_owned(), client_name(name, client)],
            agent: agent.map(|agent| agent.id().to_owned()),
            model: None,
            policy: policy.clone(),
            origins: Default::default(),
            timeout_ms: None,
            idle_timeout_ms: None,
            options: serde_json::Value::Null,
            unrepeatable_reason: Some("the session is controlled by its client".to_owned()),
            knowledge: self.shared.options.knowledge.clone(),
        };
        let started = RunStarted {
            head: None,
            project: self.shared.options.project.clone(),
            kind: RunKind::Command(Box::new(spec)),
        };
        let mut noted = self.shared.pending();
        noted.client_runs.begin(run.clone(), at);
        noted
            .queue
            .push_begin(run.clone(), at, Box::new(started).into());
        drop(noted);
        self.shared.wake.notify_one();
        GatewaySessionSetup {
            name: name.to_owned(),
            session: run.session_id(1),
            run,
            project: self.shared.options.project.clone(),
            policy: policy.clone(),
            budget: None,
            spent: 0.0,
            escalates: true,
            agent: agent.map(|agent| agent.id().to_owned()),
        }
    }

    fn record_call(&self, record: ApiCallRecord) {
        let books = &self.shared;
        let mut noted = books.pending();
        if noted.client_runs.on_call(&record) {
            let (run, at) = (record.run.clone(), record.at);
            let again = RunResumed::unchanged("client idle", std::process::id());
            noted.queue.push_begin(run, at, again.into());
        }
        let many = noted.queue.push_call(record) >= FLUSH_CALLS;
        drop(noted);
        books.wake.notify_one();
        if many {
            books.full.notify_one();
        }
    }

    fn record_event(&self, session: &GatewaySession, at: Timestamp, event: Event) {
        let run = session.setup().run.clone();
        self.shared.pending().queue.push_event(run, at, event);
        self.shared.wake.notify_one();
    }

    // A store that does not answer must not block calls to an upstream.
    fn claim_probe<'a>(
        &'a self,
        upstream: &'a str,
        now: Timestamp,
        every: Duration,
    ) -> RecorderLookupFuture<'a, ProbeClaimOutcome> {
        let store = &self.shared.store;
        Box::pin(async move { store.claim_probe(upstream, now, every).await.ok() })
    }

    fn upstream_recovered_at<'a>(
        &'a self,
        upstream: &'a str,
    ) -> RecorderLookupFuture<'a, Timestamp> {
        let store = &self.shared.store;
        Box::pin(async move { store.upstream_recovered_at(upstream).await.ok().flatten() })
    }

    fn count_released_call<'a>(
        &'a self,
        upstream: &'a str,
        now: Timestamp,
    ) -> RecorderLookupFuture<'a, u32> {
        let store = &self.shared.store;
        Box::pin(async move { store.count_released_call(upstream, now).await.ok() })
    }

    fn record_upstream_recovery(&self, upstream: &str, at: Timestamp) {
        let (store, upstream) = (self.shared.store.clone(), upstream.to_owned());
        tokio::spawn(async move {
            // Other processes find out by themselves.
            let _ = store.record_upstream_recovery(&upstream, at).await;
        });
    }
}

/// Returns the display name of a client: its session name, or its program if it has not named itself.
fn client_name(name: &str, client: Option<&str>) -> String {
    let program = client.and_then(|client| client.split_whitespace().next());
    let program = program.filter(|_| id_generation::is_client_session_name(name));
    program.unwrap_or(name).chars().take(LONGEST_NAME).collect()
}

impl RecorderState {
    fn pending(&self) -> MutexGuard<'_, PendingRecords> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes queued records until the recorder is dropped.
    async fn write_loop(self: Arc<Self>) {
        let mut beat = tokio::time::interval(HEARTBEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first record is written at once.
        beat.tick().await;
        let mut is_first = true;
        loop {
            tokio::select! {
                () = self.wake.notified() => {
                    // Records that arrive meanwhile are written with it.
                    let _ = tokio::time::timeout(FLUSH_INTERVAL, self.full.notified()).await;
                }
                _ = beat.tick() => {
                    if std::mem::take(&mut is_first) {
                        self.end_orphaned_runs().await;
                    }
                    self.end_idle();
                    self.renew_leases().await;
                }
            }
            self.flush_queue().await;
        }
    }

    fn end_all(&self) {
        let now = system_clock::timestamp_now();
        let mut noted = self.pending();
        let ends = noted.client_runs.end_all(now, "the gateway stopped");
        noted.queue.push_ends(ends, now);
    }

    fn end_idle(&self) {
        let now = system_clock::timestamp_now();
        let mut noted = self.pending();
        let ends = noted.client_runs.end_idle(now, IDLE_TIMEOUT);
        noted.queue.push_ends(ends, now);
    }

    /// Warns that records cannot be written, once.
    fn warn_once(&self, why: &str) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            (self.options.warn)(why);
        }
    }
}
