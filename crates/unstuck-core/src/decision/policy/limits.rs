//! Which limits hold for one failure, the most specific first.
//!
//! The order is: the role's word on the kind, the tool's, the policy's word on the kind, the policy's general value.
//! A kind's own limit for its layer bounds the general value (the smaller counts); a word on the kind itself stands
//! even if it is larger.

use std::time::Duration;

use crate::failure::{Category, Kind, Layer};
use crate::knowledge::KindFile;

use super::super::backoff::{Backoff, Curve, Jitter};
use super::{Override, RetryPolicy};

/// What holds for one kind of failure in one place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// How many retries each level has.
    pub retries: u32,
    /// Whether someone set that number for this very kind.
    pub explicit: bool,
    /// How long it is repeated unchanged without progress, where time counts instead of the number.
    pub give_up_after: Option<Duration>,
    /// How the waits go.
    pub backoff: Backoff,
    /// What the allowed time is multiplied by, where that was set.
    pub timeout_multiplier: Option<f64>,
}

/// Where a failure happened, as far as limits care.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) kind: Kind,
    pub(crate) layer: Layer,
    pub(crate) tool: Option<&'a str>,
}

/// The overrides that speak about a place, the most specific first.
struct Words<'a> {
    tool: Option<&'a Override>,
    kind: Option<&'a Override>,
}

impl Words<'_> {
    fn say<T>(&self, what: impl Fn(&Override) -> Option<T>) -> Option<T> {
        [self.tool, self.kind].into_iter().flatten().find_map(what)
    }
}

impl RetryPolicy {
    /// What holds for a kind in a layer, and for a tool.
    pub fn limits(&self, kind: Kind, layer: Layer, file: &KindFile, tool: Option<&str>) -> Limits {
        let place = Place { kind, layer, tool };
        self.limits_at(place, file)
    }

    pub(crate) fn limits_at(&self, place: Place<'_>, file: &KindFile) -> Limits {
        let words = Words {
            tool: place.tool.and_then(|tool| self.tools.get(tool)),
            kind: self.kinds.get(&place.kind),
        };
        let (retries, explicit) = self.retries(place, file, &words);
        let defaults = file.defaults(place.layer);
        let has_number = words.say(|one| one.max_retries).is_some() || defaults.retries.is_some();
        let own_time = defaults.give_up_after_seconds.map(Duration::from_secs);
        let is_transient = place.kind.category() == Category::Transient;
        let is_timed = (is_transient || own_time.is_some()) && !has_number;
        // Where time bounds the rest, the kinds with numbers of their own keep their waits too: multiplier × n seconds.
        let keeps_own = self.give_up_after.is_some() && defaults.backoff_multiplier.is_some();
        let (curve, jitter) = match keeps_own {
            true => (Curve::Linear, Jitter::None),
            false => (self.curve, self.jitter),
        };
        let curve = words.say(|one| one.curve).unwrap_or(curve);
        // The kinds' own multipliers are those of the linear curve; elsewhere they would mean something else.
        let own = defaults.backoff_multiplier;
        let own = own.filter(|_| curve == Curve::Linear);
        let multiplier = words.say(|one| one.backoff_multiplier).or(own);
        Limits {
            retries,
            explicit,
            give_up_after: self
                .give_up_after
                .filter(|_| is_timed)
                .map(|time| own_time.map_or(time, |own| own.min(time))),
            backoff: Backoff {
                curve,
                jitter: words.say(|one| one.jitter).unwrap_or(jitter),
                base: words
                    .say(|one| one.backoff_base)
                    .unwrap_or(self.backoff_base),
                multiplier: multiplier.unwrap_or(self.backoff_multiplier),
                cap: words.say(|one| one.max_backoff).unwrap_or(self.max_backoff),
            },
            timeout_multiplier: words.say(|one| one.timeout_multiplier),
        }
    }

    fn retries(&self, place: Place<'_>, file: &KindFile, words: &Words<'_>) -> (u32, bool) {
        let of = |one: Option<&Override>| one.and_then(|one| one.max_retries);
        let tool = of(words.tool);
        if let Some(retries) = of(words.kind) {
            return (tool.map_or(retries, |tool| tool.min(retries)), true);
        }
        let general = tool.unwrap_or(self.max_retries);
        let own = file.defaults(place.layer).retries;
        let own = own.or(match place.kind.category() {
            Category::Fatal | Category::Code | Category::None => Some(0),
            Category::Unknown => Some(1),
            Category::Transient | Category::Systematic => None,
        });
        (own.map_or(general, |own| own.min(general)), false)
    }
}
