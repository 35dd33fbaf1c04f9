//! The event store: an append-only log of everything unstuck observes and does, with projections and queries.
//!
//! One file holds the runs of all projects and is used by several processes at once. An acknowledged event is on disk:
//! it survives `kill -9` and power loss. Everything else (run summaries, hourly counts) is a projection of the events,
//! written in the same transaction.
//!
//! ```
//! use unstuck_core::event::{Event, RunFinished, RunId, RunKind, RunStarted, SessionSpec};
//! use unstuck_core::{RetryPolicy, Timestamp};
//! use unstuck_store::{RunEventBatch, StoreLocation, StoreOptions, RunFilter, Store, StoreError};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), StoreError> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("unstuck.db");
//! let store = Store::open(&StoreLocation::file(path), StoreOptions::default()).await?;
//! let run = RunId::new("k3v9x0m2qa");
//! let started = RunStarted {
//!     head: None,
//!     project: "/home/me/shop".into(),
//!     kind: RunKind::Command(Box::new(SessionSpec {
//!         cwd: "/home/me/shop".into(),
//!         command: vec!["claude".into(), "-p".into(), "fix the tests".into()],
//!         agent: Some("claude".into()),
//!         model: None,
//!         session: run.session_id(1),
//!         policy: RetryPolicy::default(),
//!         origins: Default::default(),
//!         timeout_ms: None,
//!         idle_timeout_ms: None,
//!         options: serde_json::Value::Null,
//!         unrepeatable_reason: None,
//!         knowledge: "0.1.0".into(),
//!     })),
//! };
//! let now = Timestamp::from_seconds(1_794_777_000);
//! let recorded = store.append(RunEventBatch::new(run.clone(), now, [Event::from(Box::new(started))])).await?;
//! assert_eq!(recorded[0].seq, 1);
//!
//! let runs = store.runs(&RunFilter { prefix: Some("k3v".into()), ..RunFilter::default() }).await?;
//! assert_eq!(runs[0].id, run);
//! store.close().await?;
//! # Ok(())
//! # }
//! ```

mod api_calls;
mod append_request;
mod attempt_stats;
mod error;
mod escalation;
mod export;
mod failure_query;
mod lease;
mod location;
mod maintenance;
mod options;
mod outbox;
mod outcome_statistics;
mod projects;
mod query;
mod recovery_statistics;
pub mod rollup;
mod spending;
mod sqlite;
mod store;
mod stored_settings;
mod success_rates;
mod timeline;
mod upstream_health;

pub use api_calls::{CallFilter, StoredCall};
pub use append_request::{EventPayloadRedactor, RunEventBatch};
pub use error::StoreError;
pub use export::ExportError;
pub use failure_query::{FailureCursor, FailurePage, FailureQuery, FailureRow};

pub use escalation::{
    EscalationAnswerPrecondition, EscalationClosure, EscalationFilter, EscalationRow,
    EscalationStatusFilter,
};
pub use lease::{LEASE_TTL, Lease, LeaseClaim, LeaseClaimOutcome, LeaseOwner, LeaseToken};
pub use location::StoreLocation;
pub use maintenance::{IntegrityFinding, MaintenanceReport, MaintenanceTask};
pub use options::StoreOptions;
pub use outbox::{
    DeliveryResult, DeliveryState, NewOutboxMessage, OUTBOX_CLAIM_TTL, OutboxFilter, OutboxMessage,
};
pub use outcome_statistics::{CountedQuantity, StatisticsDimension, StatsQuery, StatsRow};
pub use projects::ProjectSummary;
pub use query::{
    EventFilter, EventLogEntry, EventLogOffset, EventOrder, EventPage, InvalidCursor, RunCursor,
    RunFilter, RunPage,
};
pub use recovery_statistics::{
    RecoveryPeriodTotals, RecoveryStatisticsQuery, RecoveryStatisticsReport, StrategySuccessCount,
};
pub use spending::{CostGroupBy, CostSummary, SpendingQuery};
pub use store::{Store, read_settings_at};
pub use stored_settings::{ExpectedVersion, SettingHistoryEntry, SettingUpdate, StoredSetting};
pub use upstream_health::ProbeClaimOutcome;
