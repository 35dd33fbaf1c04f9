//! Stage 3: what to do about a failure: level, strategy, wait, and why, in one sentence.
//!
//! [`decide`] is a pure function of its [`Situation`] and one random [`Draw`]: the same arguments always give the same
//! [`Decision`], so that it can be tested by properties, replayed from the log, and asked "what if".

mod backoff;
mod breaker;
mod budget;
mod chain;
mod decide;
mod draw;
mod history;
mod model;
mod odds;
mod policy;

pub use backoff::{Backoff, Curve, Jitter, until_reset};
pub use breaker::{Breaker, BreakerSettings, BreakerState};
pub use budget::{Budget, BudgetSettings};
pub use chain::{Ranked, order};
pub use decide::{
    AskWhy, Capabilities, Capability, Caps, Changed, Chosen, Decision, FellThrough, ModelUse,
    Network, Proposed, RepairLeave, RepairOffer, Repeat, Situation, StopWhy, Strategies, Trigger,
    WaitFor, decide,
};
pub use draw::{Dice, Draw, NotADraw};
pub use history::{Attempt, Gap, History, RetryAttempt};
pub use model::{
    Amount, Catalog, CostEstimate, EscalationReason, EscalationRecord, Ladder, LongPrice, Model,
    NoModel, Price, RereadCost, Tokens,
};
pub use odds::{Odds, Tally};
pub use policy::{
    DEFAULT_TEMPLATE, InvalidPolicy, Limits, Override, Overrides, Problem, RetryPolicy,
    default_template, policy_key, template, templates,
};
