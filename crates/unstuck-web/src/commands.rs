//! What the program around the server does for it: what changes things, starts processes or reads the configuration.

use std::pin::Pin;

use unstuck_core::event::{RunId, SessionId};
use unstuck_core::{RetryPolicy, escalation};
use unstuck_store::StoreError;

use crate::model::{
    Agent, AnswerResult, AttemptTexts, Budgets, CostEstimateResponse, EffectivePolicy,
    FieldProblem, Lane, ModelSwitchResponse, Models, RepairPreview, RetryOptions, RetryPrompt,
    RetryStarted, Webhook, WebhookTestResult,
};

/// What is being done.
pub type CommandFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, CommandError>> + Send + 'a>>;

/// Why something was not done; nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// There is no such thing.
    #[error("{0}")]
    NotFound(String),
    /// It does not fit how things stand: it was answered already, nothing goes on there.
    #[error("{0}")]
    Conflict(String),
    /// Whoever asks may not.
    #[error("{0}")]
    Forbidden(String),
    /// What is asked for makes no sense.
    #[error("{detail}")]
    Invalid {
        /// What is wrong with it as a whole.
        detail: String,
        /// What is wrong with single values.
        errors: Vec<FieldProblem>,
    },
    /// It was changed by somebody else meanwhile.
    #[error("{0}")]
    Stale(String),
    /// It cannot be done here or now.
    #[error("{0}")]
    Unavailable(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A person's answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerEscalation {
    /// The question.
    pub escalation: String,
    /// The answer.
    pub answer: escalation::EscalationAnswer,
    /// What they say about it.
    pub note: String,
    /// What was shown: where it is given and something else is asked now, nothing is answered.
    pub hash: Option<String>,
    /// Who it is.
    pub who: Option<String>,
}

/// A session is to be tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetrySession {
    /// The session.
    pub session: SessionId,
    /// How.
    pub options: RetryOptions,
    /// Who wants it.
    pub who: Option<String>,
}

/// A session is to go on with another model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchModel {
    /// The session.
    pub session: SessionId,
    /// Which model; the next one of its ladder where none is named.
    pub to: Option<String>,
    /// Who wants it.
    pub who: Option<String>,
}

/// Whose policy is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyTarget {
    /// That of all projects that have none of their own.
    Default,
    /// That of the project with this root folder.
    Project(String),
}

/// A policy is to be set, or to be as if it had never been set.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyChange {
    /// Whose.
    pub target: PolicyTarget,
    /// The policy; none takes away what was set.
    pub policy: Option<RetryPolicy>,
    /// The version that whoever changes it has looked at, 0 where none was set; none where that does not matter.
    pub expected_version: Option<u64>,
    /// Who changes it.
    pub who: Option<String>,
}

/// What the program around the server does for it.
pub trait Deeds: Send + Sync {
    /// Answers a question; the first answer counts. The run goes on, wherever that is.
    fn answer(&self, answering: AnswerEscalation) -> CommandFuture<'_, AnswerResult>;

    /// What a proposed command would change, tried out on a copy, with network if a person lets it.
    fn preview(&self, question: &str, network: bool) -> CommandFuture<'_, RepairPreview>;

    /// What a retry of a session would send.
    fn retry_prompt(&self, retrying: RetrySession) -> CommandFuture<'_, RetryPrompt>;

    /// Tries a session again; what was tried before stays in the history.
    fn retry(&self, retrying: RetrySession) -> CommandFuture<'_, RetryStarted>;

    /// What it would cost to go on with another model; nothing is changed.
    fn estimate(&self, escalating: SwitchModel) -> CommandFuture<'_, CostEstimateResponse>;

    /// Goes on with another model.
    fn escalate(&self, escalating: SwitchModel) -> CommandFuture<'_, ModelSwitchResponse>;

    /// Stops a run; what it was doing can be taken up again.
    fn stop(&self, run: RunId, who: Option<String>) -> CommandFuture<'_, ()>;

    /// All that an attempt of a run was given and wrote, by its place among all attempts of the run.
    fn texts(&self, run: RunId, attempt: u32) -> CommandFuture<'_, AttemptTexts>;

    /// The policy that counts.
    fn policy(&self, of: PolicyTarget) -> CommandFuture<'_, EffectivePolicy>;

    /// Sets a policy.
    fn put_policy(&self, change: PolicyChange) -> CommandFuture<'_, EffectivePolicy>;

    /// The policies that can be named: those of the program and those of the configuration.
    fn policy_templates(&self) -> CommandFuture<'_, Vec<RetryPolicy>>;

    /// The agents that can be run, with what is installed of them.
    fn agents(&self) -> CommandFuture<'_, Vec<Agent>>;

    /// The models and their prices.
    fn models(&self) -> CommandFuture<'_, Models>;

    /// What may be spent, and what was spent of it.
    fn budgets(&self) -> CommandFuture<'_, Budgets>;

    /// Who is told when something happens.
    fn webhooks(&self) -> CommandFuture<'_, Vec<Webhook>>;

    /// Sends a sample to one of them.
    fn test_webhook(&self, id: &str) -> CommandFuture<'_, WebhookTestResult>;

    /// How the upstreams of the gateway stand; none where there is no gateway.
    fn lanes(&self) -> CommandFuture<'_, Vec<Lane>>;
}
