//! The reader threads: started on demand, one more only while all others are busy.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;

use super::{Reply, connections, sqlite_error};
use crate::error::StoreError;

/// The maximum number of readers.
const MAX_READERS: usize = 4;

type ReadJob = Box<dyn FnOnce(&mut Option<Connection>) + Send>;

/// The pool of reader threads.
pub(super) struct ReaderPool {
    path: PathBuf,
    busy_timeout: Duration,
    jobs: Mutex<Option<Sender<ReadJob>>>,
    queue: Arc<ReadQueue>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct ReadQueue {
    jobs: Mutex<Receiver<ReadJob>>,
    idle: AtomicUsize,
}

impl ReaderPool {
    pub(super) fn new(path: PathBuf, busy_timeout: Duration) -> Self {
        let (jobs, receiver) = mpsc::channel();
        Self {
            path,
            busy_timeout,
            jobs: Mutex::new(Some(jobs)),
            queue: Arc::new(ReadQueue {
                jobs: Mutex::new(receiver),
                idle: AtomicUsize::new(0),
            }),
            threads: Mutex::default(),
        }
    }

    pub(super) fn busy_timeout(&self) -> Duration {
        self.busy_timeout
    }

    /// Runs a query on one of the threads, and returns its result.
    pub(super) fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
        reply: Reply<T>,
    ) -> Result<(), StoreError> {
        let (path, patience) = (self.path.clone(), self.busy_timeout);
        let job: ReadJob = Box::new(move |connection| {
            let connected = match connection {
                Some(connection) => Ok(connection),
                None => connections::open_reader(&path, patience).map(|new| connection.insert(new)),
            };
            let done = connected.and_then(|open| {
                work(open).map_err(|error| sqlite_error::to_store_error(&path, error))
            });
            // The receiver may be gone.
            let _ = reply.send(done);
        });
        self.start_another()?;
        let jobs = lock(&self.jobs);
        let sent = jobs.as_ref().map(|jobs| jobs.send(job));
        sent.and_then(Result::ok)
            .ok_or_else(StoreError::store_closed)
    }

    /// Stops all threads after their queued queries.
    pub(super) fn close(&self) {
        drop(lock(&self.jobs).take());
        for thread in lock(&self.threads).drain(..) {
            // A panic in a reader dropped its response channels, which the callers noticed.
            let _ = thread.join();
        }
    }

    fn start_another(&self) -> Result<(), StoreError> {
        let mut threads = lock(&self.threads);
        if self.queue.idle.load(Ordering::Relaxed) > 0 || threads.len() >= MAX_READERS {
            return Ok(());
        }
        let queue = Arc::clone(&self.queue);
        let thread = thread::Builder::new()
            .name("unstuck-reads".into())
            .spawn(move || queue.run())
            .map_err(StoreError::database)?;
        threads.push(thread);
        Ok(())
    }
}

impl ReadQueue {
    fn run(&self) {
        let mut connection = None;
        while let Some(job) = self.next_job() {
            job(&mut connection);
        }
    }

    fn next_job(&self) -> Option<ReadJob> {
        self.idle.fetch_add(1, Ordering::Relaxed);
        let job = lock(&self.jobs).recv().ok();
        self.idle.fetch_sub(1, Ordering::Relaxed);
        job
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for ReaderPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
