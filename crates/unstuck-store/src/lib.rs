//! The log of all that unstuck saw and did: append-only events, and what can be asked about them.
//!
//! One file holds the runs of all projects. Several processes use it at once. An event that was acknowledged is on
//! disk: it survives `kill -9` and power loss. Everything else that is kept (a run at a glance, the hourly counts) is a
//! fold of the events, written in the same transaction.
//!
//! ```
//! use unstuck_core::event::{Event, Outcome, RunFinished, RunId, RunStarted, SessionSpec, Work};
//! use unstuck_core::{RetryPolicy, Timestamp};
//! use unstuck_store::{Append, Location, Options, RunFilter, Store, StoreError};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), StoreError> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("unstuck.db");
//! let store = Store::open(&Location::file(path), Options::default()).await?;
//! let run = RunId::new("k3v9x0m2qa");
//! let started = RunStarted {
//!     head: None,
//!     project: "/home/me/shop".into(),
//!     work: Work::Command(Box::new(SessionSpec {
//!         cwd: "/home/me/shop".into(),
//!         command: vec!["claude".into(), "-p".into(), "fix the tests".into()],
//!         agent: Some("claude".into()),
//!         model: None,
//!         session: run.session(1),
//!         policy: RetryPolicy::default(),
//!         origins: Default::default(),
//!         timeout_ms: None,
//!         idle_timeout_ms: None,
//!         options: serde_json::Value::Null,
//!         unrepeatable: None,
//!         knowledge: "0.1.0".into(),
//!     })),
//! };
//! let now = Timestamp::from_seconds(1_794_777_000);
//! let recorded = store.append(Append::new(run.clone(), now, [Event::from(Box::new(started))])).await?;
//! assert_eq!(recorded[0].seq, 1);
//!
//! let runs = store.runs(&RunFilter { prefix: Some("k3v".into()), ..RunFilter::default() }).await?;
//! assert_eq!(runs[0].id, run);
//! store.close().await?;
//! # Ok(())
//! # }
//! ```

mod append;
mod calls;
mod error;
mod export;
mod failures;
mod lease;
mod location;
mod maintenance;
mod odds;
mod options;
mod outbox;
mod projects;
mod query;
mod question;
mod recoveries;
pub mod rollup;
mod settings;
mod spending;
mod sqlite;
mod stats;
mod store;
mod story;
mod tried;
mod upstreams;

pub use append::{Append, Redact};
pub use calls::{Call, CallFilter};
pub use error::StoreError;
pub use export::ExportError;
pub use failures::{FailureCursor, FailureLine, FailurePage, FailureQuery};

pub use lease::{Claim, ClaimRequest, LEASE_LASTS, Lease, LeaseToken, Owner};
pub use location::Location;
pub use maintenance::{Finding, Report, Task};
pub use options::Options;
pub use outbox::{Letter, LetterState, OUTBOX_HELD, OutboxFilter, Outgoing, Sent};
pub use projects::ProjectView;
pub use query::{
    EventFilter, EventPage, NotACursor, Order, Placed, Position, RunCursor, RunFilter, RunPage,
};
pub use question::{Answered, Answers, Question, QuestionFilter, Standing};
pub use recoveries::{AnswerCount, RecoveryDay, RecoveryQuery, RecoveryReport};
pub use settings::{Expected, PutSetting, Setting, SettingChange};
pub use spending::{SpendingQuery, Spent, SpentBy};
pub use stats::{Counted, Dimension, StatsLine, StatsQuery};
pub use store::{Store, settings_at};
pub use upstreams::ProbeSlot;
