//! REST responses and the data shown by the pages: plain values with their wire names.
//!
//! Names are in camelCase, timestamps are RFC 3339 strings in UTC, money is in USD.

mod agent;
mod api_call;
mod attempt;
mod cost_estimate;
mod escalation;
mod event;
mod failures;
mod health;
mod lane;
mod llm_model;
mod login;
mod model_switch;
mod money;
mod openapi_schemas;
mod page;
mod policy;
mod problem;
mod project;
mod recovery;
mod reread_cost;
mod run;
mod run_detail;
mod scope;
mod session;
mod success_rate;
mod webhook;

pub use agent::Agent;
pub use api_call::{ApiAttempt, ApiCall};
pub use attempt::{
    AttemptResponse, AttemptTexts, AttemptUsage, AttemptWait, Decision, DiagnosisResponse,
    OutputExcerpt, RecoveredFailure, Repair, Resolution, SkippedStrategy, TokenCount,
};
pub use cost_estimate::CostEstimateResponse;
pub use escalation::{
    AnswerDeadline, AnswerKind, AnswerOption, AnswerRequest, AnswerResult, ChangedSetting,
    EscalationOutcome, EscalationResponse, ExecutionConditions, PreviewedFile, PriorAttempt,
    RepairPreview,
};
pub use event::EventResponse;
pub use failures::{
    DailyAttemptCount, FailureAnalytics, FailureListItem, FailureMessageCount, PromptPatternCount,
};
pub use health::{Health, Readiness, Version};
pub use lane::{BreakerStatus, Lane, LaneCounts, LimitWindow, SubscriptionUsage};
pub use llm_model::{BudgetResponse, Budgets, Ladder, LongContextPrice, Model, Models, Price};
pub use login::{CurrentIdentity, LoginRequest, LoginResponse};
pub use model_switch::ModelSwitchResponse;
pub use money::round_usd;
pub use page::Page;
pub use policy::{EffectivePolicy, Policy, PolicyOrigin, PolicyOverride, PolicyTemplate};
pub use problem::{FieldProblem, ProblemDetails};
pub use project::{ProjectResponse, project_id};
pub use recovery::{RecoveryAnalytics, RecoveryStats, StrategyOutcomeCount};
pub use reread_cost::RereadCostResponse;
pub use run::{Run, Spending};
pub use run_detail::RunDetail;
pub use scope::Scope;
pub use session::{
    ModelSwitchRequest, ModelSwitchResult, RetryOptions, RetryPrompt, RetryStarted, RetrySummary,
    SessionResponse,
};
pub use success_rate::StrategySuccessRate;
pub use webhook::{Webhook, WebhookTestResult};
