//! What the API says and the pages show: plain values in the names of the wire, and nothing else.
//!
//! Names are in camelCase, moments are RFC 3339 texts in UTC, money is in USD.

mod agent;
mod attempt;
mod call;
mod escalation;
mod estimate;
mod event;
mod failures;
mod health;
mod lane;
mod learned;
mod llm_model;
mod model_change;
mod money;
mod page;
mod policy;
mod problem;
mod project;
mod recovery;
mod reread;
mod run;
mod run_detail;
mod schema;
mod scope;
mod session;
mod token;
mod webhook;

pub use agent::Agent;
pub use attempt::{
    Answering, Attempt, AttemptTexts, Decision, Diagnosis, Excerpt, PassedOver, Repair, Resolved,
    TokenCount, Used, Wait,
};
pub use call::{ApiCall, ApiTry};
pub use escalation::{
    Answer, AnswerGiven, AnswerTaken, Answered, ChangedSetting, Conditions, Deadline, Escalation,
    Offered, Preview, PreviewedFile, Tried,
};
pub use estimate::Estimate;
pub use event::EventLine;
pub use failures::{DayCount, Failure, FailureAnalytics, MessageCount, PatternCount};
pub use health::{Health, Ready, Version};
pub use lane::{Breaker, Lane, LaneCounts, Plan, Window};
pub use learned::Learned;
pub use llm_model::{Budget, Budgets, Ladder, LongPrice, Model, Models, Price};
pub use model_change::ModelChange;
pub use money::rounded;
pub use page::Page;
pub use policy::{Override, Policy, PolicyKept, PolicyOrigin, PolicyTemplate};
pub use problem::{FieldProblem, Problem};
pub use project::{Project, project_id};
pub use recovery::{AnswerCount, RecoveryAnalytics, RecoveryCount};
pub use reread::Reread;
pub use run::{Run, Spending};
pub use run_detail::RunDetail;
pub use scope::Scope;
pub use session::{
    EscalateSession, Escalated, RetryOptions, RetryPrompt, RetryStarted, RetryTold, Session,
};
pub use token::{LoggedIn, Login, Me};
pub use webhook::{Webhook, WebhookTested};
