//! REST responses and the data shown by the pages: plain values with their wire names.
//!
//! Names are in camelCase, timestamps are RFC 3339 strings in UTC, money is in USD.

mod access_scope;
mod agent;
mod api_call;
mod attempt;
mod escalation;
mod event;
mod extra_cost_estimate;
mod failures;
mod login;
mod model_switch;
mod models_and_budgets;
mod money;
mod openapi_schemas;
mod pagination;
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

pub use access_scope::PermissionScope;
pub use agent::Agent;
pub use api_call::{FailedApiAttemptResponse, FailedOrRecoveredCallResponse};
pub use attempt::{
    AttemptResponse, AttemptTexts, AttemptUsage, Decision, DiagnosisResponse, EscalationResolution,
    NextAttemptWait, OutputExcerpt, RepairResponse, RetryCauseResponse, SkippedStrategy,
    TokenCounts,
};
pub use escalation::{
    AnswerDeadline, AnswerOption, AnswerRequest, EscalationAnswerChoice, EscalationAnswerResponse,
    EscalationOutcome, EscalationResponse, PreviewedFile, PriorAttempt, RepairConfinementResponse,
    RepairPreview, UnapprovedSettingChange,
};
pub use event::EventResponse;
pub use extra_cost_estimate::ExtraCostEstimateResponse;
pub use failures::{
    DailyAttemptCount, FailureAnalytics, FailureListItem, FailureMessageCount, PromptPatternCount,
};
pub use login::{CallerIdentityResponse, LoginRequest, LoginResponse};
pub use model_switch::ModelSwitchEntry;
pub use models_and_budgets::{
    BudgetResponse, Budgets, LongContextPrice, Model, ModelLadderResponse, Models, Price,
};
pub use money::round_usd;
pub use pagination::ListPage;
pub use problem_details::{FieldProblem, ProblemDetails};
pub use project::{ProjectResponse, project_id};
pub use recovery_analytics::{RecoveryAnalytics, RecoveryTotalsResponse, StrategyOutcomeCount};
pub use reread_cost::RereadCostResponse;
pub use retry_policy::{
    EffectiveRetryPolicy, PolicyOrigin, PolicyOverride, RetryPolicyBody,
    RetryPolicyTemplateResponse,
};
pub use run::{RunSummaryResponse, UsageTotals};
pub use run_detail::RunDetail;
pub use server_health::{LivenessResponse, ProgramVersionResponse, ReadinessResponse};
pub use session::{
    ModelSwitchRequest, ModelSwitchResult, RetryHistoryEntry, RetryPromptResponse, SessionResponse,
    SessionRetryBody, SessionRetryResponse,
};
pub use success_rate::StrategySuccessByKind;
pub use upstream_status::{
    BreakerStatus, RemainingQuotaResponse, SubscriptionUsage, UpstreamCallCounts, UpstreamStatus,
};
pub use webhook::{Webhook, WebhookTestResult};
