//! The store, whatever keeps it.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::Stream;
use unstuck_core::Timestamp;
use unstuck_core::episode::{FailureAnalytics, RunView, Status, Untold};
use unstuck_core::event::CallRecord;
use unstuck_core::event::{Recorded, RunId, SessionId};

use crate::append::{Append, Prepared};
use crate::calls::{Call, CallFilter, Ready};
use crate::error::StoreError;
use crate::failures::{FailureCursor, FailurePage, FailureQuery};
use crate::lease::{Claim, ClaimRequest, Lease, LeaseToken};
use crate::location::Location;
use crate::maintenance::{Report, Task};
use crate::options::Options;
use crate::outbox::{Letter, OutboxChange, OutboxFilter, Sent};
use crate::projects::ProjectView;
use crate::query::{EventFilter, EventPage, Placed, Position, RunCursor, RunFilter, RunPage};
use crate::question::{Question, QuestionFilter};
use crate::recoveries::{RecoveryQuery, RecoveryReport};
use crate::settings::{PutSetting, Setting, SettingChange};
use crate::spending::{SpendingQuery, Spent};
use crate::sqlite::{self, Sqlite};
use crate::stats::{StatsLine, StatsQuery};
use crate::upstreams::{ProbeSlot, UpstreamChange};

/// The log of all runs, and what can be asked about it; clones share one connection.
#[derive(Debug, Clone)]
pub enum Store {
    /// A file on this machine.
    Sqlite(Sqlite),
}

/// What people have set in a store that nobody has to open for it; nothing where there is no store yet.
pub fn settings_at(store: &Location, prefix: &str) -> Result<Vec<Setting>, StoreError> {
    sqlite::settings::peek(store.path(), prefix)
}

impl Store {
    /// Opens the store, makes it if there is none, and brings an older one up to date.
    pub async fn open(location: &Location, options: Options) -> Result<Self, StoreError> {
        Sqlite::open(location.path(), options)
            .await
            .map(Self::Sqlite)
    }

    /// Opens the store if there is one; none is an empty history.
    pub async fn open_existing(
        location: &Location,
        options: Options,
    ) -> Result<Option<Self>, StoreError> {
        if let Ok(false) = location.path().try_exists() {
            return Ok(None);
        }
        let error = match Self::open(location, options.clone()).await {
            Ok(store) => return Ok(Some(store)),
            Err(error) => error,
        };
        if !matches!(
            error,
            StoreError::ReadOnly { .. } | StoreError::Unreachable { .. }
        ) {
            return Err(error);
        }
        // What cannot be written can be read all the same.
        let read_only = Sqlite::open_read_only(location.path(), options).await;
        read_only
            .map(|store| Some(Self::Sqlite(store)))
            .map_err(|_| error)
    }

    /// Returns why nothing more could be written at present: a full or read-only disk. It waits for the disk.
    pub fn probe_room(&self) -> Result<(), StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.probe_room()
    }

    /// Writes events, and returns when they are on disk: all of them, or none.
    ///
    /// The events of one call stay together and in order. They get their numbers here. The first event of a run must
    /// say that it started. The end of a run gives its lease free. A call that is dropped while it waits may or may not be written.
    pub async fn append(&self, append: Append) -> Result<Vec<Recorded>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        let prepared = Prepared::new(append, sqlite.redact())?;
        sqlite.append(prepared).await
    }

    /// All events of a run, in order; none if there is no such run.
    pub async fn load(&self, run: &RunId) -> Result<Vec<Recorded>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.load(run).await
    }

    /// The runs that are asked for, the newest first; what an agent did not tell of its cost, its calls do.
    pub async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunView>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.runs(filter).await
    }

    /// A page of the runs that are asked for, the newest first, 50 of them unless told.
    pub async fn run_page(&self, filter: &RunFilter) -> Result<RunPage, StoreError> {
        let most = filter.limit.unwrap_or(50);
        let one_more = RunFilter {
            limit: Some(most.saturating_add(1)),
            ..filter.clone()
        };
        let mut runs = self.runs(&one_more).await?;
        let is_more = runs.len() > most;
        runs.truncate(most);
        let last = runs.last().map(RunCursor::of);
        Ok(RunPage {
            next: last.filter(|_| is_more),
            runs,
        })
    }

    /// The events that are asked for, each with its place; the place of the last one leads to the next page.
    pub async fn placed(&self, filter: &EventFilter) -> Result<Vec<Placed>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.placed(filter).await
    }

    /// All projects, those in which something happened last first.
    pub async fn projects(&self) -> Result<Vec<ProjectView>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.projects().await
    }

    /// The events that are asked for.
    pub async fn events(&self, filter: &EventFilter) -> Result<EventPage, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.events(filter).await
    }

    /// Every event of every process that writes to this store, in order, none twice and none left out.
    ///
    /// Begins after that place, or with what is written from now on. What this process writes is told at once,
    /// what others write within a fifth of a second. Any number can follow: one thread watches for all. It ends when
    /// the store is closed, and after an error.
    pub async fn follow(
        &self,
        after: Option<Position>,
    ) -> Result<impl Stream<Item = Result<Vec<Placed>, StoreError>> + Send + use<>, StoreError>
    {
        let Self::Sqlite(sqlite) = self;
        sqlite.follow(after).await
    }

    /// The questions to people that are asked for, in the order that [`Standing`](crate::Standing) says.
    pub async fn questions(&self, filter: &QuestionFilter) -> Result<Vec<Question>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.questions(filter).await
    }

    /// How many questions wait for an answer.
    pub async fn waiting_questions(&self) -> Result<usize, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.waiting_questions().await
    }

    /// Whether a question still waits for an answer.
    pub async fn waits(&self, run: &RunId, question: &str) -> Result<bool, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.waits(run, question).await
    }

    /// Asks to drive a run. It is granted if nobody does, if their lease has expired, or if it is the very lease
    /// that the caller found to be a dead process's.
    pub async fn claim(&self, request: ClaimRequest) -> Result<Claim, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.claim(request).await
    }

    /// Says that a run is still driven, or that it has been lost to another process.
    pub async fn renew(&self, token: &LeaseToken, now: Timestamp) -> Result<(), StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.renew(token, now).await
    }

    /// Gives a run free; nothing happens if it has been lost already.
    pub async fn release(&self, token: &LeaseToken) -> Result<(), StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.release(token).await
    }

    /// Who drives which run; those that have expired are told too.
    pub async fn leases(&self) -> Result<Vec<Lease>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.leases().await
    }

    /// Takes messages that are due out of the outbox, of so many groups at most; nobody else gets them for
    /// [a while](crate::OUTBOX_HELD). Those of one group to one target stand together, the oldest first.
    pub async fn outbox_due(
        &self,
        now: Timestamp,
        groups: usize,
    ) -> Result<Vec<Letter>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        let take = OutboxChange::Take {
            now,
            due_by: now,
            groups,
        };
        sqlite.change_outbox(take).await
    }

    /// Takes all messages that wait, also those whose time has not come; else like [`Store::outbox_due`].
    pub async fn outbox_waiting(&self, now: Timestamp) -> Result<Vec<Letter>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        let take = OutboxChange::Take {
            now,
            due_by: Timestamp::from_millis(i64::MAX),
            groups: usize::MAX,
        };
        sqlite.change_outbox(take).await
    }

    /// Notes what came of the try to send these messages.
    pub async fn outbox_sent(
        &self,
        ids: Vec<String>,
        sent: Sent,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Self::Sqlite(sqlite) = self;
        let settle = OutboxChange::Settle { ids, sent, now };
        sqlite.change_outbox(settle).await.map(drop)
    }

    /// The messages that are asked for, the newest first.
    pub async fn outbox(&self, filter: &OutboxFilter) -> Result<Vec<Letter>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.outbox(filter).await
    }

    /// Writes calls of LLM APIs, and returns when they are on disk: all of them, or none.
    pub async fn record_calls(&self, calls: Vec<CallRecord>) -> Result<(), StoreError> {
        let Self::Sqlite(sqlite) = self;
        let ready = Ready::new(calls, sqlite.redact());
        sqlite.record_calls(ready).await
    }

    /// The calls that are asked for, the newest first.
    pub async fn calls(&self, filter: &CallFilter) -> Result<Vec<Call>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.calls(filter).await
    }

    /// What was spent on calls, from the hourly sums alone.
    pub async fn spending(&self, query: &SpendingQuery) -> Result<Vec<Spent>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.spending(query).await
    }

    /// What all calls of a run used; none if it has made none.
    pub async fn spent_by(&self, run: &RunId) -> Result<Option<Spent>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.spent_by(run).await
    }

    /// What the calls used that a session of a run made in that time.
    pub(crate) async fn spent_by_sessions(&self, run: &RunId) -> Result<Vec<Spent>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.spent_by_sessions(run).await
    }

    /// The model that the newest calls of a session were answered by; none if it has made none.
    pub(crate) async fn model_of(
        &self,
        run: &RunId,
        session: &SessionId,
    ) -> Result<Option<String>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.model_of(run, session).await
    }

    /// How many runs of all projects stand where.
    pub async fn count_runs(&self) -> Result<BTreeMap<Status, u64>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.count_runs().await
    }

    /// Every run that has not come to an end, and where it stands.
    pub async fn unfinished(&self) -> Result<Vec<(RunId, Status)>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.unfinished().await
    }

    /// What the calls of a session used within a time.
    pub async fn spent_in(&self, run: &RunId, time: &Untold) -> Result<Spent, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.spent_in(run, time).await
    }

    /// Counts and sums over many runs, from the hourly counts alone.
    pub async fn stats(&self, query: &StatsQuery) -> Result<Vec<StatsLine>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.stats(query).await
    }

    /// How recovery went: which levels and strategies helped, how long it took, how many runs were saved.
    pub async fn recoveries(&self, query: &RecoveryQuery) -> Result<RecoveryReport, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.recoveries(query).await
    }

    /// What failures say together, from the hourly counts of tries alone.
    pub async fn failures(&self, query: &FailureQuery) -> Result<FailureAnalytics, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.failures(query).await
    }

    /// Failures one by one, the newest first, so many at most; a page goes on where the one before ended.
    pub async fn failure_page(
        &self,
        query: &FailureQuery,
        after: Option<FailureCursor>,
        most: usize,
    ) -> Result<FailurePage, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.failure_page(query, after, most).await
    }

    /// What somebody has set under this key, if anything.
    pub async fn setting(&self, key: &str) -> Result<Option<Setting>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.setting(key).await
    }

    /// All that was set under keys that begin like this, in the order of the keys.
    pub async fn settings(&self, prefix: &str) -> Result<Vec<Setting>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.settings(prefix).await
    }

    /// Sets a value or takes it away, if what is there is what the caller expects.
    ///
    /// Else the error is [`StoreError::SettingChanged`], which tells what is there. A value that is there already keeps
    /// its version.
    pub async fn put_setting(&self, mut put: PutSetting) -> Result<Setting, StoreError> {
        let Self::Sqlite(sqlite) = self;
        // Secrets do not reach the disk.
        if let (Some(redact), Some(value)) = (sqlite.redact(), &mut put.value) {
            redact.apply(value);
        }
        sqlite.put_setting(put).await
    }

    /// How a setting was changed, the newest change first, so many at most.
    pub async fn setting_changes(
        &self,
        key: &str,
        most: usize,
    ) -> Result<Vec<SettingChange>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.setting_changes(key, most).await
    }

    /// Asks for the right to find out, once, whether an upstream is back; it is given to one of all processes within that time.
    pub async fn take_probe(
        &self,
        url: &str,
        now: Timestamp,
        every: Duration,
    ) -> Result<ProbeSlot, StoreError> {
        let Self::Sqlite(sqlite) = self;
        let url = url.to_owned();
        let take = UpstreamChange::TakeProbe { url, now, every };
        sqlite.change_upstream(take).await
    }

    /// Tells all processes that an upstream is back.
    pub async fn note_recovery(&self, url: &str, at: Timestamp) -> Result<(), StoreError> {
        let Self::Sqlite(sqlite) = self;
        let url = url.to_owned();
        let change = UpstreamChange::Recovered { url, at };
        sqlite.change_upstream(change).await.map(|_| ())
    }

    /// When an upstream was last seen to be back, by whichever process.
    pub async fn recovered_at(&self, url: &str) -> Result<Option<Timestamp>, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.recovered_at(url).await
    }

    /// Does something to the store as a whole.
    pub async fn maintain(&self, task: Task) -> Result<Report, StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.maintain(task).await
    }

    /// Ends the writing thread and waits for it; what was asked for before is still done.
    pub async fn close(self) -> Result<(), StoreError> {
        let Self::Sqlite(sqlite) = self;
        sqlite.close().await
    }
}
