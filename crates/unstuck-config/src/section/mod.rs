//! The sections of a configuration, one file each.
//!
//! An unset value has its documented default; [`Config::origin`](crate::Config::origin) tells whether it was set.

mod budget;
mod duration;
mod error_recovery;
mod escalations;
mod expect;
mod gateway;
mod models;
mod number;
mod pipeline_loop_section;
mod prompts;
mod repair_policy;
mod role;
mod run;
mod size;
mod stuck;
mod webhooks;

pub use budget::{BudgetLimitSection, BudgetSection};
pub use error_recovery::{ErrorRecoverySection, FailureKindRecoverySection};
pub use escalations::{AnswerName, DefaultAnswer, EscalationsSection, TimeoutAnswer};
pub use expect::{ExpectSection, JsonRequirement};
pub use gateway::{
    GatewayBudgetsSection, GatewayLoopLimits, GatewaySection, GatewayTimeouts,
    GatewayUpstreamSection, GatewayUpstreams, MissingUpstreamFeature, OnBudgetReached, OnLoop,
    StreamForwardingMode,
};
pub use models::{ModelEntry, ModelPrice, ModelsSection};
pub use pipeline_loop_section::{
    CompletionMarkerSection, LoopCompletionSection, OnStuckPipelineLoop, PipelineLoopSection,
};
pub use prompts::{PromptNotePlacementSetting, PromptNoteSection};
pub(crate) use repair_policy::deserialize_entries;
pub use repair_policy::{OnUnlistedCommand, RepairPolicySection, SandboxModeSetting};
pub use role::RoleSection;
pub use run::{OnFailedAttempt, RunSection};
pub(crate) use stuck::StuckSection;
pub use webhooks::{Webhook, WebhookFormat, WebhooksSection};
