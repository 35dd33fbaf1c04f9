//! REST API and dashboard of `unstuck serve`. Commands from them run the same code as those of the command line.

mod answers;
mod attempt_texts;
mod configured_resources;
mod model_switch;
mod policies;
mod previews;
mod resume_guard;
mod retries;
mod router_bridge;
mod stop;

pub(crate) use router_bridge::RouterBridge;

use resume_guard::{ActiveResumes, ResumeGuard};

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use tokio::sync::{OnceCell, Semaphore};
use unstuck_core::RetryPolicy;
use unstuck_core::event::{RunId, SessionId};
use unstuck_core::redact::Redactor;
use unstuck_gateway::GatewayHandle;
use unstuck_run::clock::Clock;
use unstuck_store::{Store, StoreLocation};
use unstuck_web::auth::{TokenStore, WebRequestRateLimits};
use unstuck_web::commands::{
    AnswerEscalation, CommandFuture, Deeds, PolicyTarget, RetrySession, SetRetryPolicy,
    SwitchModel, WebCommandError,
};
use unstuck_web::model::{
    Agent, AttemptTexts, Budgets, EffectiveRetryPolicy, EscalationAnswerResponse,
    ExtraCostEstimateResponse, ModelSwitchEntry, Models, RepairPreview, RetryPromptResponse,
    SessionRetryResponse, UpstreamStatus, Webhook, WebhookTestResult,
};
use unstuck_web::{WebOptions, WebState};

use crate::command_context::CommandContext;
use crate::config::Config;
use crate::error_report::{ErrorClass, error_with_hint, refusal, summarize};
use crate::output::ColorMode;
use crate::{clock, environment_variables, escalation_answers, project_trust};

/// Maximum number of concurrent previews.
const MAX_PREVIEWS: usize = 2;
/// Token name of a dashboard login.
const DASHBOARD_NAME: &str = "dashboard";

/// Opens the token store in the state directory, outside of all projects.
pub(crate) fn token_store() -> Result<TokenStore> {
    let state = environment_variables::state_dir().ok_or_else(|| {
        error_with_hint(
            "cannot locate the state directory: neither XDG_STATE_HOME nor HOME is set",
            "set HOME or XDG_STATE_HOME",
        )
    })?;
    Ok(TokenStore::open(state.join("tokens.jsonl")))
}

/// Inputs for building the API and the pages.
pub(crate) struct WebParts<'a> {
    pub(crate) store: Store,
    pub(crate) session: &'a CommandContext<'a>,
    pub(crate) redactor: Arc<Redactor>,
    /// Listen address of the server.
    pub(crate) listen: SocketAddr,
    /// Host names of the server, in addition to addresses.
    pub(crate) hosts: Vec<String>,
    /// Gateway that runs in the same server.
    pub(crate) gateway: GatewayHandle,
    pub(crate) policy: GatewayPolicyLoader,
}

/// Loads the gateway's retry policy from a configuration.
pub(crate) type GatewayPolicyLoader = Box<dyn Fn(&Config) -> Result<RetryPolicy> + Send + Sync>;

/// Builds the API and the pages.
pub(crate) fn build_web(parts: WebParts<'_>) -> Result<Arc<WebState>> {
    let doer = Doer(Arc::new(Desk {
        store: parts.store.clone(),
        location: parts.session.store.clone(),
        config: parts.session.config.map(std::path::absolute).transpose()?,
        gateway: parts.gateway,
        policy: parts.policy,
        agent_evidence: project_trust::agent_evidence(),
        agents: OnceCell::new(),
        previews: Semaphore::new(MAX_PREVIEWS),
        resumes: ActiveResumes::default(),
    }));
    Ok(WebState::new(WebOptions {
        store: parts.store,
        deeds: Arc::new(doer),
        tokens: Arc::new(token_store()?),
        redactor: parts.redactor,
        clock: Clock::System,
        listen: parts.listen,
        hosts: parts.hosts,
        rates: WebRequestRateLimits::default(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }))
}

/// Executes commands from REST and the dashboard.
struct Doer(Arc<Desk>);

/// Shared state of the command handlers.
struct Desk {
    store: Store,
    location: StoreLocation,
    /// Configuration file given by `--config`.
    config: Option<PathBuf>,
    gateway: GatewayHandle,
    policy: GatewayPolicyLoader,
    /// Evidence that the server itself runs inside a supervised agent, which must not decide for its owner.
    agent_evidence: Option<String>,
    agents: OnceCell<Vec<Agent>>,
    previews: Semaphore,
    /// Runs being resumed by processes of this server.
    resumes: ActiveResumes,
}

impl Desk {
    fn session(&self) -> CommandContext<'_> {
        CommandContext {
            store: &self.location,
            config: self.config.as_deref(),
            color: ColorMode::Never,
        }
    }

    /// Starts resuming a run, unless this server is already resuming it.
    fn begin_resume(&self, run: &RunId) -> Result<ResumeGuard> {
        self.resumes.begin(run).ok_or_else(|| {
            refusal(
                format!("run {} is already being retried", run.short()),
                "wait until the retry ends",
            )
        })
    }

    /// Refuses commands that change something if the server runs inside an agent.
    fn refuse_agents(&self) -> Result<(), WebCommandError> {
        match &self.agent_evidence {
            None => Ok(()),
            Some(why) => Err(WebCommandError::Forbidden(format!(
                "only a human can do this; this server runs inside a supervised agent ({why}); start `unstuck serve` in your own terminal"
            ))),
        }
    }
}

impl Doer {
    /// Runs blocking work on files, processes and the store on a separate thread, so that other requests are not
    /// delayed.
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Desk) -> Result<T> + Send + 'static,
    ) -> Result<T, WebCommandError> {
        let desk = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || work(&desk)).await;
        match done {
            Ok(done) => done.map_err(command_error),
            Err(error) => Err(WebCommandError::Unavailable(format!(
                "internal task failed: {error}"
            ))),
        }
    }
}

/// Returns the actor of a request: its token name; for a dashboard login, the user who started the server.
fn actor_name(signed: Option<String>) -> String {
    match signed {
        Some(name) if name != DASHBOARD_NAME => name,
        _ => escalation_answers::current_user(),
    }
}

/// Converts an error to an API error.
fn command_error(error: anyhow::Error) -> WebCommandError {
    let (text, blame) = summarize(&error);
    match blame {
        ErrorClass::Conflict => WebCommandError::Conflict(text),
        ErrorClass::Forbidden => WebCommandError::Forbidden(text),
        ErrorClass::Internal => WebCommandError::Unavailable(text),
    }
}

impl Deeds for Doer {
    fn answer(&self, answering: AnswerEscalation) -> CommandFuture<'_, EscalationAnswerResponse> {
        Box::pin(answers::answer_escalation(self, answering))
    }

    fn preview(&self, question: &str, network: bool) -> CommandFuture<'_, RepairPreview> {
        Box::pin(previews::preview(self, question.to_owned(), network))
    }

    fn retry_prompt(&self, retrying: RetrySession) -> CommandFuture<'_, RetryPromptResponse> {
        Box::pin(retries::retry_prompt(self, retrying))
    }

    fn retry(&self, retrying: RetrySession) -> CommandFuture<'_, SessionRetryResponse> {
        Box::pin(retries::retry_session(self, retrying))
    }

    fn estimate(&self, escalating: SwitchModel) -> CommandFuture<'_, ExtraCostEstimateResponse> {
        Box::pin(model_switch::estimate(self, escalating))
    }

    fn escalate(&self, escalating: SwitchModel) -> CommandFuture<'_, ModelSwitchEntry> {
        Box::pin(model_switch::switch_model(self, escalating))
    }

    fn stop(&self, run: RunId, _: Option<String>) -> CommandFuture<'_, ()> {
        Box::pin(stop::stop_run(self, run))
    }

    fn texts(&self, run: RunId, attempt: u32) -> CommandFuture<'_, AttemptTexts> {
        Box::pin(attempt_texts::attempt_texts(self, run, attempt))
    }

    fn policy(&self, of: PolicyTarget) -> CommandFuture<'_, EffectiveRetryPolicy> {
        Box::pin(policies::effective_policy(self, of))
    }

    fn put_policy(&self, change: SetRetryPolicy) -> CommandFuture<'_, EffectiveRetryPolicy> {
        Box::pin(policies::put_policy(self, change))
    }

    fn policy_templates(&self) -> CommandFuture<'_, Vec<RetryPolicy>> {
        Box::pin(policies::templates(self))
    }

    fn agents(&self) -> CommandFuture<'_, Vec<Agent>> {
        Box::pin(configured_resources::agents(self))
    }

    fn models(&self) -> CommandFuture<'_, Models> {
        Box::pin(configured_resources::models(self))
    }

    fn budgets(&self) -> CommandFuture<'_, Budgets> {
        Box::pin(configured_resources::budgets(self))
    }

    fn webhooks(&self) -> CommandFuture<'_, Vec<Webhook>> {
        Box::pin(configured_resources::webhooks(self))
    }

    fn test_webhook(&self, id: &str) -> CommandFuture<'_, WebhookTestResult> {
        Box::pin(configured_resources::test_webhook(self, id.to_owned()))
    }

    fn lanes(&self) -> CommandFuture<'_, Vec<UpstreamStatus>> {
        let lanes = self.0.gateway.lane_states(clock::now().at).into_iter();
        let lanes = lanes
            .map(|(upstream, model, state)| UpstreamStatus::from_state(upstream, model, state));
        let lanes = lanes.collect();
        Box::pin(async { Ok(lanes) })
    }
}

/// Parses a session id and returns the id of its run.
fn run_of_session(session: &SessionId) -> Result<RunId, WebCommandError> {
    let unknown = || WebCommandError::NotFound(format!("session {} not found", session.as_str()));
    let (run, _) = session.as_str().rsplit_once('-').ok_or_else(unknown)?;
    Ok(RunId::new(run))
}
