//! The effective limits of a failure, most specific first.
//!
//! The order is: the role's override for the kind, the tool's override, the policy's override for the kind, the
//! policy's general value. A kind's own limit for its layer bounds the general value (the smaller applies); an override
//! for the kind itself applies even if it is larger.

use std::time::Duration;

use crate::failure::{Category, FailureKind, FailureLayer};
use crate::knowledge::KindKnowledge;

use super::super::backoff::{Backoff, BackoffCurve, Jitter};
use super::{RetryPolicy, RetryPolicyOverride};

/// The effective limits of one failure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryLimits {
    /// The number of retries per level.
    pub retries: u32,
    /// True if the number was set explicitly for this kind.
    pub is_explicit: bool,
    /// The time for which it is retried unchanged without progress, if time is the limit instead of the number.
    pub give_up_after: Option<Duration>,
    /// The backoff.
    pub backoff: Backoff,
    /// The factor of the timeout, if it was set.
    pub timeout_multiplier: Option<f64>,
}

/// The kind, layer and tool of a failure, by which its retry limits are looked up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetryLimitKey<'a> {
    pub(crate) kind: FailureKind,
    pub(crate) layer: FailureLayer,
    pub(crate) tool: Option<&'a str>,
}

/// The overrides for a scope, most specific first.
struct ApplicableOverrides<'a> {
    tool: Option<&'a RetryPolicyOverride>,
    kind: Option<&'a RetryPolicyOverride>,
}

impl ApplicableOverrides<'_> {
    fn first_value<T>(&self, what: impl Fn(&RetryPolicyOverride) -> Option<T>) -> Option<T> {
        [self.tool, self.kind].into_iter().flatten().find_map(what)
    }
}

impl RetryPolicy {
    /// Returns the limits of a kind in a layer, and of a tool.
    pub fn limits(
        &self,
        kind: FailureKind,
        layer: FailureLayer,
        file: &KindKnowledge,
        tool: Option<&str>,
    ) -> RetryLimits {
        let place = RetryLimitKey { kind, layer, tool };
        self.limits_at(place, file)
    }

    pub(crate) fn limits_at(&self, place: RetryLimitKey<'_>, file: &KindKnowledge) -> RetryLimits {
        let words = ApplicableOverrides {
            tool: place.tool.and_then(|tool| self.tools.get(tool)),
            kind: self.kinds.get(&place.kind),
        };
        let (retries, explicit) = self.retries(place, file, &words);
        let defaults = file.layer_defaults(place.layer);
        let has_number =
            words.first_value(|one| one.max_retries).is_some() || defaults.retries.is_some();
        let own_time = defaults.give_up_after_seconds.map(Duration::from_secs);
        let is_transient = place.kind.category() == Category::Transient;
        let is_timed = (is_transient || own_time.is_some()) && !has_number;
        // If time bounds the rest, kinds with their own numbers keep their delays too: multiplier × n seconds.
        let keeps_own = self.give_up_after.is_some() && defaults.backoff_multiplier.is_some();
        let (curve, jitter) = if keeps_own {
            (BackoffCurve::Linear, Jitter::None)
        } else {
            (self.curve, self.jitter)
        };
        let curve = words.first_value(|one| one.curve).unwrap_or(curve);
        // The kinds' own multipliers are those of the linear curve; elsewhere they would mean something else.
        let own = defaults.backoff_multiplier;
        let own = own.filter(|_| curve == BackoffCurve::Linear);
        let multiplier = words.first_value(|one| one.backoff_multiplier).or(own);
        RetryLimits {
            retries,
            is_explicit: explicit,
            give_up_after: self
                .give_up_after
                .filter(|_| is_timed)
                .map(|time| own_time.map_or(time, |own| own.min(time))),
            backoff: Backoff {
                curve,
                jitter: words.first_value(|one| one.jitter).unwrap_or(jitter),
                base: words
                    .first_value(|one| one.backoff_base)
                    .unwrap_or(self.backoff_base),
                multiplier: multiplier.unwrap_or(self.backoff_multiplier),
                cap: words
                    .first_value(|one| one.max_backoff)
                    .unwrap_or(self.max_backoff),
            },
            timeout_multiplier: words.first_value(|one| one.timeout_multiplier),
        }
    }

    fn retries(
        &self,
        place: RetryLimitKey<'_>,
        file: &KindKnowledge,
        words: &ApplicableOverrides<'_>,
    ) -> (u32, bool) {
        let of = |one: Option<&RetryPolicyOverride>| one.and_then(|one| one.max_retries);
        let tool = of(words.tool);
        if let Some(retries) = of(words.kind) {
            return (tool.map_or(retries, |tool| tool.min(retries)), true);
        }
        let general = tool.unwrap_or(self.max_retries);
        let own = file.layer_defaults(place.layer).retries;
        let own = own.or(match place.kind.category() {
            Category::Fatal | Category::Code | Category::None => Some(0),
            Category::Unknown => Some(1),
            Category::Transient | Category::Systematic => None,
        });
        (own.map_or(general, |own| own.min(general)), false)
    }
}
