//! The state of retrying one call: its attempts so far, and the target of the next one.

use bytes::Bytes;
use tokio::time::Instant;
use unstuck_core::admission::ApiAttemptKind;
use unstuck_core::decision::{EpisodeRecoveryHistory, WaitPurpose};
use unstuck_core::{Diagnosis, Timestamp};

use super::routing::UpstreamTarget;

/// The state of retrying one call: its attempts so far, and the target of the next one.
pub(crate) struct RetryState {
    /// The upstream and model of the next attempt.
    pub(crate) target: UpstreamTarget,
    /// The model name used by the client or the session.
    pub(crate) model: Option<String>,
    pub(crate) history: EpisodeRecoveryHistory,
    /// The kind of the next attempt, for upstream admission.
    pub(crate) attempt: ApiAttemptKind,
    /// The request with the validation error appended, after an unusable response.
    pub(crate) corrected_body: Option<Bytes>,
    /// The number of API attempts so far.
    pub(crate) attempts: u32,
    /// The number of API attempts made for earlier requests with the same body.
    pub(crate) earlier_attempts: u32,
    /// The number of consecutive attempts at the current target, and the time of the first.
    pub(crate) attempts_at_target: u32,
    pub(crate) at_target_since: Instant,
    /// True if the target was already failing for other calls.
    pub(crate) was_failing: bool,
    /// The number of failed rounds through all upstreams.
    pub(crate) rounds: u32,
    /// The target to start with when the client returns, if it is not the first.
    pub(crate) next_target: Option<UpstreamTarget>,
    /// True if a person wants the next attempt to be made at once.
    pub(crate) is_requested: bool,
    /// The time at which retries end if there is no progress, if they are bounded by time.
    pub(crate) give_up_at: Option<Timestamp>,
}

/// The state kept for a request whose client was asked to retry later.
#[derive(Debug, Clone)]
pub(crate) struct RetryLaterState {
    pub(crate) history: EpisodeRecoveryHistory,
    pub(crate) attempts: u32,
    /// The last failure.
    pub(crate) diagnosis: Diagnosis,
    /// The time of the next attempt.
    pub(crate) next_attempt_at: Timestamp,
    /// The reason for waiting until then.
    pub(crate) wait_for: WaitPurpose,
    /// The target to start with, if it is not the first.
    pub(crate) target: Option<UpstreamTarget>,
}

impl RetryState {
    pub(crate) fn new(target: UpstreamTarget, model: Option<String>, now: Timestamp) -> Self {
        Self {
            target,
            model,
            history: EpisodeRecoveryHistory::new(now),
            attempt: ApiAttemptKind::First,
            corrected_body: None,
            attempts: 0,
            earlier_attempts: 0,
            attempts_at_target: 0,
            at_target_since: Instant::now(),
            was_failing: false,
            rounds: 0,
            next_target: None,
            is_requested: false,
            give_up_at: None,
        }
    }

    /// Returns the number of API attempts for this request, earlier ones included.
    pub(crate) fn total_attempts(&self) -> u32 {
        self.earlier_attempts.saturating_add(self.attempts)
    }

    /// Switches to another target.
    pub(crate) fn switch_target(&mut self, target: UpstreamTarget) {
        self.target = target;
        self.attempts_at_target = 0;
        self.at_target_since = Instant::now();
    }

    /// Restores the state of a request whose client was asked to retry later.
    pub(crate) fn resume(&mut self, unfinished: &RetryLaterState) {
        self.history = unfinished.history.clone();
        self.earlier_attempts = unfinished.attempts;
        self.attempt = ApiAttemptKind::Retry;
        if let Some(target) = &unfinished.target {
            self.switch_target(target.clone());
        }
    }
}
