//! Retries that time bounds: how long without progress, rare probes after that, and a network that is gone.

use std::time::Duration;

use crate::decision::policy::Limits;
use crate::duration::Human;
use crate::failure::{Kind, Level};
use crate::moment::Timestamp;

use super::made::{AskWhy, Chosen, Decision, WaitFor};
use super::situation::{Network, Repeat, Situation};
use super::{Deciding, reason, wait};

/// How often a session that is parked looks whether it works again.
const PROBE_EVERY: Duration = Duration::from_secs(300);
/// How long a host is asked for that nobody knows: names that are wrong stay wrong.
const UNKNOWN_HOST: Duration = Duration::from_secs(30);
/// How long an agent waits for the network where the policy has no bound.
const OFFLINE: Duration = Duration::from_secs(12 * 3600);

/// What bounds the retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// Their number.
    Count { n: u32, of: u32 },
    /// The time without progress.
    Time { passed: Duration, of: Duration },
}

impl Bound {
    /// When the time is over, where it is what bounds.
    pub(super) fn ends_at(self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Count { .. } => None,
            Self::Time { passed, of } => Some(now.after(of.saturating_sub(passed))),
        }
    }
}

/// The limits here: a single host that nobody knows gets a short time.
pub(super) fn limits(s: &Situation<'_>, limits: Limits) -> Limits {
    let short = |limit: Duration| limit.min(UNKNOWN_HOST);
    match s.network {
        Network::UnknownHost => Limits {
            give_up_after: limits.give_up_after.map(short),
            ..limits
        },
        Network::Up | Network::Down => limits,
    }
}

impl Deciding<'_, '_> {
    /// What bounds the `n`-th retry.
    pub(super) fn bound(&self, n: u32) -> Bound {
        match self.limits.give_up_after {
            Some(of) => Bound::Time {
                passed: self.s.history.without_progress(self.s.now),
                of,
            },
            None => Bound::Count {
                n,
                of: self.limits.retries,
            },
        }
    }

    /// Why it is not repeated any more, if the time is over.
    pub(super) fn out_of_time(&mut self, limit: Duration) -> Option<String> {
        let passed = self.s.history.without_progress(self.s.now);
        self.is_out_of_time = passed >= limit;
        let (passed, limit) = (Human(passed), Human(limit));
        self.is_out_of_time
            .then(|| format!("there was no progress for {passed}, and {limit} are allowed"))
    }

    /// Waits until the network is back. That counts against no limit; it has one of its own: an agent waits as long as
    /// recovery may take in all, anything else as long as it is repeated without progress.
    pub(super) fn wait_for_network(&mut self) -> Option<Decision> {
        let s = self.s;
        let is_cause = matches!(self.kind, Kind::NetworkError | Kind::Timeout);
        let allowed = match s.parks {
            true => s.policy.max_elapsed.unwrap_or(OFFLINE),
            false => self.limits.give_up_after.unwrap_or_default(),
        };
        let left = allowed.saturating_sub(s.history.offline());
        if s.network != Network::Down
            || !is_cause
            || left.is_zero()
            || s.repeat == Repeat::Unsafe
            || self.limits.give_up_after.is_none()
        {
            return None;
        }
        let action = Chosen::Retry {
            delay: left,
            until: s.now.after(left),
        };
        Some(Decision {
            attempt: 0,
            of: 0,
            wait_for: WaitFor::Network,
            ..self.made(Some(Level::Same), action, reason::offline(s, left))
        })
    }

    /// Goes on with rare probes instead of asking, where that is wanted and there still is time for it.
    pub(super) fn park(&mut self, why: AskWhy) -> Option<Decision> {
        let s = self.s;
        let is_all_tried = matches!(why, AskWhy::Exhausted | AskWhy::Chain);
        if !s.parks || !self.is_out_of_time || !is_all_tried || s.network == Network::UnknownHost {
            return None;
        }
        let probe = wait::probe(s, PROBE_EVERY);
        if wait::beyond(s, &probe).is_some() {
            return None;
        }
        let left = s
            .policy
            .max_elapsed
            .map(|most| most.saturating_sub(s.history.busy(s.now)));
        let action = Chosen::Retry {
            delay: probe.delay,
            until: s.now.after(probe.delay),
        };
        let n = s
            .history
            .retries_without_progress(self.kind)
            .saturating_add(1);
        Some(Decision {
            attempt: n,
            of: 0,
            give_up_at: left.map(|left| s.now.after(left)),
            wait_for: WaitFor::Probe,
            ..self.made(Some(Level::Same), action, reason::parked(s, &probe, left))
        })
    }
}
