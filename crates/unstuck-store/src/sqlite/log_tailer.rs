//! The single thread that watches the log for all followers; it runs only while there are any.
//!
//! Log offsets become visible in order: SQLite has one writer at a time, an offset is assigned inside its transaction,
//! and transactions are visible entirely or not at all. So a reader that sees an offset sees all earlier ones; none of
//! them can appear later, however slow its writer was, and nobody has to look back.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::broadcast::{self, Receiver, Sender};

use super::{connections, run_and_event_queries, sqlite_error};
use crate::error::StoreError;
use crate::query::{EventLogEntry, EventLogOffset};

/// The interval at which writes of other processes are detected.
const POLL_INTERVAL: Duration = Duration::from_millis(150);

/// The number of events read and delivered at once.
pub(super) const PAGE_SIZE: usize = 256;

/// The lag in pages above which a follower reads from the table again.
const MAX_PAGES_BEHIND: usize = 32;

/// Wakes the tailer when this process has written.
#[derive(Debug, Default)]
pub(super) struct TailerWakeUp {
    is_set: Mutex<bool>,
    waiting: Condvar,
}

impl TailerWakeUp {
    pub(super) fn notify(&self) {
        *lock(&self.is_set) = true;
        self.waiting.notify_one();
    }

    fn wait(&self, at_most: Duration) {
        let rang = lock(&self.is_set);
        let waited = self
            .waiting
            .wait_timeout_while(rang, at_most, |rang| !*rang);
        let (mut rang, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *rang = false;
    }
}

/// The entries written after an offset.
#[derive(Debug, Clone)]
pub(super) struct NewLogEntries {
    pub(super) after: EventLogOffset,
    pub(super) events: Arc<[EventLogEntry]>,
}

type TailResult = Result<NewLogEntries, StoreError>;

#[derive(Debug, Clone)]
/// Sends new log entries to all followers, from one thread.
pub(super) struct LogBroadcaster(Arc<TailerShared>);

#[derive(Debug)]
struct TailerShared {
    path: PathBuf,
    busy_timeout: Duration,
    wake_up: Arc<TailerWakeUp>,
    state: Mutex<TailerState>,
}

#[derive(Debug, Default)]
struct TailerState {
    is_closed: bool,
    /// `None` while there are no followers.
    sender: Option<Sender<TailResult>>,
    thread: Option<JoinHandle<()>>,
}

impl LogBroadcaster {
    pub(super) fn new(path: PathBuf, patience: Duration, bell: Arc<TailerWakeUp>) -> Self {
        Self(Arc::new(TailerShared {
            path,
            busy_timeout: patience,
            wake_up: bell,
            state: Mutex::default(),
        }))
    }

    /// Subscribes to all entries written from now on.
    pub(super) fn subscribe(&self) -> Result<Receiver<TailResult>, StoreError> {
        let mut state = lock(&self.0.state);
        if state.is_closed {
            return Err(StoreError::store_closed());
        }
        if let Some(news) = &state.sender {
            return Ok(news.subscribe());
        }
        let (news, listener) = broadcast::channel(MAX_PAGES_BEHIND);
        let (watch, sender) = (self.clone(), news.clone());
        let thread = thread::Builder::new()
            .name("unstuck-watch".into())
            .spawn(move || watch.run(&sender))
            .map_err(StoreError::database)?;
        state.sender = Some(news);
        state.thread = Some(thread);
        Ok(listener)
    }

    /// Stops the tailer and disconnects all followers.
    pub(super) fn close(&self) {
        let thread = {
            let mut state = lock(&self.0.state);
            state.is_closed = true;
            state.sender = None;
            state.thread.take()
        };
        self.0.wake_up.notify();
        // A panic in the tailer disconnected the followers, which noticed it.
        let _ = thread.map(JoinHandle::join);
    }

    fn run(&self, news: &Sender<TailResult>) {
        let told = |error| sqlite_error::to_store_error(&self.0.path, error);
        let watched = connections::open_reader(&self.0.path, self.0.busy_timeout)
            .and_then(|connection| self.tail(&connection, news).map_err(told));
        if let Err(error) = watched {
            lock(&self.0.state).sender = None;
            // There may be no followers left.
            let _ = news.send(Err(error));
        }
    }

    /// Delivers new entries until there are no followers left.
    fn tail(&self, connection: &Connection, news: &Sender<TailResult>) -> rusqlite::Result<()> {
        let mut seen = data_version(connection)?;
        let mut last = run_and_event_queries::newest_offset(connection)?;
        // Followers that read the table before this point learn that there may be more.
        send_entries(news, last, Vec::new());
        while self.has_listeners(news) {
            self.0.wake_up.wait(POLL_INTERVAL);
            let now = data_version(connection)?;
            if now == seen {
                continue;
            }
            seen = now;
            loop {
                let page = run_and_event_queries::entries_after(connection, last, PAGE_SIZE)?;
                let Some(newest) = page.last().map(|event| event.offset) else {
                    break;
                };
                send_entries(news, last, page);
                last = newest;
            }
        }
        Ok(())
    }

    /// Returns whether there are followers; if not, the next one starts a new tailer.
    fn has_listeners(&self, news: &Sender<TailResult>) -> bool {
        let mut state = lock(&self.0.state);
        let is_heard = !state.is_closed && news.receiver_count() > 0;
        if !is_heard {
            state.sender = None;
        }
        is_heard
    }
}

fn send_entries(news: &Sender<TailResult>, after: EventLogOffset, events: Vec<EventLogEntry>) {
    let events = events.into();
    // There may be no followers left.
    let _ = news.send(Ok(NewLogEntries { after, events }));
}

/// Changes when another connection has written, including this process's own writer.
fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    let mut statement = connection.prepare_cached("PRAGMA data_version")?;
    statement.query_row([], |row| row.get(0))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
