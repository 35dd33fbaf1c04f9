//! What the program around the server does for it: what changes things, starts processes or reads the configuration.

use std::pin::Pin;

use unstuck_core::event::{RunId, SessionId};
use unstuck_core::{RetryPolicy, question};
use unstuck_store::StoreError;

use crate::model::{
    Agent, AnswerTaken, AttemptTexts, Budgets, Estimate, FieldProblem, Lane, ModelChange, Models,
    PolicyKept, Preview, RetryOptions, RetryPrompt, RetryStarted, Webhook, WebhookTested,
};

/// What is being done.
pub type Doing<'a, T> = Pin<Box<dyn Future<Output = Result<T, DeedError>> + Send + 'a>>;

/// Why something was not done; nothing has changed then.
#[derive(Debug, thiserror::Error)]
pub enum DeedError {
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
pub struct Answering {
    /// The question.
    pub question: String,
    /// The answer.
    pub answer: question::Answer,
    /// What they say about it.
    pub note: String,
    /// What was shown: where it is given and something else is asked now, nothing is answered.
    pub hash: Option<String>,
    /// Who it is.
    pub who: Option<String>,
}

/// A session is to be tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retrying {
    /// The session.
    pub session: SessionId,
    /// How.
    pub options: RetryOptions,
    /// Who wants it.
    pub who: Option<String>,
}

/// A session is to go on with another model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Escalating {
    /// The session.
    pub session: SessionId,
    /// Which model; the next one of its ladder where none is named.
    pub to: Option<String>,
    /// Who wants it.
    pub who: Option<String>,
}

/// Whose policy is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyOf {
    /// That of all projects that have none of their own.
    Everybody,
    /// That of the project with this root folder.
    Project(String),
}

/// A policy is to be set, or to be as if it had never been set.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyChange {
    /// Whose.
    pub of: PolicyOf,
    /// The policy; none takes away what was set.
    pub policy: Option<RetryPolicy>,
    /// The version that whoever changes it has looked at, 0 where none was set; none where that does not matter.
    pub seen: Option<u64>,
    /// Who changes it.
    pub who: Option<String>,
}

/// What the program around the server does for it.
pub trait Deeds: Send + Sync {
    /// Answers a question; the first answer counts. The run goes on, wherever that is.
    fn answer(&self, answering: Answering) -> Doing<'_, AnswerTaken>;

    /// What a proposed command would change, tried out on a copy, with network if a person lets it.
    fn preview(&self, question: &str, network: bool) -> Doing<'_, Preview>;

    /// What a retry of a session would send.
    fn retry_prompt(&self, retrying: Retrying) -> Doing<'_, RetryPrompt>;

    /// Tries a session again; what was tried before stays in the history.
    fn retry(&self, retrying: Retrying) -> Doing<'_, RetryStarted>;

    /// What it would cost to go on with another model; nothing is changed.
    fn estimate(&self, escalating: Escalating) -> Doing<'_, Estimate>;

    /// Goes on with another model.
    fn escalate(&self, escalating: Escalating) -> Doing<'_, ModelChange>;

    /// Stops a run; what it was doing can be taken up again.
    fn stop(&self, run: RunId, who: Option<String>) -> Doing<'_, ()>;

    /// All that an attempt of a run was given and wrote, by its place among all attempts of the run.
    fn texts(&self, run: RunId, attempt: u32) -> Doing<'_, AttemptTexts>;

    /// The policy that counts.
    fn policy(&self, of: PolicyOf) -> Doing<'_, PolicyKept>;

    /// Sets a policy.
    fn put_policy(&self, change: PolicyChange) -> Doing<'_, PolicyKept>;

    /// The policies that can be named: those of the program and those of the configuration.
    fn policy_templates(&self) -> Doing<'_, Vec<RetryPolicy>>;

    /// The agents that can be run, with what is installed of them.
    fn agents(&self) -> Doing<'_, Vec<Agent>>;

    /// The models and their prices.
    fn models(&self) -> Doing<'_, Models>;

    /// What may be spent, and what was spent of it.
    fn budgets(&self) -> Doing<'_, Budgets>;

    /// Who is told when something happens.
    fn webhooks(&self) -> Doing<'_, Vec<Webhook>>;

    /// Sends a sample to one of them.
    fn test_webhook(&self, id: &str) -> Doing<'_, WebhookTested>;

    /// How the upstreams of the gateway stand; none where there is no gateway.
    fn lanes(&self) -> Doing<'_, Vec<Lane>>;
}
