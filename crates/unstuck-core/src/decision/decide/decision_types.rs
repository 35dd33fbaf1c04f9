//! What was decided, as a value that can be stored, shown and replayed.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::decision::history::{RetryAttempt, RetryRecord};
use crate::decision::model::{CostEstimate, ModelSwitch, ModelSwitchReason};
use crate::decision::randomness::RandomDraw;
use crate::failure::{Kind, Level};
use crate::knowledge::ConversationMode;
use crate::time::Timestamp;

/// What is done about a failure, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The kind of failure that it is an answer to.
    pub kind: Kind,
    /// The level; none where nothing is ours to do.
    pub level: Option<Level>,
    /// What is done.
    pub action: Action,
    /// The strategy of the kind's chain, where one was chosen.
    pub strategy: Option<String>,
    /// Why, in one sentence for a person.
    pub reason: String,
    /// Which retry at this level this is, from 1; 0 where there is none.
    pub attempt: u32,
    /// How many retries this level has; 0 where time bounds them.
    #[serde(rename = "of")]
    pub max_attempts: u32,
    /// What was passed over, and why.
    #[serde(rename = "fell_through")]
    pub skipped: Vec<SkippedStrategy>,
    /// What it is expected to cost more.
    pub cost: Option<CostEstimate>,
    /// Whether the wait is one for a reset that the server stated.
    #[serde(rename = "stated")]
    pub is_stated_reset: bool,
    /// When it is given up if there is no progress until then, where time bounds the retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub give_up_at: Option<Timestamp>,
    /// What is waited for.
    #[serde(default, skip_serializing_if = "WaitPurpose::is_retry")]
    #[serde(rename = "wait_for")]
    pub wait_purpose: WaitPurpose,
    /// The chance that it was made with.
    pub draw: RandomDraw,
    /// When it was made.
    #[serde(rename = "at")]
    pub decided_at: Timestamp,
}

impl Decision {
    /// How long is waited first; none where no retry follows.
    pub fn delay(&self) -> Option<Duration> {
        match self.action {
            Action::Retry { delay, .. } | Action::Change { delay, .. } => Some(delay),
            Action::Escalate { .. } | Action::Stop { .. } => None,
        }
    }

    /// When the wait before the retry ends; none where no retry follows.
    pub fn wait_until(&self) -> Option<Timestamp> {
        match self.action {
            Action::Retry { until, .. } | Action::Change { until, .. } => Some(until),
            Action::Escalate { .. } | Action::Stop { .. } => None,
        }
    }

    /// The retry that follows from it, for the history; none where no retry follows.
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

/// What a wait is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitPurpose {
    /// The next try.
    #[default]
    Retry,
    /// A rare probe: the session is parked, since there was no progress for too long.
    Probe,
    /// The network, which is gone as a whole.
    Network,
}

impl WaitPurpose {
    /// Whether it is the usual wait.
    pub fn is_retry(&self) -> bool {
        *self == Self::Retry
    }
}

impl Decision {
    /// The failed try that it is an answer to, as the REST API and the session stream tell it.
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

    /// The change of the model that it brings, as the REST API and the session stream tell it.
    pub fn model_switch(&self) -> Option<ModelSwitch> {
        let Action::Change { changes, .. } = &self.action else {
            return None;
        };
        let (from, to) = changes.iter().find_map(ConcreteChange::model_switch)?;
        Some(ModelSwitch {
            from_model: from.to_owned(),
            to_model: to.to_owned(),
            reason: match self.kind {
                Kind::ContextLimit => ModelSwitchReason::ContextLimit,
                _ => ModelSwitchReason::AutoAfterRetries,
            },
            timestamp: self.decided_at,
            cost_estimate: self.cost.as_ref().and_then(CostEstimate::usd),
        })
    }
}

/// What is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "do")]
pub enum Action {
    /// The same again.
    Retry {
        /// How long is waited first, in milliseconds.
        #[serde(with = "crate::duration::millis", rename = "delay_ms")]
        delay: Duration,
        /// When the wait is over.
        until: Timestamp,
    },
    /// Again, with changes.
    Change {
        /// What is changed; empty where the plan's steps are the change.
        changes: Vec<ConcreteChange>,
        /// How long is waited first, in milliseconds.
        #[serde(with = "crate::duration::millis", rename = "delay_ms")]
        delay: Duration,
        /// When the wait is over.
        until: Timestamp,
    },
    /// A person is asked.
    #[serde(rename = "ask")]
    Escalate {
        /// What kind of question it is.
        trigger: EscalationTrigger,
        /// Why.
        why: EscalationReason,
        /// What is done if they agree, where there is a proposal.
        proposed: Option<ProposedAction>,
    },
    /// Nothing: what failed is passed on as it is.
    Stop {
        /// Why.
        why: StopReason,
    },
}

/// One concrete change about the next attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConcreteChange {
    /// The named prompt template is added.
    Prompt(String),
    /// The allowed time becomes another.
    Timeout {
        /// The time so far, in seconds.
        from_seconds: Option<u64>,
        /// The time from now on, in seconds.
        to_seconds: u64,
    },
    /// The allowed length of the output becomes another.
    OutputLimit {
        /// What it is multiplied by.
        factor: f64,
    },
    /// The model becomes another.
    Model {
        /// The model so far.
        from: String,
        /// The model from now on.
        to: String,
    },
    /// The conversation that it belongs to.
    #[serde(rename = "session")]
    Conversation(ConversationMode),
    /// A repair is run first.
    Repair {
        /// What it is called in this run.
        id: String,
        /// The command.
        command: String,
    },
    /// A person's words are added.
    #[serde(rename = "words")]
    UserMessage(String),
    /// The prompt becomes this text, as a person has written it.
    #[serde(rename = "text")]
    PromptText(String),
}

impl ConcreteChange {
    /// What a person said, where that is the change.
    pub fn user_message(&self) -> Option<&str> {
        match self {
            Self::UserMessage(words) => Some(words),
            _ => None,
        }
    }

    /// The models before and after, where the model changes.
    pub fn model_switch(&self) -> Option<(&str, &str)> {
        match self {
            Self::Model { from, to } => Some((from, to)),
            _ => None,
        }
    }
}

/// What is done if a person agrees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProposedAction {
    /// The strategy.
    pub strategy: String,
    /// What it changes.
    pub changes: Vec<ConcreteChange>,
}

impl ProposedAction {
    /// The repair that it is, by what it is called in its run.
    pub fn repair_id(&self) -> Option<&str> {
        self.changes.iter().find_map(|change| match change {
            ConcreteChange::Repair { id, .. } => Some(id.as_str()),
            _ => None,
        })
    }
}

/// A way that was passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedStrategy {
    /// The strategy, or `same` for the unchanged retry.
    pub strategy: Cow<'static, str>,
    /// Why it was passed over.
    pub why: Cow<'static, str>,
}

/// What kind of question a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EscalationTrigger {
    /// Something failed and cannot be helped without a person.
    Hiccup,
    /// Something would cost more than may be spent without asking.
    CostConfirmation,
    /// An agent goes in circles.
    Stuck,
    /// A repair needs a person's word.
    Recovery,
}

/// Why a person is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EscalationReason {
    /// Trying again cannot help.
    Fatal,
    /// All that could be tried was tried.
    Exhausted,
    /// It is not known whether it may be done twice.
    NotRepeatable,
    /// The chain says that a person is needed.
    Chain,
    /// The stated wait is longer than may be waited without asking.
    WaitTooLong,
    /// The allowed time is over.
    MaxElapsed,
    /// The allowed number of executions is reached.
    MaxAttempts,
    /// The allowed money is spent.
    MaxCost,
    /// A dearer model costs more than may be spent without asking.
    #[serde(rename = "dearer_model")]
    CostlierModel,
    /// A repair is proposed that nobody has allowed yet.
    Repair,
    /// The project allows more than its owner has trusted.
    Trust,
}

/// Why nothing is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The policy is off.
    PolicyOff,
    /// The normal work of an agent or developer: its loop goes on.
    Code,
    /// Nothing failed.
    NotAFailure,
    /// Its input was too large to be kept for a second attempt.
    #[serde(rename = "input_spent")]
    InputNotReplayable,
    /// Another unstuck that runs this one retries it.
    OuterRetries,
    /// A person works with it at a terminal.
    Interactive,
}
