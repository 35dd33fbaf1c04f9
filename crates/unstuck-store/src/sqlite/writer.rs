//! The writer thread: it batches queued requests into one transaction, so that one disk flush acknowledges many.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use unstuck_core::event::EventRecord;

use super::log_tailer::TailerWakeUp;
use super::projections::Projections;
use super::{Reply, connections, leases, outbox, sqlite_error, stored_settings, upstream_health};
use crate::api_calls::PreparedCalls;
use crate::append_request::PreparedEventBatch;
use crate::error::StoreError;
use crate::lease::{LeaseChange, LeaseClaimOutcome};
use crate::outbox::{OutboxChange, OutboxMessage};
use crate::stored_settings::{SettingUpdate, StoredSetting};
use crate::upstream_health::{CallRelease, ProbeClaimOutcome, UpstreamHealthChange};

/// The maximum number of requests in one transaction.
const MAX_BATCH: usize = 1000;

/// The WAL size in bytes that the next process can read without noticeable delay.
const MAX_LEFTOVER_WAL: u64 = 1 << 20;

/// A job for the writer.
pub(super) enum WriteJob {
    Append(WriteRequest<PreparedEventBatch, Vec<EventRecord>>),
    Lease(WriteRequest<LeaseChange, LeaseClaimOutcome>),
    Outbox(WriteRequest<OutboxChange, Vec<OutboxMessage>>),
    Calls(WriteRequest<PreparedCalls, ()>),
    Setting(WriteRequest<SettingUpdate, StoredSetting>),
    Upstream(WriteRequest<UpstreamHealthChange, ProbeClaimOutcome>),
    Release(WriteRequest<CallRelease, u32>),
    /// A job that manages its own transactions.
    Exclusive(Box<dyn FnOnce(&mut Connection) + Send>),
    Close(Reply<()>),
}

/// A request, its result, and the channel for its response.
pub(super) struct WriteRequest<Q, A> {
    request: Q,
    result: Result<A, StoreError>,
    reply: Reply<A>,
}

impl<Q, A> WriteRequest<Q, A> {
    fn new(request: Q, reply: Reply<A>) -> Self {
        Self {
            request,
            result: Err(StoreError::store_closed()),
            reply,
        }
    }

    /// Sends the response, now that the outcome of the transaction is known.
    fn answer(self, committed: &Result<(), StoreError>) {
        let result = match committed {
            Ok(()) => self.result,
            Err(error) => Err(error.clone()),
        };
        // The receiver may be gone.
        let _ = self.reply.send(result);
    }
}

impl WriteJob {
    pub(super) fn append(append: PreparedEventBatch, reply: Reply<Vec<EventRecord>>) -> Self {
        Self::Append(WriteRequest::new(append, reply))
    }

    pub(super) fn lease(change: LeaseChange, reply: Reply<LeaseClaimOutcome>) -> Self {
        Self::Lease(WriteRequest::new(change, reply))
    }

    pub(super) fn outbox(change: OutboxChange, reply: Reply<Vec<OutboxMessage>>) -> Self {
        Self::Outbox(WriteRequest::new(change, reply))
    }

    pub(super) fn calls(calls: PreparedCalls, reply: Reply<()>) -> Self {
        Self::Calls(WriteRequest::new(calls, reply))
    }

    pub(super) fn setting(put: SettingUpdate, reply: Reply<StoredSetting>) -> Self {
        Self::Setting(WriteRequest::new(put, reply))
    }

    pub(super) fn release(release: CallRelease, reply: Reply<u32>) -> Self {
        Self::Release(WriteRequest::new(release, reply))
    }

    pub(super) fn upstream(change: UpstreamHealthChange, reply: Reply<ProbeClaimOutcome>) -> Self {
        Self::Upstream(WriteRequest::new(change, reply))
    }

    /// Returns whether it can share a transaction with others.
    fn is_batchable(&self) -> bool {
        !matches!(self, Self::Exclusive(_) | Self::Close(_))
    }
}

/// The writer thread's state: the connection, and projections that are not yet written.
pub(super) struct StoreWriter {
    connection: Connection,
    path: PathBuf,
    busy_timeout: Duration,
    projections: Projections,
    /// Changes when another connection has written.
    data_version: i64,
    /// Wakes the log followers.
    wake_up: Arc<TailerWakeUp>,
}

impl StoreWriter {
    pub(super) fn new(
        connection: Connection,
        path: PathBuf,
        busy_timeout: Duration,
        wake_up: Arc<TailerWakeUp>,
    ) -> Self {
        Self {
            connection,
            path,
            busy_timeout,
            projections: Projections::default(),
            data_version: 0,
            wake_up,
        }
    }

    /// Writes until told to close, or until all senders are gone.
    pub(super) fn run(mut self, queue: &Receiver<WriteJob>) {
        let mut closing = Vec::new();
        while closing.is_empty() {
            let Ok(first) = queue.recv() else {
                return;
            };
            let mut batch = Vec::new();
            for job in std::iter::once(first).chain(queue.try_iter().take(MAX_BATCH)) {
                match job {
                    WriteJob::Close(reply) => closing.push(reply),
                    job if job.is_batchable() => batch.push(job),
                    job => {
                        self.commit(std::mem::take(&mut batch));
                        self.run_exclusive(job);
                    }
                }
            }
            self.commit(batch);
        }
        self.close_file();
        for reply in closing {
            // The receiver may be gone.
            let _ = reply.send(Ok(()));
        }
    }

    /// Closes the file. A short WAL is left next to it: a checkpoint takes several disk flushes, too many for a process
    /// that wrote two events.
    fn close_file(self) {
        let mut log = self.path.into_os_string();
        log.push("-wal");
        if std::fs::metadata(log).is_ok_and(|log| log.len() <= MAX_LEFTOVER_WAL) {
            // If it is checkpointed anyway, that only takes longer.
            let _ = self
                .connection
                .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }

    fn run_exclusive(&mut self, job: WriteJob) {
        if let WriteJob::Exclusive(work) = job {
            work(&mut self.connection);
            self.projections.clear();
        }
    }

    fn commit(&mut self, mut batch: Vec<WriteJob>) {
        if batch.is_empty() {
            return;
        }
        let committed = self.transact(&mut batch).map_err(|error| {
            self.discard_cache();
            sqlite_error::to_store_error(&self.path, error)
        });
        if committed.is_ok() && batch.iter().any(|job| matches!(job, WriteJob::Append(_))) {
            self.wake_up.notify();
        }
        for job in batch {
            match job {
                WriteJob::Append(asked) => asked.answer(&committed),
                WriteJob::Lease(asked) => asked.answer(&committed),
                WriteJob::Outbox(asked) => asked.answer(&committed),
                WriteJob::Calls(asked) => asked.answer(&committed),
                WriteJob::Setting(asked) => asked.answer(&committed),
                WriteJob::Upstream(asked) => asked.answer(&committed),
                WriteJob::Release(asked) => asked.answer(&committed),
                WriteJob::Exclusive(_) | WriteJob::Close(_) => {}
            }
        }
    }

    fn transact(&mut self, batch: &mut [WriteJob]) -> rusqlite::Result<()> {
        connections::retry_while_busy(self.busy_timeout, || {
            self.connection
                .prepare_cached("BEGIN IMMEDIATE")?
                .execute([])
        })?;
        self.check_external_writes()?;
        for job in batch {
            match job {
                WriteJob::Append(asked) => {
                    asked.result = self
                        .projections
                        .append(&self.connection, &mut asked.request)?;
                }
                WriteJob::Lease(asked) => {
                    asked.result = leases::apply_change(&self.connection, &asked.request)?;
                }
                WriteJob::Outbox(asked) => {
                    asked.result =
                        outbox::apply_change(&self.connection, &asked.request).map(Ok)?;
                }
                WriteJob::Calls(asked) => {
                    asked.result = self
                        .projections
                        .record_calls(&self.connection, &asked.request)
                        .map(Ok)?;
                }
                WriteJob::Setting(asked) => {
                    asked.result = stored_settings::put(&self.connection, &asked.request)?;
                }
                WriteJob::Upstream(asked) => {
                    asked.result =
                        upstream_health::apply_change(&self.connection, &asked.request).map(Ok)?;
                }
                WriteJob::Release(asked) => {
                    asked.result =
                        upstream_health::count_release(&self.connection, &asked.request).map(Ok)?;
                }
                WriteJob::Exclusive(_) | WriteJob::Close(_) => {}
            }
        }
        self.projections.flush(&self.connection)?;
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    /// The cache is only valid as long as nobody else has written.
    fn check_external_writes(&mut self) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare_cached("PRAGMA data_version")?;
        let version = statement.query_row([], |row| row.get(0))?;
        if version != self.data_version {
            self.data_version = version;
            self.projections.clear();
        }
        Ok(())
    }

    fn discard_cache(&mut self) {
        self.projections.clear();
        if !self.connection.is_autocommit() {
            // If even this fails, the next transaction fails and reports the reason.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}
