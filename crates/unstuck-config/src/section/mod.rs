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
mod recovery;
mod role;
mod run;
mod size;
mod stuck;
mod webhooks;

pub use budget::{BudgetAllowance, BudgetSection};
pub use error_recovery::{ErrorRecovery, KindRecovery};
pub use escalations::{AnswerName, DefaultAnswer, Escalations, TimeoutAnswer};
pub use expect::{Expect, ExpectJson};
pub use gateway::{
    GatewayBudgets, GatewaySection, GatewayTimeouts, GatewayUpstream, GatewayUpstreams,
    GatewayWatch, MissingCapability, OnLoop, OnReached, StreamMode,
};
pub use loop_section::{CompletionCondition, CompletionPromise, LoopSection, OnStuck};
pub use models::{ModelPrice, ModelSection, Models};
pub use prompts::{PromptPlace, PromptSection};
pub(crate) use recovery::deserialize_entries;
pub use recovery::{OnUnknown, RecoverySection, Sandbox};
pub use role::Role;
pub use run::{OnFailedAttempt, RunSection};
pub(crate) use stuck::StuckSection;
pub use webhooks::{Webhook, WebhookFormat, Webhooks};
