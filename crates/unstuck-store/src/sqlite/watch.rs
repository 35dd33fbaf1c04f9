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

use super::{connect, failure, read};
use crate::error::StoreError;
use crate::query::{Placed, Position};

/// What other processes have written is noticed within this time.
const LOOK: Duration = Duration::from_millis(150);

/// So many events are read and told at once.
pub(super) const PAGE: usize = 256;

/// Whoever is further behind than so many pages reads on from the table.
const PAGES: usize = 32;

/// Rings when this process has written.
#[derive(Debug, Default)]
pub(super) struct Bell {
    rang: Mutex<bool>,
    waiting: Condvar,
}

impl Bell {
    pub(super) fn ring(&self) {
        *lock(&self.rang) = true;
        self.waiting.notify_one();
    }

    fn wait(&self, at_most: Duration) {
        let rang = lock(&self.rang);
        let waited = self
            .waiting
            .wait_timeout_while(rang, at_most, |rang| !*rang);
        let (mut rang, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *rang = false;
    }
}

/// What was written after a place.
#[derive(Debug, Clone)]
pub(super) struct News {
    pub(super) after: Position,
    pub(super) events: Arc<[Placed]>,
}

type Told = Result<News, StoreError>;

#[derive(Debug, Clone)]
pub(super) struct Watch(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    patience: Duration,
    bell: Arc<Bell>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    /// None while nobody follows.
    news: Option<Sender<Told>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(super) fn new(path: PathBuf, patience: Duration, bell: Arc<Bell>) -> Self {
        Self(Arc::new(Shared {
            path,
            patience,
            bell,
            state: Mutex::default(),
        }))
    }

    /// Hears all that is written from now on.
    pub(super) fn listen(&self) -> Result<Receiver<Told>, StoreError> {
        let mut state = lock(&self.0.state);
        if state.is_closed {
            return Err(StoreError::closed());
        }
        if let Some(news) = &state.news {
            return Ok(news.subscribe());
        }
        let (news, listener) = broadcast::channel(PAGES);
        let (watch, sender) = (self.clone(), news.clone());
        let thread = thread::Builder::new()
            .name("unstuck-watch".into())
            .spawn(move || watch.run(&sender))
            .map_err(StoreError::database)?;
        state.news = Some(news);
        state.thread = Some(thread);
        Ok(listener)
    }

    /// Ends the watch and all who listen.
    pub(super) fn close(&self) {
        let thread = {
            let mut state = lock(&self.0.state);
            state.is_closed = true;
            state.news = None;
            state.thread.take()
        };
        self.0.bell.ring();
        // A watch that panicked has told nobody, which they have noticed.
        let _ = thread.map(JoinHandle::join);
    }

    fn run(&self, news: &Sender<Told>) {
        let told = |error| failure::told(&self.0.path, error);
        let watched = connect::reader(&self.0.path, self.0.patience)
            .and_then(|connection| self.watch(&connection, news).map_err(told));
        if let Err(error) = watched {
            lock(&self.0.state).news = None;
            // Nobody may be listening any more.
            let _ = news.send(Err(error));
        }
    }

    /// Tells what is written until nobody listens any more.
    fn watch(&self, connection: &Connection, news: &Sender<Told>) -> rusqlite::Result<()> {
        let mut seen = version(connection)?;
        let mut last = read::newest(connection)?;
        // Whoever has looked at the table before this moment learns that there may be more.
        tell(news, last, Vec::new());
        while self.is_heard(news) {
            self.0.bell.wait(LOOK);
            let now = version(connection)?;
            if now == seen {
                continue;
            }
            seen = now;
            loop {
                let page = read::after(connection, last, PAGE)?;
                let Some(newest) = page.last().map(|event| event.place) else {
                    break;
                };
                tell(news, last, page);
                last = newest;
            }
        }
        Ok(())
    }

    /// Whether anybody still listens; if not, the next who does starts another watch.
    fn is_heard(&self, news: &Sender<Told>) -> bool {
        let mut state = lock(&self.0.state);
        let is_heard = !state.is_closed && news.receiver_count() > 0;
        if !is_heard {
            state.news = None;
        }
        is_heard
    }
}

fn tell(news: &Sender<Told>, after: Position, events: Vec<Placed>) {
    let events = events.into();
    // Nobody may be listening any more.
    let _ = news.send(Ok(News { after, events }));
}

/// Changes when another connection has written, that of this process's own writer too.
fn version(connection: &Connection) -> rusqlite::Result<i64> {
    let mut statement = connection.prepare_cached("PRAGMA data_version")?;
    statement.query_row([], |row| row.get(0))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
