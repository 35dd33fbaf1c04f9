//! The one thread that watches the log for all who follow it; it is there only while somebody does.
//!
//! Places in the log become visible in order. SQLite has one writer at a time, a place is given inside its transaction,
//! and others see a transaction whole or not at all. So whoever sees a place sees all that come before it: none of them can appear later,
//! however slow its writer was, and nobody has to look back.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::broadcast::{self, Receiver, Sender};

use super::{connect, log_queries, sqlite_error};
use crate::error::StoreError;
use crate::query::{LogEntry, LogOffset};

/// What other processes have written is noticed within this time.
const POLL_INTERVAL: Duration = Duration::from_millis(150);

/// So many events are read and told at once.
pub(super) const PAGE_SIZE: usize = 256;

/// Whoever is further behind than so many pages reads on from the table.
const MAX_PAGES_BEHIND: usize = 32;

/// Rings when this process has written.
#[derive(Debug, Default)]
pub(super) struct WakeUp {
    is_set: Mutex<bool>,
    waiting: Condvar,
}

impl WakeUp {
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

/// What was written after a place.
#[derive(Debug, Clone)]
pub(super) struct NewEntries {
    pub(super) after: LogOffset,
    pub(super) events: Arc<[LogEntry]>,
}

type TailResult = Result<NewEntries, StoreError>;

#[derive(Debug, Clone)]
pub(super) struct LogTailer(Arc<TailerShared>);

#[derive(Debug)]
struct TailerShared {
    path: PathBuf,
    busy_timeout: Duration,
    wake_up: Arc<WakeUp>,
    state: Mutex<TailerState>,
}

#[derive(Debug, Default)]
struct TailerState {
    is_closed: bool,
    /// None while nobody follows.
    sender: Option<Sender<TailResult>>,
    thread: Option<JoinHandle<()>>,
}

impl LogTailer {
    pub(super) fn new(path: PathBuf, patience: Duration, bell: Arc<WakeUp>) -> Self {
        Self(Arc::new(TailerShared {
            path,
            busy_timeout: patience,
            wake_up: bell,
            state: Mutex::default(),
        }))
    }

    /// Hears all that is written from now on.
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

    /// Ends the watch and all who listen.
    pub(super) fn close(&self) {
        let thread = {
            let mut state = lock(&self.0.state);
            state.is_closed = true;
            state.sender = None;
            state.thread.take()
        };
        self.0.wake_up.notify();
        // A watch that panicked has told nobody, which they have noticed.
        let _ = thread.map(JoinHandle::join);
    }

    fn run(&self, news: &Sender<TailResult>) {
        let told = |error| sqlite_error::to_store_error(&self.0.path, error);
        let watched = connect::open_reader(&self.0.path, self.0.busy_timeout)
            .and_then(|connection| self.tail(&connection, news).map_err(told));
        if let Err(error) = watched {
            lock(&self.0.state).sender = None;
            // Nobody may be listening any more.
            let _ = news.send(Err(error));
        }
    }

    /// Tells what is written until nobody listens any more.
    fn tail(&self, connection: &Connection, news: &Sender<TailResult>) -> rusqlite::Result<()> {
        let mut seen = data_version(connection)?;
        let mut last = log_queries::newest_offset(connection)?;
        // Whoever has looked at the table before this moment learns that there may be more.
        send_entries(news, last, Vec::new());
        while self.has_listeners(news) {
            self.0.wake_up.wait(POLL_INTERVAL);
            let now = data_version(connection)?;
            if now == seen {
                continue;
            }
            seen = now;
            loop {
                let page = log_queries::entries_after(connection, last, PAGE_SIZE)?;
                let Some(newest) = page.last().map(|event| event.offset) else {
                    break;
                };
                send_entries(news, last, page);
                last = newest;
            }
        }
        Ok(())
    }

    /// Whether anybody still listens; if not, the next who does starts another watch.
    fn has_listeners(&self, news: &Sender<TailResult>) -> bool {
        let mut state = lock(&self.0.state);
        let is_heard = !state.is_closed && news.receiver_count() > 0;
        if !is_heard {
            state.sender = None;
        }
        is_heard
    }
}

fn send_entries(news: &Sender<TailResult>, after: LogOffset, events: Vec<LogEntry>) {
    let events = events.into();
    // Nobody may be listening any more.
    let _ = news.send(Ok(NewEntries { after, events }));
}

/// Changes when another connection has written, that of this process's own writer too.
fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    let mut statement = connection.prepare_cached("PRAGMA data_version")?;
    statement.query_row([], |row| row.get(0))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
