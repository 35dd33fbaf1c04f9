//! The one thread that writes: it takes whatever is queued into one transaction, so that one flush of the disk
//! acknowledges many.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use unstuck_core::event::Recorded;

use super::fold::Folds;
use super::watch::Bell;
use super::{Reply, connect, failure, leases, outbox, settings, upstreams};
use crate::append::Prepared;
use crate::calls::Ready;
use crate::error::StoreError;
use crate::lease::{Claim, LeaseChange};
use crate::outbox::{Letter, OutboxChange};
use crate::settings::{PutSetting, Setting};
use crate::upstreams::{ProbeSlot, UpstreamChange};

/// So many requests are written at once at most.
const BATCH: usize = 1000;

/// A log of so many bytes is read in no time by whoever opens the file next.
const SHORT_LOG: u64 = 1 << 20;

/// Something that the writer is asked to do.
pub(super) enum Job {
    Append(Asked<Prepared, Vec<Recorded>>),
    Lease(Asked<LeaseChange, Claim>),
    Outbox(Asked<OutboxChange, Vec<Letter>>),
    Calls(Asked<Ready, ()>),
    Setting(Asked<PutSetting, Setting>),
    Upstream(Asked<UpstreamChange, ProbeSlot>),
    /// Something that is a transaction of its own, or none.
    Alone(Box<dyn FnOnce(&mut Connection) + Send>),
    Close(Reply<()>),
}

/// A request, what came of it, and who waits for that.
pub(super) struct Asked<Q, A> {
    request: Q,
    result: Result<A, StoreError>,
    reply: Reply<A>,
}

impl<Q, A> Asked<Q, A> {
    fn new(request: Q, reply: Reply<A>) -> Self {
        Self {
            request,
            result: Err(StoreError::closed()),
            reply,
        }
    }

    /// Answers, now that it is known whether the transaction is on disk.
    fn answer(self, committed: &Result<(), StoreError>) {
        let result = match committed {
            Ok(()) => self.result,
            Err(error) => Err(error.clone()),
        };
        // Nobody may be waiting any more.
        let _ = self.reply.send(result);
    }
}

impl Job {
    pub(super) fn append(append: Prepared, reply: Reply<Vec<Recorded>>) -> Self {
        Self::Append(Asked::new(append, reply))
    }

    pub(super) fn lease(change: LeaseChange, reply: Reply<Claim>) -> Self {
        Self::Lease(Asked::new(change, reply))
    }

    pub(super) fn outbox(change: OutboxChange, reply: Reply<Vec<Letter>>) -> Self {
        Self::Outbox(Asked::new(change, reply))
    }

    pub(super) fn calls(calls: Ready, reply: Reply<()>) -> Self {
        Self::Calls(Asked::new(calls, reply))
    }

    pub(super) fn setting(put: PutSetting, reply: Reply<Setting>) -> Self {
        Self::Setting(Asked::new(put, reply))
    }

    pub(super) fn upstream(change: UpstreamChange, reply: Reply<ProbeSlot>) -> Self {
        Self::Upstream(Asked::new(change, reply))
    }

    /// Whether it can share a transaction with others.
    fn shares(&self) -> bool {
        !matches!(self, Self::Alone(_) | Self::Close(_))
    }
}

pub(super) struct Writer {
    connection: Connection,
    path: PathBuf,
    patience: Duration,
    folds: Folds,
    /// Changes when another connection has written.
    data_version: i64,
    /// Rings for those who follow the log.
    bell: Arc<Bell>,
}

impl Writer {
    pub(super) fn new(
        connection: Connection,
        path: PathBuf,
        patience: Duration,
        bell: Arc<Bell>,
    ) -> Self {
        Self {
            connection,
            path,
            patience,
            folds: Folds::default(),
            data_version: 0,
            bell,
        }
    }

    /// Writes until it is told to close, or until nobody is left to ask for anything.
    pub(super) fn run(mut self, queue: &Receiver<Job>) {
        let mut closing = Vec::new();
        while closing.is_empty() {
            let Ok(first) = queue.recv() else {
                return;
            };
            let mut batch = Vec::new();
            for job in std::iter::once(first).chain(queue.try_iter().take(BATCH)) {
                match job {
                    Job::Close(reply) => closing.push(reply),
                    job if job.shares() => batch.push(job),
                    job => {
                        self.commit(std::mem::take(&mut batch));
                        self.alone(job);
                    }
                }
            }
            self.commit(batch);
        }
        self.leave();
        for reply in closing {
            // Nobody may be waiting any more.
            let _ = reply.send(Ok(()));
        }
    }

    /// Closes the file. A short log beside it is left there: moving it into the file takes several flushes of the disk,
    /// too many for a process that wrote two events.
    fn leave(self) {
        let mut log = self.path.into_os_string();
        log.push("-wal");
        if std::fs::metadata(log).is_ok_and(|log| log.len() <= SHORT_LOG) {
            // If it is moved all the same, that only takes longer.
            let _ = self
                .connection
                .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }

    fn alone(&mut self, job: Job) {
        if let Job::Alone(work) = job {
            work(&mut self.connection);
            self.folds.forget();
        }
    }

    fn commit(&mut self, mut batch: Vec<Job>) {
        if batch.is_empty() {
            return;
        }
        let committed = self.transact(&mut batch).map_err(|error| {
            self.abandon();
            failure::told(&self.path, error)
        });
        if committed.is_ok() && batch.iter().any(|job| matches!(job, Job::Append(_))) {
            self.bell.ring();
        }
        for job in batch {
            match job {
                Job::Append(asked) => asked.answer(&committed),
                Job::Lease(asked) => asked.answer(&committed),
                Job::Outbox(asked) => asked.answer(&committed),
                Job::Calls(asked) => asked.answer(&committed),
                Job::Setting(asked) => asked.answer(&committed),
                Job::Upstream(asked) => asked.answer(&committed),
                Job::Alone(_) | Job::Close(_) => {}
            }
        }
    }

    fn transact(&mut self, batch: &mut [Job]) -> rusqlite::Result<()> {
        connect::patiently(self.patience, || {
            self.connection
                .prepare_cached("BEGIN IMMEDIATE")?
                .execute([])
        })?;
        self.notice_others()?;
        for job in batch {
            match job {
                Job::Append(asked) => {
                    asked.result = self.folds.append(&self.connection, &mut asked.request)?;
                }
                Job::Lease(asked) => {
                    asked.result = leases::change(&self.connection, &asked.request)?;
                }
                Job::Outbox(asked) => {
                    asked.result = outbox::change(&self.connection, &asked.request).map(Ok)?;
                }
                Job::Calls(asked) => {
                    asked.result = self.folds.calls(&self.connection, &asked.request).map(Ok)?;
                }
                Job::Setting(asked) => {
                    asked.result = settings::put(&self.connection, &asked.request)?;
                }
                Job::Upstream(asked) => {
                    asked.result = upstreams::change(&self.connection, &asked.request).map(Ok)?;
                }
                Job::Alone(_) | Job::Close(_) => {}
            }
        }
        self.folds.flush(&self.connection)?;
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    /// What is in memory holds only as long as nobody else has written.
    fn notice_others(&mut self) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare_cached("PRAGMA data_version")?;
        let version = statement.query_row([], |row| row.get(0))?;
        if version != self.data_version {
            self.data_version = version;
            self.folds.forget();
        }
        Ok(())
    }

    fn abandon(&mut self) {
        self.folds.forget();
        if !self.connection.is_autocommit() {
            // If not even this works, the next transaction fails, and says why.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}
