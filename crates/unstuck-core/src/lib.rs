//! The domain logic of unstuck: classification of failures and decisions about recovery.
//!
//! Every failure, from every layer, passes through the same steps:
//!
//! ```text
//! Failure ──> Diagnosis ──> Decision ──> Action ──> Outcome ──> Episode
//! observed    kind, why,    level,       retry,      worked     the full record
//!             retry-after   strategy     repair,     or not
//!                           reason       ask
//! ```
//!
//! The crate is pure: it opens no file, reads no clock and draws no random numbers. The caller passes in the current
//! time and the random draws, so the same arguments always give the same result. Its knowledge (kinds, rules, chains,
//! strategies, policies, models, prompts) is embedded data from `data/`, and a user's configuration
//! [adds to it](knowledge::KnowledgeOverlay).
//!
//! ```
//! use unstuck_core::decision::{RandomDraw, EpisodeRecoveryHistory, DecisionInput, decide, template};
//! use unstuck_core::knowledge::RecoveryKnowledge;
//! use unstuck_core::{Failure, FailureKind, RecoveryLevel, ClockReading, Timestamp, classify};
//!
//! // An observed failure …
//! let failure = Failure::api("anthropic")
//!     .with_status(429)
//!     .with_header("retry-after", "12")
//!     .with_body(r#"{"type":"error","error":{"type":"rate_limit_error","message":"Rate limited"}}"#);
//!
//! // … is a rate limit that states how long to wait …
//! let now = ClockReading::utc(Timestamp::from_seconds(1_763_000_000));
//! let diagnosis = classify(&failure, &now);
//! assert_eq!(diagnosis.kind, FailureKind::RateLimit);
//! assert_eq!(diagnosis.retry_after.map(|wait| wait.as_secs()), Some(12));
//!
//! // … so it is retried after exactly that wait.
//! let policy = template("standard").ok_or("no such template")?;
//! let history = EpisodeRecoveryHistory::new(now.at);
//! let recovery_knowledge = RecoveryKnowledge::built_in();
//! let known = recovery_knowledge.kind(diagnosis.kind).ok_or("no such kind")?;
//! let situation = DecisionInput::new(policy, &history, &diagnosis, known, recovery_knowledge, now.at);
//! let decision = decide(&situation, RandomDraw(0));
//! assert_eq!(decision.level, Some(RecoveryLevel::Same));
//! assert_eq!(decision.delay().map(|wait| wait.as_secs()), Some(12));
//! println!("{}", decision.reason);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod admission;
pub mod agent;
pub mod command_policy;
pub mod decision;
pub mod diagnosis;
mod did_you_mean;
pub mod duration;
pub mod escalation;
pub mod event;
pub mod failure;
pub mod knowledge;
mod literal_index;
pub mod loop_detection;
pub mod money;
pub mod network_symptom;
pub mod pipeline;
pub mod project_settings_snapshot;
pub mod recovery_plan;
pub mod redact;
mod regex_literals;
pub mod repair;
pub mod session_state;
mod time;
pub mod usage_budget;
pub mod views;
pub mod watched_files;

pub use decision::{Decision, RetryPolicy, decide};
pub use diagnosis::{Classifier, Diagnosis, Evidence, classify};
pub use did_you_mean::nearest;
pub use event::{Event, EventRecord, RunId, SessionId};
pub use failure::{
    Category, Failure, FailureInputRecord, FailureKind, FailureLayer, Headers, LossyText,
    RecoveryLevel, UnknownFailureKind,
};
pub use pipeline::PipelineState;
pub use recovery_plan::{AttemptSettings, PlannedStrategy, RecoveryPlanRequest, plan};
pub use session_state::SessionState;
pub use time::{ClockReading, ParseTimestampError, Timestamp};
pub use views::{FailureAnalytics, GoalEpisodeRecord, RunSummary};
