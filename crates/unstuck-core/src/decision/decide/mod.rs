//! The decision about a failure: the four levels, in order.
//!
//! - Transient failures are retried unchanged up to their limit (level 1), then the kind's chain is tried (level 2),
//!   then a human is asked (level 4). The limit is a number of retries, or the time without progress; after that time
//!   agents are parked and probed before a human is asked.
//! - Systematic failures start with the chain; fatal ones escalate at once.
//! - An unknown failure gets one plain retry.
//! - A matching repair that may run comes before any other strategy; one that needs approval comes last, unless its
//!   proposer waits for an answer.
//! - `code` and `none` are not handled, and neither is anything while the policy is off.
//! - Level 3 is only chosen by a human: it is never decided here.
//!
//! Both levels 1 and 2 have the retry limit of the kind. No strategy is used twice for one kind in an episode, unless
//! the limit for this kind was explicitly set higher than the length of the chain: then the chain starts again.

mod action_selection;
mod alternative;
mod decision_types;
mod delay;
mod input;
mod reason;
mod repair;
mod time_bounded_retries;

pub use action_selection::{EligibleAction, RecoveryActionSelection};
pub use decision_types::{
    ConcreteAttemptChange, Decision, EscalationReason, EscalationTrigger, NoRecoveryReason,
    ProposedAction, RecoveryAction, SkippedStrategy, WaitPurpose,
};
pub use input::{
    AvailableRepair, CurrentModel, DecisionInput, NetworkStatus, OperationRepeatability,
    RepairPermission, RetryCapabilities, RetryChangeCapability, SessionLimits,
    StrategyDefinitionLookup,
};

use std::borrow::Cow;

use crate::failure::{Category, FailureKind, RecoveryLevel};

use super::model_catalog::CostEstimate;
use super::randomness::RandomDraw;
use super::retry_policy::RetryLimits;

/// The reason shown if an operation may have had an effect and is not retried.
const MAY_HAVE_HAD_EFFECT: &str = "the attempt may already have had an effect";

/// Decides what to do about a failure.
///
/// It is a pure function: the same input and the same draw give the same decision.
pub fn decide(situation: &DecisionInput<'_>, draw: RandomDraw) -> Decision {
    let s = situation;
    let place = super::retry_policy::RetryLimitKey {
        kind: s.diagnosis.kind,
        layer: s.diagnosis.layer,
        tool: s.tool,
    };
    let mut deciding = DecisionBuilder {
        input: s,
        kind: s.diagnosis.kind,
        limits: time_bounded_retries::effective_limits(
            s,
            s.policy.limits_at(place, s.kind_knowledge),
        ),
        draw,
        is_out_of_time: false,
        skipped: Vec::new(),
    };
    let mut decision = deciding.run();
    decision.selection = deciding.selection(&decision);
    decision
}

/// Builds a decision.
struct DecisionBuilder<'a, 's> {
    input: &'s DecisionInput<'a>,
    kind: FailureKind,
    limits: RetryLimits,
    draw: RandomDraw,
    /// True if it would be retried unchanged if there were time left.
    is_out_of_time: bool,
    skipped: Vec<SkippedStrategy>,
}

impl DecisionBuilder<'_, '_> {
    fn run(&mut self) -> Decision {
        if let Some(why) = self.stop_reason() {
            return self.stop(why);
        }
        if let Some(decision) = self.wait_for_network() {
            return decision;
        }
        if self.input.history.counted_execution_count() >= self.input.session_limits.attempts {
            return self.escalate(EscalationReason::MaxAttempts);
        }
        let repair_first =
            self.kind.category() != Category::Transient || self.input.kind_knowledge.repair_first;
        if repair_first && let Some(decision) = self.try_repair() {
            return decision;
        }
        match self.input.diagnosis.level {
            Some(RecoveryLevel::Same) => self.decide_same(),
            // Another component has made the retries; this checks if the time for them is over.
            Some(RecoveryLevel::Alternative) if self.has_external_timed_retries() => {
                self.decide_same()
            }
            Some(RecoveryLevel::Alternative) => self.decide_alternative(),
            // The number of retries was set for this kind explicitly, so it applies.
            _ if self.limits.is_explicit && self.limits.retries > 0 => self.decide_same(),
            _ => self.escalate(EscalationReason::Fatal),
        }
    }

    fn stop_reason(&self) -> Option<NoRecoveryReason> {
        match self.kind.category() {
            Category::None => Some(NoRecoveryReason::NotAFailure),
            Category::Code => Some(NoRecoveryReason::Code),
            _ if self.input.repeatable == OperationRepeatability::OuterRetries => {
                Some(NoRecoveryReason::OuterRetries)
            }
            _ if self.input.repeatable == OperationRepeatability::Interactive => {
                Some(NoRecoveryReason::Interactive)
            }
            _ if !self.input.policy.enabled => Some(NoRecoveryReason::PolicyOff),
            _ if self.input.repeatable == OperationRepeatability::InputNotReplayable => {
                Some(NoRecoveryReason::InputNotReplayable)
            }
            _ => None,
        }
    }

    /// Level 1: retries unchanged, while that is allowed.
    fn decide_same(&mut self) -> Decision {
        if self.is_model_switch_due()
            && let Some(decision) = self.try_model_switch()
        {
            return decision;
        }
        match self.same_refusal() {
            Some(why) => self.decide_after_same(why),
            None => self.retry(self.same_retry_count() + 1),
        }
    }

    fn same_retry_count(&self) -> u32 {
        let history = self.input.history;
        match self.limits.give_up_after {
            Some(_) => history.retries_without_progress(self.kind),
            None => history.retry_count_at(self.kind, RecoveryLevel::Same),
        }
    }

    /// Returns why an unchanged retry is not allowed; none if it is.
    fn same_refusal(&mut self) -> Option<Cow<'static, str>> {
        let used = self.same_retry_count();
        if self.input.repeatable == OperationRepeatability::Unsafe {
            Some(Cow::Borrowed(MAY_HAVE_HAD_EFFECT))
        } else if !self.input.policy.is_retryable(self.kind) {
            Some(Cow::Borrowed(
                "the policy does not retry this kind unchanged",
            ))
        } else if let Some(limit) = self.limits.give_up_after {
            self.check_time_limit(limit).map(Cow::Owned)
        } else if used >= self.limits.retries {
            Some(Cow::Owned(format!(
                "{used} of {} retries used",
                self.limits.retries
            )))
        } else {
            None
        }
    }

    fn decide_after_same(&mut self, why: Cow<'static, str>) -> Decision {
        self.skip("same", why);
        if self.kind.category() == Category::Transient
            && !self.input.kind_knowledge.repair_first
            && let Some(decision) = self.try_repair()
        {
            return decision;
        }
        let unsafe_to_repeat = self.input.repeatable == OperationRepeatability::Unsafe;
        match self.kind.category() {
            Category::Unknown if unsafe_to_repeat => self.escalate(EscalationReason::NotRepeatable),
            Category::Unknown | Category::Fatal => self.escalate(EscalationReason::Exhausted),
            _ => self.decide_alternative(),
        }
    }

    fn retry(&mut self, n: u32) -> Decision {
        let wait = delay::retry_delay(self.input, &self.limits, self.draw);
        if let Some(why) = delay::exceeded_limit(self.input, &wait) {
            return self.escalate(why);
        }
        let bound = self.retry_bound(n);
        let reason = reason::retry(self.input, &wait, bound);
        let action = RecoveryAction::Retry {
            delay: wait.delay,
            until: self.input.now.after(wait.delay),
        };
        Decision {
            attempt: n,
            max_attempts: match bound {
                time_bounded_retries::RetryBound::Count { limit: of, .. } => of,
                time_bounded_retries::RetryBound::Time { .. } => 0,
            },
            is_stated_reset: wait.is_reset,
            give_up_at: bound.ends_at(self.input.now),
            ..self.finish(Some(RecoveryLevel::Same), action, reason)
        }
    }

    fn stop(&mut self, why: NoRecoveryReason) -> Decision {
        let reason = reason::stop(self.input, why);
        self.finish(None, RecoveryAction::Stop { why }, reason)
    }

    /// Level 4: escalates to a human.
    fn escalate(&mut self, why: EscalationReason) -> Decision {
        let reason = reason::escalation(self.input, why);
        self.escalate_with(why, None, None, reason)
    }

    fn escalate_with(
        &mut self,
        why: EscalationReason,
        proposed: Option<ProposedAction>,
        cost: Option<CostEstimate>,
        reason: String,
    ) -> Decision {
        if let Some(decision) = self.park(why) {
            return decision;
        }
        if let Some(offer) = self
            .input
            .repair
            .filter(|offer| repair::is_last_resort(offer, why))
        {
            return self.escalate_repair(offer);
        }
        let trigger = match (why, self.kind) {
            (EscalationReason::CostlierModel, _) => EscalationTrigger::CostConfirmation,
            (EscalationReason::Repair, _) => EscalationTrigger::Recovery,
            (_, FailureKind::Stuck) => EscalationTrigger::Stuck,
            _ => EscalationTrigger::Hiccup,
        };
        let strategy = proposed.as_ref().map(|one| one.strategy.clone());
        let action = RecoveryAction::Escalate {
            trigger,
            why,
            proposed,
        };
        Decision {
            strategy,
            cost,
            ..self.finish(Some(RecoveryLevel::Escalate), action, reason)
        }
    }

    fn finish(
        &mut self,
        level: Option<RecoveryLevel>,
        action: RecoveryAction,
        reason: String,
    ) -> Decision {
        Decision {
            kind: self.kind,
            level,
            action,
            strategy: None,
            reason,
            attempt: 0,
            max_attempts: self.limits.retries,
            skipped: std::mem::take(&mut self.skipped),
            cost: None,
            is_stated_reset: false,
            give_up_at: None,
            wait_purpose: WaitPurpose::Retry,
            selection: RecoveryActionSelection::default(),
            draw: self.draw,
            decided_at: self.input.now,
        }
    }

    fn skip(&mut self, strategy: impl Into<Cow<'static, str>>, why: impl Into<Cow<'static, str>>) {
        self.skipped.push(SkippedStrategy {
            strategy: strategy.into(),
            why: why.into(),
        });
    }
}

#[cfg(test)]
mod tests;
