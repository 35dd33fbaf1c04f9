//! Retries bounded by time: the time without progress, probes of parked sessions, and an unavailable network.

use std::time::Duration;

use crate::decision::retry_policy::RetryLimits;
use crate::duration::HumanDuration;
use crate::failure::{FailureKind, RecoveryLevel};
use crate::time::Timestamp;

use super::decision_types::{Decision, EscalationReason, RecoveryAction, WaitPurpose};
use super::input::{DecisionInput, NetworkStatus, OperationRepeatability};
use super::{DecisionBuilder, delay, reason};

/// The interval between probes of a parked session.
const PROBE_INTERVAL: Duration = Duration::from_secs(300);
/// The time for which an unresolvable host is retried: wrong names stay wrong.
const UNKNOWN_HOST_LIMIT: Duration = Duration::from_secs(30);
/// The time for which an agent waits for the network if the policy sets no limit.
const DEFAULT_OFFLINE_LIMIT: Duration = Duration::from_secs(12 * 3600);

/// The bound of the retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryBound {
    /// A number of retries.
    Count { n: u32, limit: u32 },
    /// A time without progress.
    Time { passed: Duration, of: Duration },
}

impl RetryBound {
    /// Returns the time at which retries end, if they are bounded by time.
    pub(super) fn ends_at(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Count { .. } => None,
            Self::Time { passed, of } => Some(now.after(of.saturating_sub(passed))),
        }
    }
}

/// Returns the effective limits: a single unresolvable host gets a short time.
pub(super) fn effective_limits(s: &DecisionInput<'_>, limits: RetryLimits) -> RetryLimits {
    let short = |limit: Duration| limit.min(UNKNOWN_HOST_LIMIT);
    match s.network {
        NetworkStatus::UnknownHost => RetryLimits {
            give_up_after: limits.give_up_after.map(short),
            ..limits
        },
        NetworkStatus::Up | NetworkStatus::Down => limits,
    }
}

impl DecisionBuilder<'_, '_> {
    /// Returns the bound of the `n`-th retry.
    pub(super) fn retry_bound(&self, n: u32) -> RetryBound {
        match self.limits.give_up_after {
            Some(of) => RetryBound::Time {
                passed: self.input.history.time_without_progress(self.input.now),
                of,
            },
            None => RetryBound::Count {
                n,
                limit: self.limits.retries,
            },
        }
    }

    /// Returns the reason why it is not retried any more, if the time is over.
    pub(super) fn check_time_limit(&mut self, limit: Duration) -> Option<String> {
        let passed = self.input.history.time_without_progress(self.input.now);
        self.is_out_of_time = passed >= limit;
        let (passed, limit) = (HumanDuration(passed), HumanDuration(limit));
        self.is_out_of_time
            .then(|| format!("no progress for {passed} (limit {limit})"))
    }

    /// Waits until the network is back. This uses up no other limit; it has its own: an agent waits as long as recovery
    /// may take in total, anything else as long as it is retried without progress.
    pub(super) fn wait_for_network(&mut self) -> Option<Decision> {
        let s = self.input;
        let is_cause = matches!(self.kind, FailureKind::NetworkError | FailureKind::Timeout);
        let allowed = if s.can_park {
            s.policy.max_elapsed.unwrap_or(DEFAULT_OFFLINE_LIMIT)
        } else {
            self.limits.give_up_after.unwrap_or_default()
        };
        let left = allowed.saturating_sub(s.history.time_offline());
        if s.network != NetworkStatus::Down
            || !is_cause
            || left.is_zero()
            || s.repeatable == OperationRepeatability::Unsafe
            || self.limits.give_up_after.is_none()
        {
            return None;
        }
        let action = RecoveryAction::Retry {
            delay: left,
            until: s.now.after(left),
        };
        Some(Decision {
            attempt: 0,
            max_attempts: 0,
            wait_purpose: WaitPurpose::Network,
            ..self.finish(Some(RecoveryLevel::Same), action, reason::offline(s, left))
        })
    }

    /// Parks the session instead of escalating, if that is wanted and there is time left.
    pub(super) fn park(&mut self, why: EscalationReason) -> Option<Decision> {
        let s = self.input;
        let is_all_tried = matches!(why, EscalationReason::Exhausted | EscalationReason::Chain);
        if !s.can_park
            || !self.is_out_of_time
            || !is_all_tried
            || s.network == NetworkStatus::UnknownHost
        {
            return None;
        }
        let probe = delay::probe_delay(s, PROBE_INTERVAL, self.draw);
        if delay::exceeded_limit(s, &probe).is_some() {
            return None;
        }
        let left = s
            .policy
            .max_elapsed
            .map(|most| most.saturating_sub(s.history.active_time(s.now)));
        let action = RecoveryAction::Retry {
            delay: probe.delay,
            until: s.now.after(probe.delay),
        };
        let n = s
            .history
            .retries_without_progress(self.kind)
            .saturating_add(1);
        Some(Decision {
            attempt: n,
            max_attempts: 0,
            give_up_at: left.map(|left| s.now.after(left)),
            wait_purpose: WaitPurpose::Probe,
            ..self.finish(
                Some(RecoveryLevel::Same),
                action,
                reason::parked(s, &probe, left),
            )
        })
    }
}
