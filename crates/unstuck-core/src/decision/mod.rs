//! Stage 3: the decision about a failure: level, strategy, delay, and a reason in one sentence.
//!
//! [`decide`] is a pure function of its [`DecisionInput`] and one [`RandomDraw`]: the same arguments always give the
//! same [`Decision`], so that it can be tested by properties, replayed from the log, and used for what-if questions.

mod backoff;
mod call_wait;
mod circuit_breaker;
mod decide;
mod model_catalog;
mod randomness;
mod recovery_history;
mod retry_budget;
mod retry_policy;
mod strategy_ranking;
mod success_rates;

pub use backoff::{Backoff, BackoffCurve, Jitter, delay_until_reset};
pub use call_wait::CallWait;
pub use circuit_breaker::{CircuitBreaker, CircuitBreakerSettings, CircuitState};
pub use decide::{
    AvailableRepair, ConcreteAttemptChange, CurrentModel, Decision, DecisionInput, EligibleAction,
    EscalationReason, EscalationTrigger, NetworkStatus, NoRecoveryReason, OperationRepeatability,
    ProposedAction, RecoveryAction, RecoveryActionSelection, RepairPermission, RetryCapabilities,
    RetryChangeCapability, SessionLimits, SkippedStrategy, StrategyDefinitionLookup, WaitPurpose,
    decide,
};
pub use model_catalog::{
    CatalogModel, CostEstimate, LongPromptPrice, ModelCatalog, ModelLadder, ModelSwitch,
    ModelSwitchReason, ModelSwitchTargetError, PossiblyUnknownAmount, Price, RereadCost,
    TokenUsage,
};
pub use randomness::{ParseRandomDrawError, RandomDraw, SeededRng};
pub use recovery_history::{EpisodeRecoveryHistory, RetryAttempt, RetryRecord, SupervisionGap};
pub use retry_budget::{RetryBudgetSettings, UpstreamRetryBudget};
pub use retry_policy::{
    DEFAULT_TEMPLATE, InvalidRetryPolicy, KindPolicyOverrides, RetryLimits, RetryPolicy,
    RetryPolicyOverride, RetryPolicyProblem, default_template, policy_key, template, templates,
};
pub use strategy_ranking::{RankedStrategy, rank_chain};
pub use success_rates::{StrategyOutcomeTally, SuccessRates};
