//! Level 2: tries the kind's strategies in order until one is feasible.

use std::borrow::Cow;
use std::time::Duration;

use crate::decision::model_catalog::CostEstimate;
use crate::decision::strategy_ranking::{self, RankedStrategy};
use crate::failure::{FailureLayer, RecoveryLevel};
use crate::knowledge::{AttemptChange, ReplacementModelChoice, Strategy};

use super::decision_types::{
    ConcreteAttemptChange, Decision, EscalationReason, ProposedAction, RecoveryAction,
};
use super::input::{CurrentModel, DecisionInput, OperationRepeatability, RetryChangeCapability};
use super::{DecisionBuilder, MAY_HAVE_HAD_EFFECT, delay, reason};

/// The new timeout when a strategy increases one that was not set.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1800);

/// The risk that always requires approval.
const SAFETY_RISK: &str = "safety";

/// A feasible strategy with its concrete changes.
struct FeasibleStrategy<'a> {
    id: &'a str,
    strategy: &'a Strategy,
    changes: Vec<ConcreteAttemptChange>,
    cost: Option<CostEstimate>,
}

impl<'a> DecisionBuilder<'a, '_> {
    /// Chooses the first feasible strategy of the chain, or escalates.
    pub(super) fn decide_alternative(&mut self) -> Decision {
        let used = self.chain_use_count();
        if used >= self.limits.retries {
            self.skip(
                "chain",
                format!("{used} of {} strategies used", self.limits.retries),
            );
            return self.escalate_exhausted();
        }
        let ranked = self.ranked_chain();
        match self.first_feasible(&ranked) {
            Some(way) if way.strategy.requires_human => self.escalate_by_chain(way),
            Some(way) => self.use_strategy(way, used + 1),
            None if self.input.repeatable == OperationRepeatability::Unsafe => {
                self.escalate(EscalationReason::NotRepeatable)
            }
            None => self.escalate(EscalationReason::Exhausted),
        }
    }

    /// Escalates because the limit is reached, using the chain's own escalation.
    fn escalate_exhausted(&mut self) -> Decision {
        let mut ranked = self.ranked_chain();
        ranked.retain(|one| self.strategy(one).is_some_and(|one| one.requires_human));
        let proposed = self.first_feasible(&ranked).map(|way| ProposedAction {
            strategy: way.id.to_owned(),
            changes: way.changes,
        });
        let reason = reason::escalation(self.input, EscalationReason::Exhausted);
        self.escalate_with(EscalationReason::Exhausted, proposed, None, reason)
    }

    /// True if the policy requires a model switch before any other strategy.
    pub(super) fn is_model_switch_due(&self) -> bool {
        self.input.policy.auto_switch_model
            && self.input.history.retry_count(self.kind)
                >= self.input.policy.switch_model_after_retries
    }

    /// Chooses the chain's model switch, if it has one that is feasible.
    pub(super) fn try_model_switch(&mut self) -> Option<Decision> {
        let used = self.chain_use_count();
        if used >= self.limits.retries {
            return None;
        }
        let mut ranked = self.ranked_chain();
        ranked.retain(|one| {
            self.strategy(one)
                .is_some_and(|one| switches_model(one) && !one.requires_human)
        });
        let before = self.skipped.len();
        let way = self.first_feasible(&ranked);
        if way.is_none() {
            // Walking the whole chain will record it again if needed.
            self.skipped.truncate(before);
        }
        way.map(|way| self.use_strategy(way, used + 1))
    }

    /// Returns how often the chain was used for this kind.
    pub(super) fn chain_use_count(&self) -> u32 {
        let history = self.input.history;
        history.retry_count_at(self.kind, RecoveryLevel::Alternative)
    }

    /// True if a strategy could be used without asking a human.
    pub(super) fn is_automatic(&self, one: &RankedStrategy<'a>) -> bool {
        let uses = self
            .input
            .history
            .strategy_use_count(self.kind, &one.entry.strategy);
        let is_left = uses == 0 || self.limits.is_explicit;
        is_left
            && self.check_feasible(&one.entry.strategy).is_ok_and(|way| {
                !way.strategy.requires_human && !self.needs_cost_confirmation(&way)
            })
    }

    pub(super) fn ranked_chain(&self) -> Vec<RankedStrategy<'a>> {
        let s = self.input;
        let asks = |id: &str| {
            s.strategies
                .strategy(id)
                .is_some_and(|one| one.requires_human)
        };
        let layer = s.diagnosis.layer;
        let mut ranked = strategy_ranking::rank_chain(
            self.kind,
            layer,
            &s.kind_knowledge.chain,
            s.success_rates,
            asks,
        );
        if self.is_model_switch_due() || self.is_last_strategy() {
            ranked.sort_by_key(|one| !self.strategy(one).is_some_and(switches_model));
        }
        ranked
    }

    /// True if only one strategy is left. If the policy switches models automatically, the last one is reserved for the
    /// model: a kind with few strategies would never reach it otherwise.
    fn is_last_strategy(&self) -> bool {
        let used = self.chain_use_count();
        self.input.policy.auto_switch_model && used > 0 && used + 1 == self.limits.retries
    }

    fn strategy(&self, one: &RankedStrategy<'_>) -> Option<&'a Strategy> {
        self.input.strategies.strategy(&one.entry.strategy)
    }

    /// Returns the first feasible strategy among the least used ones; only unused ones unless the limit was set for
    /// this kind explicitly. Skipped strategies are recorded.
    fn first_feasible(&mut self, ranked: &[RankedStrategy<'a>]) -> Option<FeasibleStrategy<'a>> {
        let mut again: Option<(u32, FeasibleStrategy<'a>)> = None;
        let mut asking = None;
        for one in ranked {
            let id = &*one.entry.strategy;
            let uses = self.input.history.strategy_use_count(self.kind, id);
            match self.check_feasible(id) {
                Err(why) => self.skip(id.to_owned(), why),
                Ok(way) if way.strategy.requires_human => asking = asking.or(Some(way)),
                Ok(way) if uses == 0 => return Some(way),
                Ok(way) if self.limits.is_explicit => {
                    if again.as_ref().is_none_or(|(least, _)| uses < *least) {
                        again = Some((uses, way));
                    }
                }
                Ok(_) => self.skip(id.to_owned(), "already tried"),
            }
        }
        again.map(|(_, way)| way).or(asking)
    }

    /// Returns the concrete changes of a strategy, or the reason why it is not feasible.
    fn check_feasible(&self, id: &'a str) -> Result<FeasibleStrategy<'a>, Cow<'static, str>> {
        let strategy = self.input.strategies.strategy(id);
        let strategy = strategy.ok_or("unknown strategy")?;
        self.check_allowed(strategy)?;
        let mut way = FeasibleStrategy {
            id,
            strategy,
            changes: Vec::with_capacity(strategy.changes.len()),
            cost: None,
        };
        for change in &strategy.changes {
            self.apply_change(change, &mut way)?;
        }
        Ok(way)
    }

    /// Checks that the user and the caller allow a strategy.
    fn check_allowed(&self, strategy: &Strategy) -> Result<(), Cow<'static, str>> {
        let s = self.input;
        if strategy.requires_human {
            return Ok(());
        }
        let safety = |risk: &String| risk == SAFETY_RISK;
        if strategy.risks.iter().any(safety) {
            return Err("working around a safety refusal needs your approval".into());
        }
        let unchanged = strategy.changes.is_empty();
        let steps =
            unchanged && matches!(s.diagnosis.layer, FailureLayer::Tool | FailureLayer::Infra);
        if steps && !s.capabilities.has(RetryChangeCapability::Steps) {
            return Err(RetryChangeCapability::Steps.missing_reason().into());
        }
        if !steps && s.repeatable == OperationRepeatability::Unsafe {
            return Err(MAY_HAVE_HAD_EFFECT.into());
        }
        // Without steps and changes it would be level 1 under another name.
        let was_tried = s.history.retry_count_at(self.kind, RecoveryLevel::Same) > 0
            || is_retried_externally(s);
        if !steps && unchanged && was_tried {
            return Err("already retried unchanged".into());
        }
        let mut needed = strategy
            .changes
            .iter()
            .filter_map(RetryChangeCapability::required_by);
        match needed.find(|needed| !s.capabilities.has(*needed)) {
            Some(lacking) => Err(lacking.missing_reason().into()),
            None => Ok(()),
        }
    }

    fn apply_change(
        &self,
        change: &AttemptChange,
        way: &mut FeasibleStrategy<'_>,
    ) -> Result<(), Cow<'static, str>> {
        way.changes.push(match change {
            AttemptChange::Prompt(template) => ConcreteAttemptChange::Prompt(template.clone()),
            AttemptChange::Timeout(factor) => self.longer_timeout(*factor),
            AttemptChange::OutputLimit(factor) => {
                ConcreteAttemptChange::OutputLimit { factor: *factor }
            }
            AttemptChange::Model(choice) => {
                let (changed, cost) = self.switch_model(*choice)?;
                way.cost = Some(cost);
                changed
            }
            AttemptChange::Conversation(choice) => ConcreteAttemptChange::Conversation(*choice),
            // A matching repair is tried before the chain.
            AttemptChange::Repair => return Err("no applicable repair can run here".into()),
        });
        Ok(())
    }

    fn longer_timeout(&self, factor: f64) -> ConcreteAttemptChange {
        let factor = self.limits.timeout_multiplier.unwrap_or(factor);
        ConcreteAttemptChange::Timeout {
            from_seconds: self.input.timeout.map(|time| time.as_secs()),
            // A fraction of a second is rounded up, so that a short timeout increases too.
            to_seconds: self
                .input
                .timeout
                .map_or(DEFAULT_TIMEOUT.as_secs(), |time| {
                    (time.as_secs_f64() * factor).ceil().max(1.0) as u64
                }),
        }
    }

    fn switch_model(
        &self,
        choice: ReplacementModelChoice,
    ) -> Result<(ConcreteAttemptChange, CostEstimate), Cow<'static, str>> {
        if !self.input.policy.auto_switch_model {
            return Err("the policy does not switch models automatically".into());
        }
        let Some(CurrentModel {
            id,
            catalog,
            expected,
        }) = self.input.model
        else {
            return Err("the current model is unknown".into());
        };
        let to = catalog
            .choose(id, choice)
            .map_err(|none| Cow::Owned(none.to_string()))?;
        let cost = catalog.cost_difference(id, to, expected);
        let changed = ConcreteAttemptChange::Model {
            from: id.to_owned(),
            to: to.to_owned(),
        };
        Ok((changed, cost))
    }

    fn use_strategy(&mut self, way: FeasibleStrategy<'_>, n: u32) -> Decision {
        if let Some(decision) = self.confirm_cost(&way) {
            return decision;
        }
        let wait = delay::retry_delay(self.input, &self.limits, self.draw);
        if let Some(why) = delay::exceeded_limit(self.input, &wait) {
            return self.escalate(why);
        }
        let of = self.limits.retries;
        let reason = reason::change(self.input, way.strategy, &way.changes, &wait, (n, of));
        let action = RecoveryAction::Change {
            changes: way.changes,
            delay: wait.delay,
            until: self.input.now.after(wait.delay),
        };
        Decision {
            strategy: Some(way.id.to_owned()),
            attempt: n,
            cost: way.cost,
            is_stated_reset: wait.is_reset,
            ..self.finish(Some(RecoveryLevel::Alternative), action, reason)
        }
    }

    fn needs_cost_confirmation(&self, way: &FeasibleStrategy<'_>) -> bool {
        let Some(cost) = &way.cost else { return false };
        let more = cost.usd();
        let capped = more.is_some_and(|usd| usd > 0.0 && delay::is_over_budget(self.input, usd));
        let spent = self.input.history.extra_cost();
        capped || self.input.policy.needs_cost_confirmation(spent, more)
    }

    /// Escalates if a more expensive model exceeds the cost limit without approval, or if its cost is unknown.
    fn confirm_cost(&mut self, way: &FeasibleStrategy<'_>) -> Option<Decision> {
        if !self.needs_cost_confirmation(way) {
            return None;
        }
        let cost = way.cost.as_ref()?;
        let (from, to) = way
            .changes
            .iter()
            .find_map(ConcreteAttemptChange::model_switch)?;
        let reason = reason::costlier_model(self.input, from, to, cost);
        let proposed = ProposedAction {
            strategy: way.id.to_owned(),
            changes: way.changes.clone(),
        };
        let cost = Some(cost.clone());
        Some(self.escalate_with(
            EscalationReason::CostlierModel,
            Some(proposed),
            cost,
            reason,
        ))
    }

    fn escalate_by_chain(&mut self, way: FeasibleStrategy<'_>) -> Decision {
        let title = &self.input.kind_knowledge.title;
        let reason = format!("{title}: no automatic recovery left.");
        let proposed = ProposedAction {
            strategy: way.id.to_owned(),
            changes: way.changes,
        };
        self.escalate_with(EscalationReason::Chain, Some(proposed), None, reason)
    }
}

fn switches_model(strategy: &Strategy) -> bool {
    let model = |change: &AttemptChange| matches!(change, AttemptChange::Model(_));
    strategy.changes.iter().any(model)
}

impl DecisionBuilder<'_, '_> {
    /// True if retries are bounded by time and some of them were made by another component.
    pub(super) fn has_external_timed_retries(&self) -> bool {
        self.limits.give_up_after.is_some() && is_retried_externally(self.input)
    }
}

/// True if another component, such as a gateway, has used up the unchanged retries: the failure then has another level
/// than the first level of its kind.
fn is_retried_externally(s: &DecisionInput<'_>) -> bool {
    let usual = s.kind_knowledge.level(s.diagnosis.kind, s.diagnosis.layer);
    usual == Some(RecoveryLevel::Same) && s.diagnosis.level == Some(RecoveryLevel::Alternative)
}
