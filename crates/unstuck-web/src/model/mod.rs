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
mod llm_model;
mod login;
mod model_switch;
mod money;
mod openapi_schemas;
mod pagination;
mod permission_scope;
mod problem_details;
mod project;
mod recovery_analytics;
mod reread_cost;
mod retry_policy;
mod run;
mod run_detail;
mod server_health;
mod session;
mod success_rate;
mod upstream_status;
mod webhook;

pub use agent::Agent;
pub use api_call::{ApiAttempt, ApiCall};
pub use attempt::{
    AttemptResponse, AttemptTexts, AttemptUsage, AttemptWait, Decision, DiagnosisResponse,
    OutputExcerpt, PrecedingFailure, Repair, Resolution, SkippedStrategy, TokenCounts,
};
pub use cost_estimate::CostEstimateResponse;
pub use escalation::{
    AnswerDeadline, AnswerKind, AnswerOption, AnswerRequest, AnswerResult, ChangedSetting,
    EscalationOutcome, EscalationResponse, PreviewedFile, PriorAttempt, RepairExecutionConditions,
    RepairPreview,
};
pub use event::EventResponse;
pub use failures::{
    DailyAttemptCount, FailureAnalytics, FailureListItem, FailureMessageCount, PromptPatternCount,
};
pub use llm_model::{
    BudgetResponse, Budgets, LongContextPrice, Model, ModelLadderResponse, Models, Price,
};
pub use login::{CurrentIdentity, LoginRequest, LoginResponse};
pub use model_switch::ModelSwitchResponse;
pub use money::round_usd;
pub use pagination::ListPage;
pub use permission_scope::Scope;
pub use problem_details::{FieldProblem, ProblemDetails};
pub use project::{ProjectResponse, project_id};
pub use recovery_analytics::{RecoveryAnalytics, RecoveryStats, StrategyOutcomeCount};
pub use reread_cost::RereadCostResponse;
pub use retry_policy::{EffectivePolicy, Policy, PolicyOrigin, PolicyOverride, PolicyTemplate};
pub use run::{Run, UsageTotals};
pub use run_detail::RunDetail;
pub use server_health::{Health, Readiness, Version};
pub use session::{
    ModelSwitchRequest, ModelSwitchResult, RetryOptions, RetryPrompt, RetryResult, RetrySummary,
    SessionResponse,
};
pub use success_rate::StrategySuccessRate;
pub use upstream_status::{
    BreakerStatus, LimitWindow, SubscriptionUsage, UpstreamCallCounts, UpstreamStatus,
};
pub use webhook::{Webhook, WebhookTestResult};
