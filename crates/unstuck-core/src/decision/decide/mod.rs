//! The decision itself: the four levels, in order.
//!
//! - Transient failures are repeated unchanged up to their limit (level 1), then the kind's chain is walked (level 2),
//!   then a person is asked (level 4). The limit is a number of retries, or the time without progress; after that time
//!   agents go on with rare probes before a person is asked.
//! - Systematic failures start with the chain; fatal ones ask at once.
//! - An unknown failure gets one plain retry.
//! - A repair that fits and may run comes before any other way; one that a person must allow comes last, unless somebody
//!   proposed it.
//! - `code` and `none` are not ours, and neither is anything while the policy is off.
//! - Level 3 is only ever a person's choice: it is never decided here.
//!
//! Both levels 1 and 2 have the limit of retries that holds for the kind. No strategy is used twice for one kind in an
//! episode, unless someone set the limit for this very kind higher than the chain is long: then it starts again.

mod alternative;
mod made;
mod patience;
mod reason;
mod repair;
mod situation;
mod wait;

pub use made::{
    AskWhy, Changed, Chosen, Decision, FellThrough, Proposed, StopWhy, Trigger, WaitFor,
};
pub use situation::{
    Capabilities, Capability, Caps, ModelUse, Network, RepairLeave, RepairOffer, Repeat, Situation,
    Strategies,
};

use std::borrow::Cow;

use crate::failure::{Category, Kind, Level};

use super::draw::Draw;
use super::model::CostEstimate;
use super::policy::Limits;

/// Why something is not simply done again.
const ALREADY_DONE: &str = "it may already have had an effect";

/// Decides what to do about a failure.
///
/// It is a pure function: the same situation and the same draw give the same decision.
pub fn decide(situation: &Situation<'_>, draw: Draw) -> Decision {
    let s = situation;
    let place = super::policy::Place {
        kind: s.diagnosis.kind,
        layer: s.diagnosis.layer,
        tool: s.tool,
    };
    let deciding = Deciding {
        s,
        kind: s.diagnosis.kind,
        limits: patience::limits(s, s.policy.limits_at(place, s.knowledge)),
        draw,
        is_out_of_time: false,
        fell: Vec::new(),
    };
    deciding.run()
}

/// A decision in the making.
struct Deciding<'a, 's> {
    s: &'s Situation<'a>,
    kind: Kind,
    limits: Limits,
    draw: Draw,
    /// Whether it would be repeated unchanged if there were time left.
    is_out_of_time: bool,
    fell: Vec<FellThrough>,
}

impl Deciding<'_, '_> {
    fn run(mut self) -> Decision {
        if let Some(why) = self.not_ours() {
            return self.stop(why);
        }
        if let Some(decision) = self.wait_for_network() {
            return decision;
        }
        if self.s.history.counted_executions() >= self.s.caps.attempts {
            return self.ask(AskWhy::MaxAttempts);
        }
        let repair_first =
            self.kind.category() != Category::Transient || self.s.knowledge.repair_first;
        if repair_first && let Some(decision) = self.repair() {
            return decision;
        }
        match self.s.diagnosis.level {
            Some(Level::Same) => self.same(),
            // Somebody else has tried the same; whether the time for it is over is seen here.
            Some(Level::Alternative) if self.is_timed_elsewhere() => self.same(),
            Some(Level::Alternative) => self.alternative(),
            // Someone gave this very kind retries: their word stands.
            _ if self.limits.explicit && self.limits.retries > 0 => self.same(),
            _ => self.ask(AskWhy::Fatal),
        }
    }

    fn not_ours(&self) -> Option<StopWhy> {
        match self.kind.category() {
            Category::None => Some(StopWhy::NotAFailure),
            Category::Code => Some(StopWhy::Code),
            _ if self.s.repeat == Repeat::ByOuter => Some(StopWhy::OuterRetries),
            _ if self.s.repeat == Repeat::ByPerson => Some(StopWhy::Interactive),
            _ if !self.s.policy.enabled => Some(StopWhy::PolicyOff),
            _ if self.s.repeat == Repeat::InputSpent => Some(StopWhy::InputSpent),
            _ => None,
        }
    }

    /// Level 1: the same again, while that is allowed.
    fn same(&mut self) -> Decision {
        if self.model_is_due()
            && let Some(decision) = self.next_model()
        {
            return decision;
        }
        let used = match self.limits.give_up_after {
            Some(_) => self.s.history.retries_without_progress(self.kind),
            None => self.s.history.retries_at(self.kind, Level::Same),
        };
        let refused = if self.s.repeat == Repeat::Unsafe {
            Some(Cow::Borrowed(ALREADY_DONE))
        } else if !self.s.policy.repeats(self.kind) {
            Some(Cow::Borrowed(
                "the policy does not repeat this kind of failure unchanged",
            ))
        } else if let Some(limit) = self.limits.give_up_after {
            self.out_of_time(limit).map(Cow::Owned)
        } else if used >= self.limits.retries {
            Some(Cow::Owned(format!(
                "{used} of {} retries are used",
                self.limits.retries
            )))
        } else {
            None
        };
        match refused {
            Some(why) => self.after_same(why),
            None => self.retry(used + 1),
        }
    }

    fn after_same(&mut self, why: Cow<'static, str>) -> Decision {
        self.fall("same", why);
        if self.kind.category() == Category::Transient
            && !self.s.knowledge.repair_first
            && let Some(decision) = self.repair()
        {
            return decision;
        }
        let unsafe_to_repeat = self.s.repeat == Repeat::Unsafe;
        match self.kind.category() {
            Category::Unknown if unsafe_to_repeat => self.ask(AskWhy::NotRepeatable),
            Category::Unknown | Category::Fatal => self.ask(AskWhy::Exhausted),
            _ => self.alternative(),
        }
    }

    fn retry(&mut self, n: u32) -> Decision {
        let wait = wait::wait(self.s, &self.limits, self.draw);
        if let Some(why) = wait::beyond(self.s, &wait) {
            return self.ask(why);
        }
        let bound = self.bound(n);
        let reason = reason::retry(self.s, &wait, bound);
        let action = Chosen::Retry {
            delay: wait.delay,
            until: self.s.now.after(wait.delay),
        };
        Decision {
            attempt: n,
            of: match bound {
                patience::Bound::Count { of, .. } => of,
                patience::Bound::Time { .. } => 0,
            },
            stated: wait.reset,
            give_up_at: bound.ends_at(self.s.now),
            ..self.made(Some(Level::Same), action, reason)
        }
    }

    fn stop(&mut self, why: StopWhy) -> Decision {
        let reason = reason::stop(self.s, why);
        self.made(None, Chosen::Stop { why }, reason)
    }

    /// Level 4: a person is asked.
    fn ask(&mut self, why: AskWhy) -> Decision {
        let reason = reason::ask(self.s, why);
        self.ask_for(why, None, None, reason)
    }

    fn ask_for(
        &mut self,
        why: AskWhy,
        proposed: Option<Proposed>,
        cost: Option<CostEstimate>,
        reason: String,
    ) -> Decision {
        if let Some(decision) = self.park(why) {
            return decision;
        }
        if let Some(offer) = self
            .s
            .repair
            .filter(|offer| repair::is_last_resort(offer, why))
        {
            return self.ask_to_repair(offer);
        }
        let trigger = match (why, self.kind) {
            (AskWhy::DearerModel, _) => Trigger::CostConfirmation,
            (AskWhy::Repair, _) => Trigger::Recovery,
            (_, Kind::Stuck) => Trigger::Stuck,
            _ => Trigger::Hiccup,
        };
        let strategy = proposed.as_ref().map(|one| one.strategy.clone());
        let action = Chosen::Ask {
            trigger,
            why,
            proposed,
        };
        Decision {
            strategy,
            cost,
            ..self.made(Some(Level::Escalate), action, reason)
        }
    }

    fn made(&mut self, level: Option<Level>, action: Chosen, reason: String) -> Decision {
        Decision {
            kind: self.kind,
            level,
            action,
            strategy: None,
            reason,
            attempt: 0,
            of: self.limits.retries,
            fell_through: std::mem::take(&mut self.fell),
            cost: None,
            stated: false,
            give_up_at: None,
            wait_for: WaitFor::Retry,
            draw: self.draw,
            at: self.s.now,
        }
    }

    fn fall(&mut self, strategy: impl Into<Cow<'static, str>>, why: impl Into<Cow<'static, str>>) {
        self.fell.push(FellThrough {
            strategy: strategy.into(),
            why: why.into(),
        });
    }
}

#[cfg(test)]
mod tests;
