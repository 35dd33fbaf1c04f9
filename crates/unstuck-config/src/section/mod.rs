//! The sections of a configuration, one file each.
//!
//! An unset value has its documented default; [`Config::origin`](crate::Config::origin) tells whether it was set.

mod budget;
mod duration;
mod error_recovery;
mod escalations;
mod expect;
mod gateway;
mod loop_section;
mod models;
mod number;
mod prompts;
mod repair_policy;
mod role;
mod run;
mod size;
mod stuck;
mod webhooks;

pub use budget::{BudgetAllowance, BudgetSection};
pub use error_recovery::{ErrorRecovery, FailureKindRecovery};
pub use escalations::{AnswerName, DefaultAnswer, EscalationsSection, TimeoutAnswer};
pub use expect::{ExpectSection, JsonRequirement};
pub use gateway::{
    GatewayBudgets, GatewayLoopLimits, GatewaySection, GatewayTimeouts, GatewayUpstream,
    GatewayUpstreams, MissingUpstreamFeature, OnBudgetReached, OnLoop, StreamMode,
};
pub use loop_section::{CompletionCondition, CompletionMarkerSection, LoopSection, OnStuck};
pub use models::{ModelEntry, ModelPrice, Models};
pub use prompts::{PromptNoteSection, PromptNoteSectionPosition};
pub(crate) use repair_policy::deserialize_entries;
pub use repair_policy::{OnUnlistedCommand, RepairPolicySection, Sandbox};
pub use role::Role;
pub use run::{OnFailedAttempt, RunSection};
pub(crate) use stuck::StuckSection;
pub use webhooks::{Webhook, WebhookFormat, Webhooks};
