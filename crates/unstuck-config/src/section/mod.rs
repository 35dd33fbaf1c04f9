//! The sections of a configuration, one file each.
//!
//! What a section leaves out has the value that its documentation names; [`Config::origin`](crate::Config::origin) tells
//! whether somebody set it.

mod budget;
mod duration;
mod error_recovery;
mod escalations;
mod expect;
mod gateway;
mod looping;
mod models;
mod number;
mod prompts;
mod recovery;
mod role;
mod run;
mod size;
mod stuck;
mod webhooks;

pub use budget::{Allowance, Budget};
pub use error_recovery::{ErrorRecovery, KindRecovery};
pub use escalations::{AnswerName, DefaultAnswer, Ending, Escalations};
pub use expect::{Expect, ExpectJson};
pub use gateway::{
    GatewayBudgets, GatewaySection, GatewayTimeouts, GatewayUpstream, GatewayUpstreams,
    GatewayWatch, Lack, OnCircles, OnReached, StreamMode,
};
pub use looping::{Loop, OnStuck, Promise, Until};
pub use models::{ModelPrice, ModelSection, Models};
pub use prompts::{PromptPlace, PromptSection};
pub(crate) use recovery::entries;
pub use recovery::{OnUnknown, RecoverySection, Sandbox};
pub use role::Role;
pub use run::{OnFailedAttempt, RunSection};
pub(crate) use stuck::Stuck;
pub use webhooks::{Webhook, WebhookFormat, Webhooks};
