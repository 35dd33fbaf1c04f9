//! The decision as a value that can be stored, shown and replayed.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::decision::model_catalog::{CostEstimate, ModelSwitch, ModelSwitchReason};
use crate::decision::randomness::RandomDraw;
use crate::decision::recovery_history::{RetryAttempt, RetryRecord};
use crate::failure::{FailureKind, RecoveryLevel};
use crate::knowledge::ConversationMode;
use crate::time::Timestamp;

use super::action_selection::RecoveryActionSelection;

/// A decision about a failure, with its reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The failure kind.
    pub kind: FailureKind,
    /// The recovery level; none if nothing is done.
    pub level: Option<RecoveryLevel>,
    /// The action.
    pub action: RecoveryAction,
    /// The strategy from the kind's chain, if one was chosen.
    pub strategy: Option<String>,
    /// The reason, in one sentence for humans.
    pub reason: String,
    /// The number of the retry at this level, from 1; 0 if there is none.
    pub attempt: u32,
    /// The number of retries at this level; 0 if they are bounded by time.
    #[serde(rename = "max_attempts", alias = "of")]
    pub max_attempts: u32,
    /// The skipped strategies with reasons.
    #[serde(rename = "skipped", alias = "fell_through")]
    pub skipped: Vec<SkippedStrategy>,
    /// The expected extra cost.
    pub cost: Option<CostEstimate>,
    /// True if it waits for a reset stated by the server.
    #[serde(rename = "stated")]
    pub is_stated_reset: bool,
    /// The time at which retries end if there is no progress, if retries are bounded by time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub give_up_at: Option<Timestamp>,
    /// The purpose of the wait.
    #[serde(default, skip_serializing_if = "WaitPurpose::is_retry")]
    #[serde(rename = "purpose", alias = "wait_for")]
    pub wait_purpose: WaitPurpose,
    /// The eligible actions and the chosen one.
    #[serde(default, skip_serializing_if = "RecoveryActionSelection::is_unknown")]
    pub selection: RecoveryActionSelection,
    /// The random draw used.
    pub draw: RandomDraw,
    /// The time of the decision.
    #[serde(rename = "decided_at", alias = "at")]
    pub decided_at: Timestamp,
}

impl Decision {
    /// Returns the delay before the retry; `None` if no retry follows.
    pub fn delay(&self) -> Option<Duration> {
        match self.action {
            RecoveryAction::Retry { delay, .. } | RecoveryAction::Change { delay, .. } => {
                Some(delay)
            }
            RecoveryAction::Escalate { .. } | RecoveryAction::Stop { .. } => None,
        }
    }

    /// Returns the end of the wait before the retry; `None` if no retry follows.
    pub fn wait_until(&self) -> Option<Timestamp> {
        match self.action {
            RecoveryAction::Retry { until, .. } | RecoveryAction::Change { until, .. } => {
                Some(until)
            }
            RecoveryAction::Escalate { .. } | RecoveryAction::Stop { .. } => None,
        }
    }

    /// Returns the retry for the history; `None` if no retry follows.
    pub fn to_retry_record(&self, cost: f64) -> Option<RetryRecord> {
        Some(RetryRecord {
            kind: self.kind,
            level: self.level?,
            strategy: self.strategy.clone(),
            at: self.decided_at,
            delay: self.delay()?,
            is_stated_reset: self.is_stated_reset,
            cost,
            extra_cost: self
                .cost
                .as_ref()
                .and_then(CostEstimate::usd)
                .unwrap_or(0.0),
            is_time_bound: self.give_up_at.is_some() || self.wait_purpose != WaitPurpose::Retry,
            waited_for_network: self.wait_purpose == WaitPurpose::Network,
        })
    }
}

/// The purpose of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitPurpose {
    /// The next retry.
    #[default]
    Retry,
    /// A probe: the session is parked, since it has made no progress for too long.
    Probe,
    /// The network, which is unavailable.
    Network,
    /// The conversation, which another process uses.
    Conversation,
}

impl WaitPurpose {
    /// True if it is an ordinary retry.
    pub fn is_retry(&self) -> bool {
        *self == Self::Retry
    }
}

impl Decision {
    /// Returns the failed attempt in the form of the REST API and the session stream.
    pub fn to_retry_attempt(&self, attempt_number: u32, error_message: &str) -> RetryAttempt {
        let delay = self.delay().unwrap_or_default().as_millis();
        RetryAttempt {
            attempt_number,
            error: self.kind,
            error_message: error_message.to_owned(),
            timestamp: self.decided_at,
            delay_ms: u64::try_from(delay).unwrap_or(u64::MAX),
            succeeded: false,
        }
    }

    /// Returns the model switch in the form of the REST API and the session stream, if there is one.
    pub fn model_switch(&self) -> Option<ModelSwitch> {
        let RecoveryAction::Change { changes, .. } = &self.action else {
            return None;
        };
        let (from, to) = changes
            .iter()
            .find_map(ConcreteAttemptChange::model_switch)?;
        Some(ModelSwitch {
            from_model: from.to_owned(),
            to_model: to.to_owned(),
            reason: match self.kind {
                FailureKind::ContextLimit => ModelSwitchReason::ContextLimit,
                _ => ModelSwitchReason::AutoAfterRetries,
            },
            timestamp: self.decided_at,
            cost_estimate: self.cost.as_ref().and_then(CostEstimate::usd),
        })
    }
}

/// The action that a decision takes on a failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum RecoveryAction {
    /// Retry unchanged.
    Retry {
        /// The delay in milliseconds.
        #[serde(with = "crate::duration::millis", rename = "delay_ms")]
        delay: Duration,
        /// The end of the wait.
        until: Timestamp,
    },
    /// Retry with changes.
    Change {
        /// The changes; empty if the steps of the plan are the change.
        changes: Vec<ConcreteAttemptChange>,
        /// The delay in milliseconds.
        #[serde(with = "crate::duration::millis", rename = "delay_ms")]
        delay: Duration,
        /// The end of the wait.
        until: Timestamp,
    },
    /// Escalate to a human.
    #[serde(rename = "escalate", alias = "ask")]
    Escalate {
        /// The trigger of the escalation.
        trigger: EscalationTrigger,
        /// The reason.
        #[serde(rename = "reason_code", alias = "why")]
        why: EscalationReason,
        /// The proposed action, if there is one.
        proposed: Option<ProposedAction>,
    },
    /// Stop: return the failure to the caller unchanged.
    Stop {
        /// The reason.
        #[serde(rename = "reason_code", alias = "why")]
        why: NoRecoveryReason,
    },
}

/// A change of the next attempt with its concrete values, such as the new model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConcreteAttemptChange {
    /// Add the named prompt template.
    Prompt(String),
    /// Change the timeout.
    Timeout {
        /// The timeout so far, in seconds.
        from_seconds: Option<u64>,
        /// The new timeout, in seconds.
        to_seconds: u64,
    },
    /// Change the output limit.
    OutputLimit {
        /// The factor.
        factor: f64,
    },
    /// Switch the model.
    Model {
        /// The model so far.
        from: String,
        /// The new model.
        to: String,
    },
    /// Choose the conversation.
    #[serde(rename = "session")]
    Conversation(ConversationMode),
    /// Run a repair first.
    Repair {
        /// The id of the repair in this run.
        id: String,
        /// The command.
        command: String,
    },
    /// Add a human's message.
    #[serde(rename = "message", alias = "words")]
    UserMessage(String),
    /// Replace the prompt by this text from a human.
    #[serde(rename = "prompt_text", alias = "text")]
    PromptText(String),
}

impl ConcreteAttemptChange {
    /// Returns the human's message, if that is the change.
    pub fn user_message(&self) -> Option<&str> {
        match self {
            Self::UserMessage(words) => Some(words),
            _ => None,
        }
    }

    /// Returns the old and the new model, if the model changes.
    pub fn model_switch(&self) -> Option<(&str, &str)> {
        match self {
            Self::Model { from, to } => Some((from, to)),
            _ => None,
        }
    }
}

/// An action proposed for approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProposedAction {
    /// The strategy.
    pub strategy: String,
    /// The changes.
    pub changes: Vec<ConcreteAttemptChange>,
}

impl ProposedAction {
    /// Returns the id of the repair, if it is one.
    pub fn repair_id(&self) -> Option<&str> {
        self.changes.iter().find_map(|change| match change {
            ConcreteAttemptChange::Repair { id, .. } => Some(id.as_str()),
            _ => None,
        })
    }
}

/// A skipped strategy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedStrategy {
    /// The strategy, or `same` for the unchanged retry.
    pub strategy: Cow<'static, str>,
    /// The reason why it was skipped.
    #[serde(rename = "reason", alias = "why")]
    pub why: Cow<'static, str>,
}

/// The trigger of an escalation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EscalationTrigger {
    /// A failure that cannot be recovered from without a human.
    Hiccup,
    /// An action that exceeds the cost limit without approval.
    CostConfirmation,
    /// An agent stuck in a loop.
    Stuck,
    /// A repair that needs approval.
    Recovery,
}

/// The reason of an escalation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EscalationReason {
    /// A retry cannot help.
    Fatal,
    /// All permitted strategies have failed.
    Exhausted,
    /// It is unknown if the operation is safe to repeat.
    NotRepeatable,
    /// The chain requires a human.
    Chain,
    /// The stated wait exceeds the limit without approval.
    WaitTooLong,
    /// The time limit is reached.
    MaxElapsed,
    /// The limit of attempts is reached.
    MaxAttempts,
    /// The cost limit is reached.
    MaxCost,
    /// A more expensive model exceeds the cost limit without approval.
    #[serde(rename = "costlier_model", alias = "dearer_model")]
    CostlierModel,
    /// A proposed repair needs approval.
    Repair,
    /// The project allows more than its owner has trusted.
    Trust,
}

/// The reason why nothing is done about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoRecoveryReason {
    /// The policy is off.
    PolicyOff,
    /// The normal work of an agent or developer, whose own loop continues.
    Code,
    /// It is not a failure.
    NotAFailure,
    /// Its input was too large to be kept for another attempt.
    #[serde(rename = "input_not_replayable", alias = "input_spent")]
    InputNotReplayable,
    /// An outer unstuck process retries it.
    OuterRetries,
    /// A human uses it interactively at a terminal.
    Interactive,
}
