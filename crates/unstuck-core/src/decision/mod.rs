//! Stage 3: the decision about a failure: level, strategy, delay, and a reason in one sentence.
//!
//! [`decide`] is a pure function of its [`DecisionInput`] and one [`RandomDraw`]: the same arguments always give the
//! same [`Decision`], so that it can be tested by properties, replayed from the log, and used for what-if questions.

mod backoff;
mod chain;
mod circuit_breaker;
mod decide;
mod history;
mod model;
mod policy;
mod randomness;
mod retry_budget;
mod success_rates;

pub use backoff::{Backoff, BackoffCurve, Jitter, delay_until_reset};
pub use chain::{RankedStrategy, rank_chain};
pub use circuit_breaker::{CircuitBreaker, CircuitBreakerSettings, CircuitState};
pub use decide::{
    Action, Capabilities, Capability, ConcreteChange, CurrentModel, Decision, DecisionInput,
    EscalationReason, EscalationTrigger, NetworkStatus, ProposedAction, RepairOffer,
    RepairPermission, Repeatable, SessionLimits, SkippedStrategy, StopReason, StrategyLookup,
    WaitPurpose, decide,
};
pub use history::{IdleInterval, RecoveryHistory, RetryAttempt, RetryRecord};
pub use model::{
    CostEstimate, EstimatedAmount, LongPromptPrice, Model, ModelCatalog, ModelChoiceError,
    ModelLadder, ModelSwitch, ModelSwitchReason, Price, RereadCost, TokenUsage,
};
pub use policy::{
    DEFAULT_TEMPLATE, InvalidPolicy, PolicyOverride, PolicyOverrides, PolicyProblem, RetryLimits,
    RetryPolicy, default_template, policy_key, template, templates,
};
pub use randomness::{ParseRandomDrawError, RandomDraw, SeededRng};
pub use retry_budget::{RetryBudget, RetryBudgetSettings};
pub use success_rates::{SuccessCount, SuccessRates};
