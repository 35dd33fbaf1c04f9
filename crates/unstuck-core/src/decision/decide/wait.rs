//! How long to wait in a situation, and whether that is still within the caps.

use std::time::Duration;

use crate::decision::backoff::until_reset;
use crate::decision::draw::Draw;
use crate::decision::policy::Limits;
use crate::failure::Kind;

use super::made::AskWhy;
use super::situation::Situation;

/// A wait and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Wait {
    pub(super) delay: Duration,
    /// Whether the server asked for it.
    pub(super) asked: bool,
    /// Whether it is one for a reset at a stated time.
    pub(super) reset: bool,
}

/// The wait before the next retry.
///
/// What the server stated is never undercut.
pub(super) fn wait(s: &Situation<'_>, limits: &Limits, draw: Draw) -> Wait {
    let kind = s.diagnosis.kind;
    let n = match limits.give_up_after {
        Some(_) => s.history.retries_without_progress(kind),
        None => s.history.retries(kind),
    };
    let n = n.saturating_add(1);
    let own = limits.backoff.delay(n, s.history.last_delay(kind), draw);
    let reset = kind == Kind::RateLimitTimed && s.diagnosis.retry_after.is_some();
    let delay = match s.diagnosis.retry_after {
        Some(stated) if reset => until_reset(stated, draw),
        Some(stated) => own.max(stated),
        None => own,
    };
    Wait {
        delay,
        asked: s.diagnosis.retry_after.is_some_and(|stated| stated >= own),
        reset,
    }
}

/// The wait before the next rare probe; a reset that is stated for later is not undercut.
pub(super) fn probe(s: &Situation<'_>, every: Duration) -> Wait {
    let stated = s.diagnosis.retry_after.unwrap_or_default();
    Wait {
        delay: every.max(stated),
        asked: false,
        // It uses up the time for all, or a limit that is never lifted would be probed without end.
        reset: false,
    }
}

/// Which cap a retry after that wait would break, if any.
pub(super) fn beyond(s: &Situation<'_>, wait: &Wait) -> Option<AskWhy> {
    let stated = s.diagnosis.retry_after.unwrap_or_default();
    if s.policy.max_wait.is_some_and(|most| stated > most) {
        return Some(AskWhy::WaitTooLong);
    }
    // A stated reset is waited for however long it takes, so it does not use up the policy's time.
    let counted = if wait.reset {
        Duration::ZERO
    } else {
        wait.delay
    };
    let busy = s.history.busy(s.now).saturating_add(counted);
    let total = s.history.elapsed(s.now).saturating_add(wait.delay);
    let over = |most: Option<Duration>, time| most.is_some_and(|most| time > most);
    if over(s.policy.max_elapsed, busy) || over(s.caps.elapsed, total) {
        return Some(AskWhy::MaxElapsed);
    }
    over_budget(s, 0.0).then_some(AskWhy::MaxCost)
}

/// The least of the caps on money, in USD.
pub(super) fn money_cap(s: &Situation<'_>) -> Option<f64> {
    match (s.policy.max_cost, s.caps.cost) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Whether the money is spent, or would be with so much more.
pub(super) fn over_budget(s: &Situation<'_>, more: f64) -> bool {
    money_cap(s).is_some_and(|cap| {
        let spent = s.history.spent();
        spent >= cap || spent + more > cap
    })
}
