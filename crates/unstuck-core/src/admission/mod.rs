//! Admission control: how all sessions share one upstream, below its limits and without making an outage worse.
//!
//! An [`ApiAdmissionController`] controls one upstream, key and model. Every call asks it for admission and reports its
//! result. It tracks the provider's limits, waits that the server stated, overload, outages and the number of retries,
//! so all sessions slow down together. A [`WaitQueue`] holds the waiting calls and picks the next one fairly between
//! sessions. Both are pure: the caller passes the time.
//!
//! ```
//! use std::time::Duration;
//! use unstuck_core::admission::{ApiAdmissionController, ApiAdmissionRequest, ApiAdmissionSettings, ApiAttemptKind};
//! use unstuck_core::admission::{NextAdmission, ResponseRateLimits, WaitQueue};
//! use unstuck_core::{FailureKind, Timestamp};
//!
//! let now = Timestamp::from_seconds(1_763_000_000);
//! let mut controller = ApiAdmissionController::new(ApiAdmissionSettings::default(), now);
//! let mut queue = WaitQueue::default();
//! let first = ApiAdmissionRequest { attempt: ApiAttemptKind::First, tokens: 1200 };
//! queue.push("session a", 1, first, "a's call");
//! queue.push("session b", 1, first, "b's call");
//! assert_eq!(queue.next_admission(&mut controller, now), NextAdmission::Admit("a's call"));
//!
//! // The server responds with 429 and `retry-after: 7`: now all sessions wait for exactly that long.
//! controller.on_failure(FailureKind::RateLimit, Some(Duration::from_secs(7)), &ResponseRateLimits::default(), now);
//! let NextAdmission::Wait { until, .. } = queue.next_admission(&mut controller, now) else {
//!     panic!("b's call went into the limit");
//! };
//! assert_eq!(until, now.after(Duration::from_secs(7)));
//! assert_eq!(queue.next_admission(&mut controller, until), NextAdmission::Admit("b's call"));
//! controller.on_success(&ResponseRateLimits::default(), 1300, Duration::from_secs(2), until);
//! ```

mod controller;
mod fair_queue;
mod overload_limits;
mod quota_window;
mod rate_controller;
mod rate_limit_frequency;
mod rate_limit_header_names;
mod response_rate_limits;
#[cfg(test)]
mod simulation;
mod state;
mod upstream_load;
mod wait_queue;

pub use controller::{
    AdmissionDecision, ApiAdmissionController, ApiAdmissionRequest, ApiAdmissionSettings,
    ApiAttemptKind, HoldReason,
};
pub use fair_queue::{FairQueue, QueueItemId};
pub use response_rate_limits::{RemainingQuota, ResponseRateLimits, SubscriptionUsage};
pub use state::{AdmissionControllerState, ApiAdmissionTotals};
pub use wait_queue::{AdmissionWaitTicket, NextAdmission, WaitQueue};

#[cfg(test)]
mod tests;
