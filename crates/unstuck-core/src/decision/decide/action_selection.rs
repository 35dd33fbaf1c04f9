//! The record of what a decision was selected from, so that other policies can be evaluated on past decisions.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::failure::{Category, RecoveryLevel};

use super::decision_types::{Decision, RecoveryAction, WaitPurpose};
use super::input::{OperationRepeatability, RepairPermission};
use super::repair::REPAIR;
use super::{DecisionBuilder, delay};

/// The actions that were eligible, and the chosen one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RecoveryActionSelection {
    /// The actions that the policy and the situation allowed, in the order of preference.
    pub eligible: Vec<EligibleAction>,
    /// The chosen action.
    pub chosen: Cow<'static, str>,
    /// The probability with which it was chosen; 0 if it was not recorded. The order of preference is deterministic, so
    /// it is 1 for every decision that this version makes.
    pub probability: f64,
}

impl RecoveryActionSelection {
    /// True if the selection was not recorded.
    pub fn is_unknown(&self) -> bool {
        self.chosen.is_empty()
    }
}

/// An action that a decision could have chosen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EligibleAction {
    /// `same`, `repair`, `park`, `wait_for_network`, `escalate`, `stop`, or the id of a strategy.
    pub action: Cow<'static, str>,
    /// The estimated chance that a strategy helps, from its chain and the learned success rates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
}

impl EligibleAction {
    fn new(action: impl Into<Cow<'static, str>>, confidence: Option<f64>) -> Self {
        let action = action.into();
        Self { action, confidence }
    }
}

impl DecisionBuilder<'_, '_> {
    /// Returns the actions that this decision was selected from.
    pub(super) fn selection(&mut self, decision: &Decision) -> RecoveryActionSelection {
        let chosen = chosen_action(decision);
        let mut eligible = match &decision.action {
            RecoveryAction::Stop { .. } => Vec::new(),
            _ => self.eligible_actions(),
        };
        if eligible.iter().all(|one| one.action != chosen) {
            eligible.push(EligibleAction::new(chosen.clone(), None));
        }
        RecoveryActionSelection {
            eligible,
            chosen,
            probability: 1.0,
        }
    }

    fn eligible_actions(&mut self) -> Vec<EligibleAction> {
        let mut eligible = Vec::new();
        if self.is_automatic_allowed() {
            if self.is_repair_granted() {
                eligible.push(EligibleAction::new(REPAIR, None));
            }
            let wait = delay::retry_delay(self.input, &self.limits, self.draw);
            if delay::exceeded_limit(self.input, &wait).is_none() {
                if self.is_same_allowed() {
                    eligible.push(EligibleAction::new("same", None));
                }
                eligible.extend(self.eligible_strategies());
            }
        }
        eligible.push(EligibleAction::new("escalate", None));
        eligible
    }

    fn is_automatic_allowed(&self) -> bool {
        let executions = self.input.history.counted_execution_count();
        executions < self.input.session_limits.attempts
    }

    fn is_repair_granted(&self) -> bool {
        let granted = |permission| matches!(permission, RepairPermission::Granted { .. });
        let is_repeatable = self.input.repeatable != OperationRepeatability::Unsafe;
        is_repeatable && self.input.repair.is_some_and(|one| granted(one.permission))
    }

    fn is_same_allowed(&mut self) -> bool {
        let reaches_same = match self.input.diagnosis.level {
            Some(RecoveryLevel::Same) => true,
            Some(RecoveryLevel::Alternative) => self.has_external_timed_retries(),
            _ => self.limits.is_explicit && self.limits.retries > 0,
        };
        // The refusal notes that the time is over, which must not change the decision.
        let is_out_of_time = self.is_out_of_time;
        let is_allowed = reaches_same && self.same_refusal().is_none();
        self.is_out_of_time = is_out_of_time;
        is_allowed
    }

    fn eligible_strategies(&self) -> Vec<EligibleAction> {
        let reaches_chain = match self.input.diagnosis.level {
            Some(RecoveryLevel::Same) => {
                !matches!(self.kind.category(), Category::Unknown | Category::Fatal)
            }
            level => level == Some(RecoveryLevel::Alternative),
        };
        if !reaches_chain || self.chain_use_count() >= self.limits.retries {
            return Vec::new();
        }
        let ranked = self.ranked_chain();
        let eligible = ranked.iter().filter(|one| self.is_automatic(one));
        eligible
            .map(|one| EligibleAction::new(one.entry.strategy.clone(), Some(one.confidence)))
            .collect()
    }
}

fn chosen_action(decision: &Decision) -> Cow<'static, str> {
    match (&decision.action, decision.wait_purpose) {
        // No decision waits for a conversation: only its next attempt does.
        (RecoveryAction::Retry { .. }, WaitPurpose::Retry | WaitPurpose::Conversation) => {
            "same".into()
        }
        (RecoveryAction::Retry { .. }, WaitPurpose::Probe) => "park".into(),
        (RecoveryAction::Retry { .. }, WaitPurpose::Network) => "wait_for_network".into(),
        (RecoveryAction::Change { .. }, _) => {
            let strategy = decision.strategy.clone().unwrap_or_default();
            strategy.into()
        }
        (RecoveryAction::Escalate { .. }, _) => "escalate".into(),
        (RecoveryAction::Stop { .. }, _) => "stop".into(),
    }
}
