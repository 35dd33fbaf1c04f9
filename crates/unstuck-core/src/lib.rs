//! The heart of unstuck: what failed, why, and what to do about it.
//!
//! Every failure, from every layer, walks the same way:
//!
//! ```text
//! Failure ──> Diagnosis ──> Decision ──> Action ──> Outcome ──> Episode
//! observed    kind, why,    level,       retry,      worked     the whole story
//!             retry-after   strategy     repair,     or not
//!                           reason       ask
//! ```
//!
//! The crate is pure: it opens no file, reads no clock and draws no random numbers. Whoever calls it says
//! what time it is and what the dice showed, so the same arguments always give the same answer. What it
//! knows (kinds, rules, chains, strategies, policies, models, prompts) is data in `data/`, embedded, and
//! a user's configuration [adds to it](knowledge::Overlay).
//!
//! ```
//! use unstuck_core::decision::{Draw, History, Situation, decide, template};
//! use unstuck_core::knowledge::Playbook;
//! use unstuck_core::{Failure, Kind, Level, Now, Timestamp, classify};
//!
//! // What was observed …
//! let failure = Failure::api("anthropic")
//!     .with_status(429)
//!     .with_header("retry-after", "12")
//!     .with_body(r#"{"type":"error","error":{"type":"rate_limit_error","message":"Rate limited"}}"#);
//!
//! // … is a rate limit that states how long to wait …
//! let now = Now::utc(Timestamp::from_seconds(1_763_000_000));
//! let diagnosis = classify(&failure, &now);
//! assert_eq!(diagnosis.kind, Kind::RateLimit);
//! assert_eq!(diagnosis.retry_after.map(|wait| wait.as_secs()), Some(12));
//!
//! // … so it is tried again after just that wait.
//! let policy = template("standard").ok_or("no such template")?;
//! let history = History::new(now.at);
//! let playbook = Playbook::built_in();
//! let known = playbook.kind(diagnosis.kind).ok_or("no such kind")?;
//! let situation = Situation::new(policy, &history, &diagnosis, known, playbook, now.at);
//! let decision = decide(&situation, Draw(0));
//! assert_eq!(decision.level, Some(Level::Same));
//! assert_eq!(decision.delay().map(|wait| wait.as_secs()), Some(12));
//! println!("{}", decision.reason);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod action;
pub mod agent;
pub mod budget;
pub mod decision;
pub mod diagnosis;
pub mod duration;
pub mod episode;
pub mod event;
pub mod failure;
pub mod guard;
pub mod guard_files;
pub mod knowledge;
mod literals;
mod moment;
pub mod money;
mod nearest;
mod needles;
pub mod network;
pub mod pipeline;
pub mod question;
pub mod recovery;
pub mod redact;
pub mod repair;
pub mod settings;
pub mod stuck;
pub mod traffic;

pub use action::{PlanRequest, PlannedStrategy, Settings, plan};
pub use decision::{Decision, RetryPolicy, decide};
pub use diagnosis::{Classifier, Diagnosis, Evidence, classify};
pub use episode::{Episode, FailureAnalytics, RunView};
pub use event::{Event, Recorded, RunId, SessionId};
pub use failure::{Case, Category, Failure, Headers, Kind, Layer, Level, Text, UnknownKind};
pub use moment::{NotATimestamp, Now, Timestamp};
pub use nearest::nearest;
pub use pipeline::Pipeline;
pub use recovery::Recovery;
