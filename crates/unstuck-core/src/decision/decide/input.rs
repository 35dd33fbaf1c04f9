//! All that a decision is made from.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::decision::history::RecoveryHistory;
use crate::decision::model::{ModelCatalog, TokenUsage};
use crate::decision::policy::RetryPolicy;
use crate::decision::success_rates::SuccessRates;
use crate::diagnosis::Diagnosis;
use crate::knowledge::{AttemptChange, ConversationMode, KindKnowledge, Playbook, Strategy};
use crate::time::Timestamp;

static NO_SUCCESS_RATES: SuccessRates = SuccessRates::empty();

/// All that a decision is made from; nothing else has a part in it.
#[derive(Clone, Copy)]
pub struct DecisionInput<'a> {
    /// How far to go.
    pub policy: &'a RetryPolicy,
    /// The tool that failed, for the policy's overrides per tool.
    pub tool: Option<&'a str>,
    /// What has been done so far.
    pub history: &'a RecoveryHistory,
    /// What the failure was found to be.
    pub diagnosis: &'a Diagnosis,
    /// What is known about its kind.
    pub kind_knowledge: &'a KindKnowledge,
    /// The strategies that the kind's chain names.
    pub strategies: &'a dyn StrategyLookup,
    /// What was learned about them.
    pub success_rates: &'a SuccessRates,
    /// The model in use, if one is.
    pub model: Option<CurrentModel<'a>>,
    /// The time that the attempt was allowed.
    pub timeout: Option<Duration>,
    /// The hard caps of the session.
    pub session_limits: SessionLimits,
    /// What the caller is able to change.
    pub capabilities: Capabilities,
    /// Whether what failed may be done again unchanged.
    pub repeatable: Repeatable,
    /// The repair that fits, where there is one.
    pub repair: Option<RepairOffer<'a>>,
    /// What is known about the network.
    pub network: NetworkStatus,
    /// Whether it goes on with rare probes when the time without progress is over, as agents do.
    pub can_park: bool,
    /// The present moment.
    pub now: Timestamp,
}

impl<'a> DecisionInput<'a> {
    /// A situation with the usual caps, everything possible, nothing learned, and no model known.
    pub fn new(
        policy: &'a RetryPolicy,
        history: &'a RecoveryHistory,
        diagnosis: &'a Diagnosis,
        kind_knowledge: &'a KindKnowledge,
        strategies: &'a dyn StrategyLookup,
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
            capabilities: Capabilities::ALL,
            repeatable: Repeatable::Safe,
            repair: None,
            network: NetworkStatus::default(),
            can_park: false,
            now,
        }
    }
}

/// A repair that fits the failure, with what the guard says to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepairOffer<'a> {
    /// What it is called in this run.
    pub id: &'a str,
    /// The command.
    pub command: &'a str,
    /// What may be done with it.
    pub permission: RepairPermission,
    /// Which repair of this run it would be, from 1.
    pub number: u32,
    /// How many may run by themselves.
    pub max_auto: u32,
}

/// What may be done with a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairPermission {
    /// It may run, when this time has passed since the one before.
    Granted {
        /// How long is waited first.
        after: Duration,
    },
    /// A person is asked at once: somebody proposed it, and waits for an answer.
    AskNow,
    /// A person is asked when nothing else can be tried.
    AskLast,
}

/// Where strategies are looked up by their id.
pub trait StrategyLookup {
    /// The strategy of that id.
    fn strategy(&self, id: &str) -> Option<&Strategy>;
}

impl StrategyLookup for Playbook {
    fn strategy(&self, id: &str) -> Option<&Strategy> {
        Self::strategy(self, id)
    }
}

impl StrategyLookup for BTreeMap<String, Strategy> {
    fn strategy(&self, id: &str) -> Option<&Strategy> {
        self.get(id)
    }
}

/// The model in use.
#[derive(Debug, Clone, Copy)]
pub struct CurrentModel<'a> {
    /// Its name, in any spelling.
    pub id: &'a str,
    /// The models and ladders that are known.
    pub catalog: &'a ModelCatalog,
    /// How many tokens the rest of the session is expected to use.
    pub expected: TokenUsage,
}

/// The hard caps of a session; what the policy says applies inside them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SessionLimits {
    /// How often it may be executed, the first try included; 20 by default. There always is such a cap.
    pub attempts: u32,
    /// How long it may take, every wait included.
    pub elapsed: Option<Duration>,
    /// What it may cost, in USD.
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

/// What is known about the network when something failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NetworkStatus {
    /// Nothing, or that it works.
    #[default]
    Up,
    /// There is no route, or no name at all can be resolved.
    Down,
    /// It works, but the one host that was called is not known to anybody.
    UnknownHost,
}

/// Whether what failed may be done again unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeatable {
    /// It may.
    Safe,
    /// It may have had an effect that must not happen twice.
    Unsafe,
    /// Its input was too large to be kept, so that no further attempt can get it.
    InputNotReplayable,
    /// Another unstuck that runs this one retries it.
    OuterRetries,
    /// A person works with it at a terminal, and starts it again if they want to.
    Interactive,
}

/// One thing that a caller may be able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// Change the prompt.
    Prompt,
    /// Change the allowed time.
    Timeout,
    /// Change the allowed length of the output.
    OutputLimit,
    /// Change the model.
    Model,
    /// Go on in the conversation that failed.
    Resume,
    /// Start a new conversation.
    Fresh,
    /// Carry out steps of tool calls, or hand them to the agent.
    Steps,
}

impl Capability {
    /// What a change needs; none for a repair, which is never a part of the chain's walk.
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

    /// Why a strategy that needs it is not possible without it.
    pub(super) const fn missing_reason(self) -> &'static str {
        match self {
            Self::Prompt => "the prompt cannot be changed here",
            Self::Timeout => "the allowed time cannot be changed here",
            Self::OutputLimit => "the allowed length of the output cannot be changed here",
            Self::Model => "the model cannot be changed here",
            Self::Resume => "the conversation cannot be resumed here",
            Self::Fresh => "a new conversation cannot be started here",
            Self::Steps => "steps of tool calls cannot be carried out here",
        }
    }
}

/// What a caller is able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities(u8);

impl Capabilities {
    /// Everything.
    pub const ALL: Self = Self(u8::MAX);
    /// Nothing but doing the same again.
    pub const NONE: Self = Self(0);

    /// These and one more.
    #[must_use]
    pub const fn with(self, one: Capability) -> Self {
        Self(self.0 | 1 << one as u8)
    }

    /// These without one.
    #[must_use]
    pub const fn without(self, one: Capability) -> Self {
        Self(self.0 & !(1 << one as u8))
    }

    /// Whether one is among them.
    pub const fn has(self, one: Capability) -> bool {
        self.0 & 1 << one as u8 != 0
    }
}
