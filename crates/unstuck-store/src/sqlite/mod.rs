//! A store in one SQLite file: a thread that writes, and a few that read when they are needed.

mod analytics;
mod calls;
mod connect;
mod daily;
mod failed;
mod failure;
mod fold;
mod follow;
mod hourly;
mod leases;
mod maintain;
mod migrate;
mod open;
mod outbox;
mod projects;
mod questions;
mod read;
mod readers;
mod recount;
mod room;
pub(crate) mod settings;
mod spending;
mod told;
mod tries;
mod upstreams;
mod watch;
mod writer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;
use tokio::sync::oneshot;
use unstuck_core::Timestamp;
use unstuck_core::episode::{FailureAnalytics, RunView, Status, Untold};
use unstuck_core::event::{Recorded, RunId, SessionId};

use self::readers::Readers;
use self::watch::{Bell, Watch};
use self::writer::{Job, Writer};
use crate::append::{Prepared, Redact};
use crate::calls::{Call, CallFilter, Ready};
use crate::error::StoreError;
use crate::failures::{FailureCursor, FailurePage, FailureQuery};
use crate::lease::{Claim, ClaimRequest, Lease, LeaseChange, LeaseToken};
use crate::maintenance::{Report, Task};
use crate::options::Options;
use crate::outbox::{Letter, OutboxChange, OutboxFilter};
use crate::projects::ProjectView;
use crate::query::{EventFilter, EventPage, Placed, RunFilter};
use crate::question::{Question, QuestionFilter};
use crate::recoveries::{RecoveryQuery, RecoveryReport};
use crate::settings::{PutSetting, Setting, SettingChange};
use crate::spending::{SpendingQuery, Spent};
use crate::stats::{StatsLine, StatsQuery};
use crate::upstreams::{ProbeSlot, UpstreamChange};

/// Where the answer to one request goes.
type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// A store in one SQLite file.
#[derive(Debug, Clone)]
pub struct Sqlite {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    redact: Option<Redact>,
    /// None where it cannot be written.
    writer: Option<Sender<Job>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    readers: Readers,
    watch: Watch,
}

impl Sqlite {
    pub(crate) async fn open(path: &Path, options: Options) -> Result<Self, StoreError> {
        let (writer, queue) = mpsc::channel();
        let (ready, opened) = oneshot::channel();
        let (given, patience) = (path.to_owned(), options.patience);
        let bell = Arc::new(Bell::default());
        let rung = Arc::clone(&bell);
        let open = move || match open::writer(&given, patience) {
            Err(error) => drop(ready.send(Err(error))),
            Ok((connection, path)) => {
                let writer = Writer::new(connection, path.clone(), patience, rung);
                // If nobody waits for the answer any more, the queue has ended too.
                let _ = ready.send(Ok(path));
                writer.run(&queue);
            }
        };
        let thread = thread::Builder::new()
            .name("unstuck-store".into())
            .spawn(open)
            .map_err(StoreError::database)?;
        let path = opened.await.map_err(|_| StoreError::closed())??;
        Ok(Self {
            shared: Arc::new(Shared {
                readers: Readers::new(path.clone(), patience),
                watch: Watch::new(path.clone(), patience, bell),
                path,
                redact: options.redact,
                writer: Some(writer),
                thread: Mutex::new(Some(thread)),
            }),
        })
    }

    /// Opens a store that cannot be written: what is to be written is refused.
    pub(crate) async fn open_read_only(path: &Path, options: Options) -> Result<Self, StoreError> {
        let (given, patience) = (path.to_owned(), options.patience);
        let (reply, opened) = oneshot::channel();
        let open = move || {
            // Nobody may be waiting any more.
            let _ = reply.send(open::read_only(&given, patience));
        };
        thread::Builder::new()
            .name("unstuck-store".into())
            .spawn(open)
            .map_err(StoreError::database)?;
        let name = opened.await.map_err(|_| StoreError::closed())??;
        Ok(Self {
            shared: Arc::new(Shared {
                readers: Readers::new(name.clone(), patience),
                watch: Watch::new(name, patience, Arc::default()),
                path: path.to_owned(),
                redact: options.redact,
                writer: None,
                thread: Mutex::new(None),
            }),
        })
    }

    /// Whether there is room for more beside the store, and it may be written there.
    pub(crate) fn probe_room(&self) -> Result<(), StoreError> {
        let path = &self.shared.path;
        if self.shared.writer.is_none() {
            return Err(StoreError::ReadOnly { path: path.clone() });
        }
        room::probe(path)
    }

    pub(crate) fn redact(&self) -> Option<&Redact> {
        self.shared.redact.as_ref()
    }

    pub(crate) async fn append(&self, append: Prepared) -> Result<Vec<Recorded>, StoreError> {
        self.write(|reply| Job::append(append, reply)).await
    }

    pub(crate) async fn claim(&self, request: ClaimRequest) -> Result<Claim, StoreError> {
        self.write(|reply| Job::lease(LeaseChange::Claim(request), reply))
            .await
    }

    pub(crate) async fn renew(&self, token: &LeaseToken, now: Timestamp) -> Result<(), StoreError> {
        let change = LeaseChange::Renew(token.clone(), now);
        self.write(|reply| Job::lease(change, reply)).await?;
        Ok(())
    }

    pub(crate) async fn release(&self, token: &LeaseToken) -> Result<(), StoreError> {
        let change = LeaseChange::Release(token.clone());
        self.write(|reply| Job::lease(change, reply)).await?;
        Ok(())
    }

    pub(crate) async fn load(&self, run: &RunId) -> Result<Vec<Recorded>, StoreError> {
        let run = run.clone();
        self.read(move |connection| read::load(connection, &run))
            .await
    }

    pub(crate) async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunView>, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| {
            let mut runs = read::runs(connection, &filter)?;
            for run in &mut runs {
                spending::complete(connection, run)?;
            }
            Ok(runs)
        })
        .await
    }

    pub(crate) async fn events(&self, filter: &EventFilter) -> Result<EventPage, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| read::events(connection, &filter))
            .await
    }

    pub(crate) async fn placed(&self, filter: &EventFilter) -> Result<Vec<Placed>, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| read::placed(connection, &filter))
            .await
    }

    pub(crate) async fn projects(&self) -> Result<Vec<ProjectView>, StoreError> {
        self.read(projects::list).await
    }

    pub(crate) async fn questions(
        &self,
        filter: &QuestionFilter,
    ) -> Result<Vec<Question>, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| questions::list(connection, &filter))
            .await
    }

    pub(crate) async fn waiting_questions(&self) -> Result<usize, StoreError> {
        self.read(questions::waiting).await
    }

    pub(crate) async fn waits(&self, run: &RunId, question: &str) -> Result<bool, StoreError> {
        let (run, question) = (run.clone(), question.to_owned());
        self.read(move |connection| questions::waits(connection, &run, &question))
            .await
    }

    pub(crate) async fn leases(&self) -> Result<Vec<Lease>, StoreError> {
        self.read(leases::all).await
    }

    pub(crate) async fn outbox(&self, filter: &OutboxFilter) -> Result<Vec<Letter>, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| outbox::list(connection, &filter))
            .await
    }

    pub(crate) async fn change_outbox(
        &self,
        change: OutboxChange,
    ) -> Result<Vec<Letter>, StoreError> {
        self.write(|reply| Job::outbox(change, reply)).await
    }

    pub(crate) async fn record_calls(&self, calls: Ready) -> Result<(), StoreError> {
        self.write(|reply| Job::calls(calls, reply)).await
    }

    pub(crate) async fn calls(&self, filter: &CallFilter) -> Result<Vec<Call>, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| calls::list(connection, &filter))
            .await
    }

    pub(crate) async fn spending(&self, query: &SpendingQuery) -> Result<Vec<Spent>, StoreError> {
        let query = query.clone();
        self.read(move |connection| spending::list(connection, &query))
            .await
    }

    pub(crate) async fn spent_by(&self, run: &RunId) -> Result<Option<Spent>, StoreError> {
        let run = run.clone();
        self.read(move |connection| spending::of_run(connection, &run))
            .await
    }

    pub(crate) async fn spent_by_sessions(&self, run: &RunId) -> Result<Vec<Spent>, StoreError> {
        let run = run.clone();
        self.read(move |connection| spending::of_sessions(connection, &run))
            .await
    }

    pub(crate) async fn model_of(
        &self,
        run: &RunId,
        session: &SessionId,
    ) -> Result<Option<String>, StoreError> {
        let (run, session) = (run.clone(), session.clone());
        self.read(move |connection| spending::model(connection, &run, Some(&session)))
            .await
    }

    pub(crate) async fn count_runs(&self) -> Result<BTreeMap<Status, u64>, StoreError> {
        self.read(projects::count_runs).await
    }

    pub(crate) async fn unfinished(&self) -> Result<Vec<(RunId, Status)>, StoreError> {
        self.read(projects::unfinished).await
    }

    pub(crate) async fn spent_in(&self, run: &RunId, time: &Untold) -> Result<Spent, StoreError> {
        let (run, time) = (run.clone(), time.clone());
        self.read(move |connection| spending::in_time(connection, &run, &time))
            .await
    }

    pub(crate) async fn stats(&self, query: &StatsQuery) -> Result<Vec<StatsLine>, StoreError> {
        let query = query.clone();
        self.read(move |connection| hourly::stats(connection, &query))
            .await
    }

    pub(crate) async fn recoveries(
        &self,
        query: &RecoveryQuery,
    ) -> Result<RecoveryReport, StoreError> {
        let query = query.clone();
        self.read(move |connection| hourly::recoveries(connection, &query))
            .await
    }

    pub(crate) async fn failures(
        &self,
        query: &FailureQuery,
    ) -> Result<FailureAnalytics, StoreError> {
        let query = query.clone();
        self.read(move |connection| analytics::failures(connection, &query))
            .await
    }

    pub(crate) async fn failure_page(
        &self,
        query: &FailureQuery,
        after: Option<FailureCursor>,
        most: usize,
    ) -> Result<FailurePage, StoreError> {
        let query = query.clone();
        self.read(move |connection| failed::page(connection, &query, after, most))
            .await
    }

    pub(crate) async fn setting(&self, key: &str) -> Result<Option<Setting>, StoreError> {
        let key = key.to_owned();
        self.read(move |connection| settings::find(connection, &key))
            .await
    }

    pub(crate) async fn settings(&self, prefix: &str) -> Result<Vec<Setting>, StoreError> {
        let prefix = prefix.to_owned();
        self.read(move |connection| settings::list(connection, &prefix))
            .await
    }

    pub(crate) async fn setting_changes(
        &self,
        key: &str,
        most: usize,
    ) -> Result<Vec<SettingChange>, StoreError> {
        let key = key.to_owned();
        self.read(move |connection| settings::changes(connection, &key, most))
            .await
    }

    pub(crate) async fn put_setting(&self, put: PutSetting) -> Result<Setting, StoreError> {
        self.write(|reply| Job::setting(put, reply)).await
    }

    pub(crate) async fn change_upstream(
        &self,
        change: UpstreamChange,
    ) -> Result<ProbeSlot, StoreError> {
        self.write(|reply| Job::upstream(change, reply)).await
    }

    pub(crate) async fn recovered_at(&self, url: &str) -> Result<Option<Timestamp>, StoreError> {
        let url = url.to_owned();
        self.read(move |connection| upstreams::recovered(connection, &url))
            .await
    }

    pub(crate) async fn maintain(&self, task: Task) -> Result<Report, StoreError> {
        match task {
            Task::Check => self.read(maintain::check).await,
            Task::Vacuum => self.write_alone(maintain::vacuum).await,
            Task::Prune(before) => {
                self.write_alone(move |connection| maintain::prune(connection, before))
                    .await
            }
        }
    }

    pub(crate) async fn close(self) -> Result<(), StoreError> {
        self.shared.watch.close();
        self.shared.readers.close();
        if self.shared.writer.is_none() {
            return Ok(());
        }
        self.write(Job::Close).await?;
        let mut thread = self
            .shared
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match thread.take().map(JoinHandle::join) {
            Some(Err(_)) => Err(StoreError::closed()),
            _ => Ok(()),
        }
    }

    async fn write<T>(&self, job: impl FnOnce(Reply<T>) -> Job) -> Result<T, StoreError> {
        let Some(writer) = &self.shared.writer else {
            let path = self.shared.path.clone();
            return Err(StoreError::ReadOnly { path });
        };
        let (reply, answer) = oneshot::channel();
        let sent = writer.send(job(reply));
        sent.map_err(|_| StoreError::closed())?;
        answer.await.map_err(|_| StoreError::closed())?
    }

    async fn write_alone<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (path, patience) = (self.shared.path.clone(), self.shared.readers.patience());
        self.write(|reply: Reply<T>| {
            Job::Alone(Box::new(move |connection| {
                let done = connect::waiting(connection, patience, work)
                    .map_err(|error| failure::told(&path, error));
                // Nobody may be waiting any more.
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
        self.shared.readers.read(work, reply)?;
        answer.await.map_err(|_| StoreError::closed())?
    }
}
