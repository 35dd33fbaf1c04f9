//! The books: calls and events are kept in the store, a moment later and many at once.
//!
//! Nobody who answers a client waits for the disk. What is noted is written within half a second, or as soon as
//! a thousand calls have come together; so a kill loses less than a second of it. If the store cannot keep up, the
//! oldest is left out, and that is told once.

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
use unstuck_core::event::CallRecord;
use unstuck_core::event::{RunKind, RunResumed, RunStarted, SessionSpec};
use unstuck_core::views::RunProjection;
use unstuck_core::{Event, RetryPolicy, Timestamp};
use unstuck_store::{LeaseOwner, NewMessage, ProbeGrant, Store};

use self::client_runs::{ClientRuns, GATEWAY_PROGRAM};
use self::write_queue::WriteQueue;
use crate::recorder::{Lookup, Recorder};
use crate::session::{GatewaySession, IDLE_TIMEOUT, SessionSetup};
use crate::{clock, ids};

/// What has been noted is written after so long at most.
const FLUSH_INTERVAL: Duration = Duration::from_millis(500);
/// So many calls are not kept waiting.
const FLUSH_CALLS: usize = 1000;
/// How often it is said that the sessions of clients are still served.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// Names that clients give are cut.
const LONGEST_NAME: usize = 100;

/// The messages about events that are about to be written to a run of which this is known.
pub type MessageBuilderFn =
    dyn Fn(&RunProjection, &[Event], Timestamp) -> Vec<NewMessage> + Send + Sync;

/// What the books are told before they are opened.
pub struct RecorderOptions {
    /// The root folder of the project that sessions of unknown clients belong to; empty for none.
    pub project: String,
    /// The version of the knowledge that decisions are made with.
    pub knowledge: String,
    /// This process, which serves the sessions of unknown clients; without it they are shown as cut off.
    pub owner: Option<LeaseOwner>,
    /// Knows what people are told about a question before it is written; none where nobody is told.
    pub build_messages: Option<Box<MessageBuilderFn>>,
    /// Is told, in one sentence, when something could not be written down; once, and at the end.
    pub warn: Box<dyn Fn(&str) + Send + Sync>,
}

/// Keeps calls and events in a store.
pub struct StoreRecorder {
    shared: Arc<RecorderState>,
    task: JoinHandle<()>,
}

/// What the task that writes shares with those who note.
struct RecorderState {
    store: Store,
    options: RecorderOptions,
    pending: Mutex<PendingRecords>,
    /// Something is to be written.
    wake: Notify,
    /// Much is to be written.
    full: Notify,
    /// Whose turn it is to write.
    write_lock: tokio::sync::Mutex<()>,
    has_warned: AtomicBool,
}

#[derive(Default)]
struct PendingRecords {
    queue: WriteQueue,
    client_runs: ClientRuns,
}

impl StoreRecorder {
    /// Opens the books, on the runtime of the caller.
    pub fn start(store: Store, options: RecorderOptions) -> Self {
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

    /// Writes all that has been noted so far, as far as the store lets it.
    pub async fn flush(&self) {
        self.shared.flush_queue().await;
    }

    /// Ends the sessions of clients whose gateway was killed: nobody else will. It is also done by itself after a few
    /// seconds.
    pub async fn end_orphaned_runs(&self) {
        self.shared.end_orphaned_runs().await;
    }

    /// How many calls and events could not be written down.
    pub fn dropped_count(&self) -> u64 {
        self.shared.pending().queue.dropped_count()
    }

    /// Ends the sessions that began here, and writes all that has been noted.
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

impl Recorder for StoreRecorder {
    fn begin_session(
        &self,
        name: &str,
        client: Option<&str>,
        policy: &RetryPolicy,
    ) -> SessionSetup {
        let run = ids::new_run_id();
        let at = clock::timestamp_now();
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
            unrepeatable_reason: Some("it is a client's own session".to_owned()),
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
        SessionSetup {
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

    fn record_call(&self, record: CallRecord) {
        let books = &self.shared;
        let mut noted = books.pending();
        if noted.client_runs.on_call(&record) {
            let (run, at) = (record.run.clone(), record.at);
            let again = RunResumed::unchanged("its client was silent", std::process::id());
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

    // A store that cannot be asked keeps nobody from asking an upstream.
    fn claim_probe<'a>(
        &'a self,
        upstream: &'a str,
        now: Timestamp,
        every: Duration,
    ) -> Lookup<'a, ProbeGrant> {
        let store = &self.shared.store;
        Box::pin(async move { store.claim_probe(upstream, now, every).await.ok() })
    }

    fn upstream_recovered_at<'a>(&'a self, upstream: &'a str) -> Lookup<'a, Timestamp> {
        let store = &self.shared.store;
        Box::pin(async move { store.upstream_recovered_at(upstream).await.ok().flatten() })
    }

    fn record_upstream_recovery(&self, upstream: &str, at: Timestamp) {
        let (store, upstream) = (self.shared.store.clone(), upstream.to_owned());
        tokio::spawn(async move {
            // Others find out by themselves.
            let _ = store.record_upstream_recovery(&upstream, at).await;
        });
    }
}

/// What a client is called: by the name of its session, or by its program where it has named none.
fn client_name(name: &str, client: Option<&str>) -> String {
    let program = client.and_then(|client| client.split_whitespace().next());
    let program = program.filter(|_| ids::is_client_session_name(name));
    program.unwrap_or(name).chars().take(LONGEST_NAME).collect()
}

impl RecorderState {
    fn pending(&self) -> MutexGuard<'_, PendingRecords> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what is noted, for as long as there are books.
    async fn write_loop(self: Arc<Self>) {
        let mut beat = tokio::time::interval(HEARTBEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first comes at once.
        beat.tick().await;
        let mut is_first = true;
        loop {
            tokio::select! {
                () = self.wake.notified() => {
                    // What comes meanwhile is written with it.
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
        let now = clock::timestamp_now();
        let mut noted = self.pending();
        let ends = noted.client_runs.end_all(now, "the gateway stopped");
        noted.queue.push_ends(ends, now);
    }

    fn end_idle(&self) {
        let now = clock::timestamp_now();
        let mut noted = self.pending();
        let ends = noted.client_runs.end_idle(now, IDLE_TIMEOUT);
        noted.queue.push_ends(ends, now);
    }

    /// Says that something cannot be written down, unless it has been said.
    fn warn_once(&self, why: &str) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            (self.options.warn)(why);
        }
    }
}
