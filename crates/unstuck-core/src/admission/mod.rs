//! How all sessions share one upstream: before a limit instead of after it, and without making an outage worse.
//!
//! A [`AdmissionController`] is one upstream, key and model. Every call asks it first, and tells it how it ended. It knows what is left of
//! the provider's limits, waits that the server stated, whether the upstream is overloaded or down, and how many retries
//! there have been; so all sessions slow down together. A [`Line`] holds those who must wait and says who goes
//! next, fairly between sessions. Both are pure: whoever calls them says what time it is.
//!
//! ```
//! use std::time::Duration;
//! use unstuck_core::traffic::{AdmissionRequest, AdmissionController, AdmissionSettings, Limits, Line, Next, ApiAttemptKind};
//! use unstuck_core::{Kind, Timestamp};
//!
//! let now = Timestamp::from_seconds(1_763_000_000);
//! let mut lane = AdmissionController::new(AdmissionSettings::default(), now);
//! let mut line = Line::default();
//! let first = AdmissionRequest { attempt: ApiAttemptKind::First, tokens: 1200 };
//! line.push("session a", 1, first, "a's call");
//! line.push("session b", 1, first, "b's call");
//! assert_eq!(line.next(&mut lane, now), Next::Admit("a's call"));
//!
//! // The server answers it with 429 and `retry-after: 7`: now everybody waits for just that long.
//! lane.failed(Kind::RateLimit, Some(Duration::from_secs(7)), &Limits::default(), now);
//! let Next::Wait { until, .. } = line.next(&mut lane, now) else {
//!     panic!("b's call went into the limit");
//! };
//! assert_eq!(until, now.after(Duration::from_secs(7)));
//! assert_eq!(line.next(&mut lane, until), Next::Admit("b's call"));
//! lane.answered(&Limits::default(), 1300, Duration::from_secs(2), until);
//! ```

mod controller;
mod fair_queue;
mod limit_headers;
mod load_window;
mod provider_limits;
mod quota_window;
mod rate;
mod rate_controller;
mod recent_calls;
pub mod simulation;
mod state;
mod wait_queue;

pub use controller::{
    AdmissionController, AdmissionDecision, AdmissionRequest, AdmissionSettings, ApiAttemptKind,
    HoldReason,
};
pub use fair_queue::{FairQueue, QueueTicket};
pub use provider_limits::{LimitStatus, ProviderLimits, SubscriptionUsage};
pub use state::{AdmissionCounts, AdmissionState};
pub use wait_queue::{NextAdmission, WaitQueue, WaitTicket};

#[cfg(test)]
mod tests;
