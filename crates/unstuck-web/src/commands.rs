//! Commands that the surrounding program runs for the server: those that change state, start processes or read the
//! configuration.

use std::pin::Pin;

use unstuck_core::event::{RunId, SessionId};
use unstuck_core::{RetryPolicy, escalation};
use unstuck_store::StoreError;

use crate::model::{
    Agent, AttemptTexts, Budgets, EffectiveRetryPolicy, EscalationAnswerResponse,
    ExtraCostEstimateResponse, FieldProblem, ModelSwitchEntry, Models, RepairPreview,
    RetryPromptResponse, SessionRetryBody, SessionRetryResponse, UpstreamStatus, Webhook,
    WebhookTestResult,
};

/// The future of a command.
pub type CommandFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, WebCommandError>> + Send + 'a>>;

/// The error of a command that was not executed; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum WebCommandError {
    /// The target does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The command conflicts with the current state, for example because the escalation was already answered.
    #[error("{0}")]
    Conflict(String),
    /// The caller lacks permission.
    #[error("{0}")]
    Forbidden(String),
    /// The request is invalid.
    #[error("{detail}")]
    Invalid {
        /// General description of the problem.
        detail: String,
        /// Problems with single fields.
        errors: Vec<FieldProblem>,
    },
    /// The target was changed by someone else in the meantime.
    #[error("{0}")]
    Stale(String),
    /// The command is unavailable here or now.
    #[error("{0}")]
    Unavailable(String),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A human's answer to an escalation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerEscalation {
    /// Id of the escalation.
    pub escalation: String,
    /// The answer.
    pub answer: escalation::EscalationAnswer,
    /// Note of the user.
    pub note: String,
    /// Hash of the escalation that was shown; if given and different now, the answer is rejected.
    pub hash: Option<String>,
    /// Identity of the caller.
    pub who: Option<String>,
}

/// A request to retry a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetrySession {
    /// Session to retry.
    pub session: SessionId,
    /// Retry options.
    pub options: SessionRetryBody,
    /// Identity of the caller.
    pub who: Option<String>,
}

/// A request to switch a session to another model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchModel {
    /// Session to switch.
    pub session: SessionId,
    /// New model; if `None`, the next one of its ladder.
    pub to: Option<String>,
    /// Identity of the caller.
    pub who: Option<String>,
}

/// The target of a policy request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyTarget {
    /// The default of all projects without their own policy.
    Default,
    /// The project with this root directory.
    Project(String),
}

/// A request to set or unset a policy.
#[derive(Debug, Clone, PartialEq)]
pub struct SetRetryPolicy {
    /// Target of the change.
    pub target: PolicyTarget,
    /// New policy; `None` removes the current setting.
    pub policy: Option<RetryPolicy>,
    /// Version that the change is based on, 0 if none was set; `None` skips the check.
    pub expected_version: Option<u64>,
    /// Identity of the caller.
    pub who: Option<String>,
}

/// Commands that the surrounding program runs for the server.
pub trait Deeds: Send + Sync {
    /// Answers an escalation, after which the run continues. Only the first answer is accepted.
    fn answer(&self, answering: AnswerEscalation) -> CommandFuture<'_, EscalationAnswerResponse>;

    /// Previews a proposed command on a copy, with network access if allowed.
    fn preview(&self, question: &str, network: bool) -> CommandFuture<'_, RepairPreview>;

    /// Returns the prompt that a retry of a session would send.
    fn retry_prompt(&self, retrying: RetrySession) -> CommandFuture<'_, RetryPromptResponse>;

    /// Retries a session; earlier attempts stay in the history.
    fn retry(&self, retrying: RetrySession) -> CommandFuture<'_, SessionRetryResponse>;

    /// Estimates the cost of switching the model, without changing anything.
    fn estimate(&self, escalating: SwitchModel) -> CommandFuture<'_, ExtraCostEstimateResponse>;

    /// Switches the model of a session.
    fn escalate(&self, escalating: SwitchModel) -> CommandFuture<'_, ModelSwitchEntry>;

    /// Stops a run; it can be resumed later.
    fn stop(&self, run: RunId, who: Option<String>) -> CommandFuture<'_, ()>;

    /// Returns the prompt and output of an attempt, identified by its index in the run.
    fn texts(&self, run: RunId, attempt: u32) -> CommandFuture<'_, AttemptTexts>;

    /// Returns the effective policy.
    fn policy(&self, of: PolicyTarget) -> CommandFuture<'_, EffectiveRetryPolicy>;

    /// Sets or unsets a policy.
    fn put_policy(&self, change: SetRetryPolicy) -> CommandFuture<'_, EffectiveRetryPolicy>;

    /// Lists the named policies, built in and configured.
    fn policy_templates(&self) -> CommandFuture<'_, Vec<RetryPolicy>>;

    /// Lists the supported agents and whether they are installed.
    fn agents(&self) -> CommandFuture<'_, Vec<Agent>>;

    /// Lists the models and their prices.
    fn models(&self) -> CommandFuture<'_, Models>;

    /// Lists the budgets and the amounts spent.
    fn budgets(&self) -> CommandFuture<'_, Budgets>;

    /// Lists the configured webhooks.
    fn webhooks(&self) -> CommandFuture<'_, Vec<Webhook>>;

    /// Sends a test notification to a webhook.
    fn test_webhook(&self, id: &str) -> CommandFuture<'_, WebhookTestResult>;

    /// Returns the upstream lanes of the gateway, or none without a gateway.
    fn lanes(&self) -> CommandFuture<'_, Vec<UpstreamStatus>>;
}
