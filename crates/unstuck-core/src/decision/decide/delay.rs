//! The delay before a retry, and the limits that it may exceed.

use std::time::Duration;

use crate::decision::backoff::delay_until_reset;
use crate::decision::randomness::RandomDraw;
use crate::decision::retry_policy::RetryLimits;
use crate::failure::FailureKind;

use super::decision_types::EscalationReason;
use super::input::DecisionInput;

/// A delay with its source.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RetryDelay {
    pub(super) delay: Duration,
    /// True if the server requested it.
    pub(super) is_stated: bool,
    /// True if it lasts until a stated reset.
    pub(super) is_reset: bool,
}

/// Returns the delay before the next retry.
///
/// A delay stated by the server is never undercut.
pub(super) fn retry_delay(
    s: &DecisionInput<'_>,
    limits: &RetryLimits,
    draw: RandomDraw,
) -> RetryDelay {
    let kind = s.diagnosis.kind;
    let n = match limits.give_up_after {
        Some(_) => s.history.retries_without_progress(kind),
        None => s.history.retry_count(kind),
    };
    let n = n.saturating_add(1);
    let own = limits.backoff.delay(n, s.history.last_delay(kind), draw);
    let reset = kind == FailureKind::RateLimitTimed && s.diagnosis.retry_after.is_some();
    let delay = match s.diagnosis.retry_after {
        Some(stated) if reset => delay_until_reset(stated, draw),
        Some(stated) => own.max(stated),
        None => own,
    };
    RetryDelay {
        delay,
        is_stated: s.diagnosis.retry_after.is_some_and(|stated| stated >= own),
        is_reset: reset,
    }
}

/// Returns the delay before the next probe, spread by up to a tenth so that parked sessions do not probe together; a
/// later stated reset is not undercut.
pub(super) fn probe_delay(s: &DecisionInput<'_>, every: Duration, draw: RandomDraw) -> RetryDelay {
    let stated = s.diagnosis.retry_after.unwrap_or_default();
    let spread = every.mul_f64(draw.fraction() / 10.0);
    RetryDelay {
        delay: (every + spread).max(stated),
        is_stated: false,
        // It uses up the total time, otherwise a limit that is never lifted would be probed forever.
        is_reset: false,
    }
}

/// Returns the limit that a retry after this delay would exceed, if any.
pub(super) fn exceeded_limit(s: &DecisionInput<'_>, wait: &RetryDelay) -> Option<EscalationReason> {
    let stated = s.diagnosis.retry_after.unwrap_or_default();
    if s.policy.max_wait.is_some_and(|most| stated > most) {
        return Some(EscalationReason::WaitTooLong);
    }
    // A stated reset is waited for however long it takes, so it does not use up the policy's time.
    let counted = if wait.is_reset {
        Duration::ZERO
    } else {
        wait.delay
    };
    let busy = s.history.active_time(s.now).saturating_add(counted);
    let total = s.history.elapsed(s.now).saturating_add(wait.delay);
    let over = |most: Option<Duration>, time| most.is_some_and(|most| time > most);
    if over(s.policy.max_elapsed, busy) || over(s.session_limits.elapsed, total) {
        return Some(EscalationReason::MaxElapsed);
    }
    is_over_budget(s, 0.0).then_some(EscalationReason::MaxCost)
}

/// Returns the lowest cost limit in USD.
pub(super) fn money_cap(s: &DecisionInput<'_>) -> Option<f64> {
    match (s.policy.max_cost, s.session_limits.cost) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// True if the cost limit is reached, or would be with this much more.
pub(super) fn is_over_budget(s: &DecisionInput<'_>, more: f64) -> bool {
    money_cap(s).is_some_and(|cap| {
        let spent = s.history.spent();
        spent >= cap || spent + more > cap
    })
}
