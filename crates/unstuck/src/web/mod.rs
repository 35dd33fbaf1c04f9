//! The REST API and the dashboard, as `unstuck serve` offers them beside its gateway: what they do for people is done
//! by the same code as the commands.

mod answers;
mod door;
mod escalating;
mod policies;
mod previews;
mod resuming;
mod retries;
mod settings;
mod stopping;
mod texts;

pub(crate) use door::Door;

use resuming::{Resuming, TakenUp};

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use tokio::sync::{OnceCell, Semaphore};
use unstuck_core::RetryPolicy;
use unstuck_core::event::{RunId, SessionId};
use unstuck_core::redact::Redactor;
use unstuck_gateway::Handle;
use unstuck_run::clock::Clock;
use unstuck_store::{Location, Store};
use unstuck_web::deeds::{
    Answering, DeedError, Deeds, Doing, Escalating, PolicyChange, PolicyOf, Retrying,
};
use unstuck_web::guard::{RateLimits, Tokens};
use unstuck_web::model::{
    Agent, AnswerTaken, AttemptTexts, Budgets, Estimate, Lane, ModelChange, Models, PolicyKept,
    Preview, RetryPrompt, RetryStarted, Webhook, WebhookTested,
};
use unstuck_web::{Web, WebOptions};

use crate::config::Config;
use crate::output::Color;
use crate::report::{Blame, hinted, in_one_sentence, refused};
use crate::session::Session;
use crate::{answering, clock, environment, trusting};

/// So many previews are made at once.
const PREVIEWS: usize = 2;
/// What a login of the dashboard is called.
const DASHBOARD: &str = "dashboard";

/// Where the tokens are kept: with what unstuck remembers, outside of all projects.
pub(crate) fn tokens() -> Result<Tokens> {
    let state = environment::state_folder().ok_or_else(|| {
        hinted(
            "there is no place for tokens: neither XDG_STATE_HOME nor HOME is set",
            "set one of them",
        )
    })?;
    Ok(Tokens::open(state.join("tokens.jsonl")))
}

/// What the API and the pages are made of.
pub(crate) struct Parts<'a> {
    pub(crate) store: Store,
    pub(crate) session: &'a Session<'a>,
    pub(crate) redactor: Arc<Redactor>,
    /// Where the server listens.
    pub(crate) listen: SocketAddr,
    /// Names by which it is reached, beside addresses.
    pub(crate) hosts: Vec<String>,
    /// The gateway beside it.
    pub(crate) gateway: Handle,
    pub(crate) policy: PolicyOfCalls,
}

/// How far the calls of the gateway go by a configuration.
pub(crate) type PolicyOfCalls = Box<dyn Fn(&Config) -> Result<RetryPolicy> + Send + Sync>;

/// The API and the pages.
pub(crate) fn open(parts: Parts<'_>) -> Result<Arc<Web>> {
    let doer = Doer(Arc::new(Desk {
        store: parts.store.clone(),
        location: parts.session.store.clone(),
        config: parts.session.config.map(std::path::absolute).transpose()?,
        gateway: parts.gateway,
        policy: parts.policy,
        inside: trusting::inside_an_agent(),
        agents: OnceCell::new(),
        previews: Semaphore::new(PREVIEWS),
        resuming: Resuming::default(),
    }));
    Ok(Web::new(WebOptions {
        store: parts.store,
        deeds: Arc::new(doer),
        tokens: Arc::new(tokens()?),
        redactor: parts.redactor,
        clock: Clock::System,
        listen: parts.listen,
        hosts: parts.hosts,
        rates: RateLimits::default(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }))
}

/// Does what people ask for over REST and in the dashboard.
struct Doer(Arc<Desk>);

/// What it works with.
struct Desk {
    store: Store,
    location: Location,
    /// The configuration file that was named.
    config: Option<PathBuf>,
    gateway: Handle,
    policy: PolicyOfCalls,
    /// What shows that the server itself runs inside a supervised agent, which must not decide about itself.
    inside: Option<String>,
    agents: OnceCell<Vec<Agent>>,
    previews: Semaphore,
    /// The runs that are being taken up by processes that were started here.
    resuming: Resuming,
}

impl Desk {
    fn session(&self) -> Session<'_> {
        Session {
            store: &self.location,
            config: self.config.as_deref(),
            color: Color::Never,
        }
    }

    /// Takes a run up, unless a process that was started here does so at this moment.
    fn take_up(&self, run: &RunId) -> Result<TakenUp> {
        self.resuming.begin(run).ok_or_else(|| {
            refused(
                format!("run {} is being tried again already", run.short()),
                "wait until that has ended",
            )
        })
    }

    /// Whatever changes something is a person's to do.
    fn only_for_people(&self) -> Result<(), DeedError> {
        match &self.inside {
            None => Ok(()),
            Some(why) => Err(DeedError::Forbidden(format!(
                "this server runs inside a supervised agent ({why}), and only a person can do this; start `unstuck serve` in a terminal of your own"
            ))),
        }
    }
}

impl Doer {
    /// Does what waits for files, processes and the store, as the commands do it, beside the requests of others.
    async fn beside<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Desk) -> Result<T> + Send + 'static,
    ) -> Result<T, DeedError> {
        let desk = Arc::clone(&self.0);
        let done = tokio::task::spawn_blocking(move || work(&desk)).await;
        match done {
            Ok(done) => done.map_err(told),
            Err(error) => Err(DeedError::Unavailable(format!("it broke off: {error}"))),
        }
    }
}

/// Who is meant by what a request was signed with: a login of the dashboard is that of who started the server.
fn who(signed: Option<String>) -> String {
    match signed {
        Some(name) if name != DASHBOARD => name,
        _ => answering::user(),
    }
}

/// An error of a command, as the API tells it.
fn told(error: anyhow::Error) -> DeedError {
    let (text, blame) = in_one_sentence(&error);
    match blame {
        Blame::Circumstances => DeedError::Conflict(text),
        Blame::Asker => DeedError::Forbidden(text),
        Blame::Ours => DeedError::Unavailable(text),
    }
}

impl Deeds for Doer {
    fn answer(&self, answering: Answering) -> Doing<'_, AnswerTaken> {
        Box::pin(answers::answer(self, answering))
    }

    fn preview(&self, question: &str, network: bool) -> Doing<'_, Preview> {
        Box::pin(previews::preview(self, question.to_owned(), network))
    }

    fn retry_prompt(&self, retrying: Retrying) -> Doing<'_, RetryPrompt> {
        Box::pin(retries::prompt(self, retrying))
    }

    fn retry(&self, retrying: Retrying) -> Doing<'_, RetryStarted> {
        Box::pin(retries::retry(self, retrying))
    }

    fn estimate(&self, escalating: Escalating) -> Doing<'_, Estimate> {
        Box::pin(escalating::estimate(self, escalating))
    }

    fn escalate(&self, escalating: Escalating) -> Doing<'_, ModelChange> {
        Box::pin(escalating::escalate(self, escalating))
    }

    fn stop(&self, run: RunId, _: Option<String>) -> Doing<'_, ()> {
        Box::pin(stopping::stop(self, run))
    }

    fn texts(&self, run: RunId, attempt: u32) -> Doing<'_, AttemptTexts> {
        Box::pin(texts::texts(self, run, attempt))
    }

    fn policy(&self, of: PolicyOf) -> Doing<'_, PolicyKept> {
        Box::pin(policies::policy(self, of))
    }

    fn put_policy(&self, change: PolicyChange) -> Doing<'_, PolicyKept> {
        Box::pin(policies::put(self, change))
    }

    fn policy_templates(&self) -> Doing<'_, Vec<RetryPolicy>> {
        Box::pin(policies::templates(self))
    }

    fn agents(&self) -> Doing<'_, Vec<Agent>> {
        Box::pin(settings::agents(self))
    }

    fn models(&self) -> Doing<'_, Models> {
        Box::pin(settings::models(self))
    }

    fn budgets(&self) -> Doing<'_, Budgets> {
        Box::pin(settings::budgets(self))
    }

    fn webhooks(&self) -> Doing<'_, Vec<Webhook>> {
        Box::pin(settings::webhooks(self))
    }

    fn test_webhook(&self, id: &str) -> Doing<'_, WebhookTested> {
        Box::pin(settings::test_webhook(self, id.to_owned()))
    }

    fn lanes(&self) -> Doing<'_, Vec<Lane>> {
        let lanes = self.0.gateway.lanes(clock::now().at).into_iter();
        let lanes = lanes.map(|(upstream, model, state)| Lane::of(upstream, model, state));
        let lanes = lanes.collect();
        Box::pin(async { Ok(lanes) })
    }
}

/// The id of a session that a run is looked for by.
fn run_of(session: &SessionId) -> Result<RunId, DeedError> {
    let unknown = || DeedError::NotFound(format!("there is no session {}", session.as_str()));
    let (run, _) = session.as_str().rsplit_once('-').ok_or_else(unknown)?;
    Ok(RunId::new(run))
}
