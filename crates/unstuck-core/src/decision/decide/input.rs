//! The input of a decision.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::decision::model_catalog::{ModelCatalog, TokenUsage};
use crate::decision::recovery_history::EpisodeRecoveryHistory;
use crate::decision::retry_policy::RetryPolicy;
use crate::decision::success_rates::SuccessRates;
use crate::diagnosis::Diagnosis;
use crate::knowledge::{
    AttemptChange, ConversationMode, KindKnowledge, RecoveryKnowledge, Strategy,
};
use crate::time::Timestamp;

static NO_SUCCESS_RATES: SuccessRates = SuccessRates::empty();

/// The input of a decision; nothing else influences it.
#[derive(Clone, Copy)]
pub struct DecisionInput<'a> {
    /// The retry policy.
    pub policy: &'a RetryPolicy,
    /// The tool that failed, for the policy's per-tool overrides.
    pub tool: Option<&'a str>,
    /// The recovery history so far.
    pub history: &'a EpisodeRecoveryHistory,
    /// The diagnosis of the failure.
    pub diagnosis: &'a Diagnosis,
    /// The knowledge about its kind.
    pub kind_knowledge: &'a KindKnowledge,
    /// The strategies named by the kind's chain.
    pub strategies: &'a dyn StrategyDefinitionLookup,
    /// The learned success rates.
    pub success_rates: &'a SuccessRates,
    /// The current model, if there is one.
    pub model: Option<CurrentModel<'a>>,
    /// The timeout of the attempt.
    pub timeout: Option<Duration>,
    /// The hard limits of the session.
    pub session_limits: SessionLimits,
    /// The caller's capabilities.
    pub capabilities: RetryCapabilities,
    /// Repeatability of the failed operation.
    pub repeatable: OperationRepeatability,
    /// The matching repair, if there is one.
    pub repair: Option<AvailableRepair<'a>>,
    /// The status of the network.
    pub network: NetworkStatus,
    /// True if it is parked and probed after too long without progress, as agents are.
    pub can_park: bool,
    /// The current time.
    pub now: Timestamp,
}

impl<'a> DecisionInput<'a> {
    /// Creates an input with default limits, all capabilities, no learned success rates, and no known model.
    pub fn new(
        policy: &'a RetryPolicy,
        history: &'a EpisodeRecoveryHistory,
        diagnosis: &'a Diagnosis,
        kind_knowledge: &'a KindKnowledge,
        strategies: &'a dyn StrategyDefinitionLookup,
        now: Timestamp,
    ) -> Self {
        Self {
            policy,
            tool: None,
            history,
            diagnosis,
            kind_knowledge,
            strategies,
            success_rates: &NO_SUCCESS_RATES,
            model: None,
            timeout: None,
            session_limits: SessionLimits::default(),
            capabilities: RetryCapabilities::ALL,
            repeatable: OperationRepeatability::Safe,
            repair: None,
            network: NetworkStatus::default(),
            can_park: false,
            now,
        }
    }
}

/// A repair that matches the failure, with its permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AvailableRepair<'a> {
    /// The id of the repair in this run.
    pub id: &'a str,
    /// The command.
    pub command: &'a str,
    /// The permission.
    pub permission: RepairPermission,
    /// The number of the repair in this run, from 1.
    pub number: u32,
    /// The maximum number of automatic repairs.
    pub max_auto: u32,
}

/// The permission of a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairPermission {
    /// It may run after a delay since the previous one.
    Granted {
        /// The delay before it.
        after: Duration,
    },
    /// Escalate at once: its proposer waits for an answer.
    AskNow,
    /// Escalate if nothing else can be tried.
    AskLast,
}

/// A lookup of strategies by id.
pub trait StrategyDefinitionLookup {
    /// Returns the strategy with this id.
    fn strategy(&self, id: &str) -> Option<&Strategy>;
}

impl StrategyDefinitionLookup for RecoveryKnowledge {
    fn strategy(&self, id: &str) -> Option<&Strategy> {
        Self::strategy(self, id)
    }
}

impl StrategyDefinitionLookup for BTreeMap<String, Strategy> {
    fn strategy(&self, id: &str) -> Option<&Strategy> {
        self.get(id)
    }
}

/// The current model.
#[derive(Debug, Clone, Copy)]
pub struct CurrentModel<'a> {
    /// The name, in any spelling.
    pub id: &'a str,
    /// The known models and ladders.
    pub catalog: &'a ModelCatalog,
    /// The expected token usage of the rest of the session.
    pub expected: TokenUsage,
}

/// The hard limits of a session; the policy applies within them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SessionLimits {
    /// The maximum number of executions, including the first; 20 by default. This limit always exists.
    pub attempts: u32,
    /// The maximum duration, including all waits.
    pub elapsed: Option<Duration>,
    /// The maximum cost in USD.
    pub cost: Option<f64>,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            attempts: 20,
            elapsed: None,
            cost: None,
        }
    }
}

/// The status of the network at the time of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NetworkStatus {
    /// Unknown, or available.
    #[default]
    Up,
    /// There is no route, or no name can be resolved.
    Down,
    /// The network is available, but the called host name cannot be resolved.
    UnknownHost,
}

/// Repeatability of the failed operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationRepeatability {
    /// It may be repeated.
    Safe,
    /// It may have had an effect that must not happen twice.
    Unsafe,
    /// Its input was too large to be kept for another attempt.
    InputNotReplayable,
    /// An outer unstuck process retries it.
    OuterRetries,
    /// A human uses it interactively at a terminal and can start it again.
    Interactive,
}

/// A change that the caller can make to the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryChangeCapability {
    /// Change the prompt.
    Prompt,
    /// Change the timeout.
    Timeout,
    /// Change the output limit.
    OutputLimit,
    /// Change the model.
    Model,
    /// Resume the failed conversation.
    Resume,
    /// Start a new conversation.
    Fresh,
    /// Execute tool call steps, or pass them to the agent.
    Steps,
}

impl RetryChangeCapability {
    /// Returns the capability that a change requires; `None` for a repair, which is never part of the chain.
    pub fn required_by(change: &AttemptChange) -> Option<Self> {
        Some(match change {
            AttemptChange::Prompt(_) => Self::Prompt,
            AttemptChange::Timeout(_) => Self::Timeout,
            AttemptChange::OutputLimit(_) => Self::OutputLimit,
            AttemptChange::Model(_) => Self::Model,
            AttemptChange::Conversation(ConversationMode::Resume) => Self::Resume,
            AttemptChange::Conversation(ConversationMode::Fresh) => Self::Fresh,
            AttemptChange::Repair => return None,
        })
    }

    /// Returns the reason why a strategy that requires it is not feasible without it.
    pub(super) const fn missing_reason(self) -> &'static str {
        match self {
            Self::Prompt => "the prompt cannot be changed here",
            Self::Timeout => "the timeout cannot be changed here",
            Self::OutputLimit => "the output limit cannot be changed here",
            Self::Model => "the model cannot be changed here",
            Self::Resume => "the conversation cannot be resumed here",
            Self::Fresh => "a new conversation cannot be started here",
            Self::Steps => "tool call steps cannot be executed here",
        }
    }
}

/// The set of changes that the caller can make to the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryCapabilities(u8);

impl RetryCapabilities {
    /// All capabilities.
    pub const ALL: Self = Self(u8::MAX);
    /// No capabilities: only unchanged retries.
    pub const NONE: Self = Self(0);

    /// Returns the set with one more capability.
    #[must_use]
    pub const fn with(self, one: RetryChangeCapability) -> Self {
        Self(self.0 | 1 << one as u8)
    }

    /// Returns the set without one capability.
    #[must_use]
    pub const fn without(self, one: RetryChangeCapability) -> Self {
        Self(self.0 & !(1 << one as u8))
    }

    /// True if the capability is included.
    pub const fn has(self, one: RetryChangeCapability) -> bool {
        self.0 & 1 << one as u8 != 0
    }
}
