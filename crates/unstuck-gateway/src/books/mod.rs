//! The books: calls and events are kept in the store, a moment later and many at once.
//!
//! Nobody who answers a client waits for the disk. What is noted is written within half a second, or as soon as
//! a thousand calls have come together; so a kill loses less than a second of it. If the store cannot keep up, the
//! oldest is left out, and that is told once.

mod begun;
mod queue;
mod writing;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use unstuck_core::agent::Agents;
use unstuck_core::episode::RunFold;
use unstuck_core::event::CallRecord;
use unstuck_core::event::{RunResumed, RunStarted, SessionSpec, Work};
use unstuck_core::{Event, RetryPolicy, Timestamp};
use unstuck_store::{Outgoing, Owner, ProbeSlot, Store};

use self::begun::{Begun, GATEWAY};
use self::queue::Queue;
use crate::ledger::{Ledger, Lookup};
use crate::session::{SILENCE, Session, SessionSetup};
use crate::{clock, identity};

/// What has been noted is written after so long at most.
const SOON: Duration = Duration::from_millis(500);
/// So many calls are not kept waiting.
const MANY: usize = 1000;
/// How often it is said that the sessions of clients are still served.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// Names that clients give are cut.
const LONGEST_NAME: usize = 100;

/// The messages about events that are about to be written to a run of which this is known.
pub type Announce = dyn Fn(&RunFold, &[Event], Timestamp) -> Vec<Outgoing> + Send + Sync;

/// What the books are told before they are opened.
pub struct BooksOptions {
    /// The root folder of the project that sessions of unknown clients belong to; empty for none.
    pub project: String,
    /// The version of the knowledge that decisions are made with.
    pub knowledge: String,
    /// This process, which serves the sessions of unknown clients; without it they are shown as cut off.
    pub owner: Option<Owner>,
    /// Knows what people are told about a question before it is written; none where nobody is told.
    pub announce: Option<Box<Announce>>,
    /// Is told, in one sentence, when something could not be written down; once, and at the end.
    pub tell: Box<dyn Fn(&str) + Send + Sync>,
}

/// Keeps calls and events in a store.
pub struct StoreLedger {
    shared: Arc<Books>,
    task: JoinHandle<()>,
}

/// What the task that writes shares with those who note.
struct Books {
    store: Store,
    options: BooksOptions,
    noted: Mutex<Noted>,
    /// Something is to be written.
    wake: Notify,
    /// Much is to be written.
    full: Notify,
    /// Whose turn it is to write.
    turn: tokio::sync::Mutex<()>,
    has_told: AtomicBool,
}

#[derive(Default)]
struct Noted {
    queue: Queue,
    begun: Begun,
}

impl StoreLedger {
    /// Opens the books, on the runtime of the caller.
    pub fn start(store: Store, options: BooksOptions) -> Self {
        let shared = Arc::new(Books {
            store,
            options,
            noted: Mutex::default(),
            wake: Notify::new(),
            full: Notify::new(),
            turn: tokio::sync::Mutex::default(),
            has_told: AtomicBool::new(false),
        });
        let task = tokio::spawn(Arc::clone(&shared).keep());
        Self { shared, task }
    }

    /// Writes all that has been noted so far, as far as the store lets it.
    pub async fn flush(&self) {
        self.shared.write_out().await;
    }

    /// Ends the sessions of clients whose gateway was killed: nobody else will. It is also done by itself after a few
    /// seconds.
    pub async fn end_forsaken(&self) {
        self.shared.end_forsaken().await;
    }

    /// How many calls and events could not be written down.
    pub fn dropped(&self) -> u64 {
        self.shared.noted().queue.dropped()
    }

    /// Ends the sessions that began here, and writes all that has been noted.
    pub async fn close(&self) {
        let books = &self.shared;
        books.end_all();
        books.write_out().await;
        let lost = books.noted().queue.all_left();
        if lost > 0 {
            (books.options.tell)(&format!(
                "{lost} records of API calls could not be written to the store"
            ));
        }
        self.task.abort();
    }
}

impl Drop for StoreLedger {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Ledger for StoreLedger {
    fn begin(&self, name: &str, client: Option<&str>, policy: &RetryPolicy) -> SessionSetup {
        let run = identity::run();
        let at = clock::at();
        let agent = client.and_then(|client| Agents::built_in().of_client(client));
        let spec = SessionSpec {
            session: run.session(1),
            cwd: self.shared.options.project.clone(),
            command: vec![GATEWAY.to_owned(), called(name, client)],
            agent: agent.map(|agent| agent.id().to_owned()),
            model: None,
            policy: policy.clone(),
            origins: Default::default(),
            timeout_ms: None,
            idle_timeout_ms: None,
            options: serde_json::Value::Null,
            unrepeatable: Some("it is a client's own session".to_owned()),
            knowledge: self.shared.options.knowledge.clone(),
        };
        let started = RunStarted {
            head: None,
            project: self.shared.options.project.clone(),
            work: Work::Command(Box::new(spec)),
        };
        let mut noted = self.shared.noted();
        noted.begun.begin(run.clone(), at);
        noted.queue.begin(run.clone(), at, Box::new(started).into());
        drop(noted);
        self.shared.wake.notify_one();
        SessionSetup {
            name: name.to_owned(),
            session: run.session(1),
            run,
            project: self.shared.options.project.clone(),
            policy: policy.clone(),
            budget: None,
            spent: 0.0,
            asks: true,
            agent: agent.map(|agent| agent.id().to_owned()),
        }
    }

    fn call(&self, record: CallRecord) {
        let books = &self.shared;
        let mut noted = books.noted();
        if noted.begun.called(&record) {
            let (run, at) = (record.run.clone(), record.at);
            let again = RunResumed::as_it_was("its client was silent", std::process::id());
            noted.queue.begin(run, at, again.into());
        }
        let many = noted.queue.call(record) >= MANY;
        drop(noted);
        books.wake.notify_one();
        if many {
            books.full.notify_one();
        }
    }

    fn event(&self, session: &Session, at: Timestamp, event: Event) {
        let run = session.setup().run.clone();
        self.shared.noted().queue.event(run, at, event);
        self.shared.wake.notify_one();
    }

    // A store that cannot be asked keeps nobody from asking an upstream.
    fn take_probe<'a>(
        &'a self,
        upstream: &'a str,
        now: Timestamp,
        every: Duration,
    ) -> Lookup<'a, ProbeSlot> {
        let store = &self.shared.store;
        Box::pin(async move { store.take_probe(upstream, now, every).await.ok() })
    }

    fn recovered_at<'a>(&'a self, upstream: &'a str) -> Lookup<'a, Timestamp> {
        let store = &self.shared.store;
        Box::pin(async move { store.recovered_at(upstream).await.ok().flatten() })
    }

    fn recovered(&self, upstream: &str, at: Timestamp) {
        let (store, upstream) = (self.shared.store.clone(), upstream.to_owned());
        tokio::spawn(async move {
            // Others find out by themselves.
            let _ = store.note_recovery(&upstream, at).await;
        });
    }
}

/// What a client is called: by the name of its session, or by its program where it has named none.
fn called(name: &str, client: Option<&str>) -> String {
    let program = client.and_then(|client| client.split_whitespace().next());
    let program = program.filter(|_| identity::is_of_client(name));
    program.unwrap_or(name).chars().take(LONGEST_NAME).collect()
}

impl Books {
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what is noted, for as long as there are books.
    async fn keep(self: Arc<Self>) {
        let mut beat = tokio::time::interval(HEARTBEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first comes at once.
        beat.tick().await;
        let mut is_first = true;
        loop {
            tokio::select! {
                () = self.wake.notified() => {
                    // What comes meanwhile is written with it.
                    let _ = tokio::time::timeout(SOON, self.full.notified()).await;
                }
                _ = beat.tick() => {
                    if std::mem::take(&mut is_first) {
                        self.end_forsaken().await;
                    }
                    self.end_idle();
                    self.renew().await;
                }
            }
            self.write_out().await;
        }
    }

    fn end_all(&self) {
        let now = clock::at();
        let mut noted = self.noted();
        let ends = noted.begun.end_all(now, "the gateway stopped");
        noted.queue.end(ends, now);
    }

    fn end_idle(&self) {
        let now = clock::at();
        let mut noted = self.noted();
        let ends = noted.begun.end_idle(now, SILENCE);
        noted.queue.end(ends, now);
    }

    /// Says that something cannot be written down, unless it has been said.
    fn complain(&self, why: &str) {
        if !self.has_told.swap(true, Ordering::Relaxed) {
            (self.options.tell)(why);
        }
    }
}
