//! A gateway for the agents of one run: started when the first of them needs it, stopped with the run.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state directory, which agents cannot access"
)]

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak, mpsc};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use unstuck_config::section::{OnBudgetReached, OnLoop};
use unstuck_core::agent::{
    Agent, Agents, CommandThroughGateway, CustomApiAddressSign, ParsedAgentCommandLine,
};
use unstuck_core::decision::ModelSwitchReason;
use unstuck_core::event::{BudgetScope, BudgetUnit};
use unstuck_core::money::BudgetRaises;
use unstuck_core::{Event, EventRecord};
use unstuck_files::read_named_text;
use unstuck_gateway::protocol::Protocol;
use unstuck_gateway::{
    CallUsage, Gateway, GatewayError, GatewaySession, GatewaySessionSetup, GatewaySettings,
    RemainingRunBudget,
};
use unstuck_run::runner::{GatewayAttachment, GoBetween, UpcomingAttemptInfo};
use unstuck_store::Store;

use super::attachment::{PrivateGatewayAttachment, UnattachedAttempt};
use super::upstreams::{ApiAddressVariable, from_environment, is_own_gateway};
use super::{
    GatewayKnowledge, follow_decisions, follow_spending, gateway_settings, store_recorder,
};
use crate::config::Config;
use crate::{clock, environment_variables};

/// Size limit of an agent's settings file.
const MAX_SETTINGS_BYTES: u64 = 8 << 20;
/// Environment variable that marks programs behind one of our gateways, so that no second one is started.
const GATEWAY_MARKER: &str = "UNSTUCK_GATEWAY";
/// Environment variables with API keys.
const KEY_VARIABLES: [(&str, Protocol); 5] = [
    ("ANTHROPIC_API_KEY", Protocol::Anthropic),
    ("ANTHROPIC_AUTH_TOKEN", Protocol::Anthropic),
    ("OPENAI_API_KEY", Protocol::OpenAi),
    ("GEMINI_API_KEY", Protocol::Gemini),
    ("GOOGLE_API_KEY", Protocol::Gemini),
];
/// Environment variables that configure a proxy.
const PROXY_VARIABLES: [&str; 4] = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];
const NO_PROXY_VARIABLES: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Mode of the private gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PrivateGatewayMode {
    /// As configured.
    Configured,
    /// Disabled.
    Off,
}

impl PrivateGatewayMode {
    /// Returns the mode for the flag `--no-gateway`.
    pub(crate) fn from_flag(no_gateway: bool) -> Self {
        if no_gateway {
            Self::Off
        } else {
            Self::Configured
        }
    }
}

/// Starts the private gateway on demand and attaches attempts to it.
pub(crate) struct PrivateGateway<'a> {
    config: &'a Config,
    agents: &'a Agents,
    /// Directory for files passed to agents.
    folder: PathBuf,
    env: BTreeMap<String, String>,
    store: &'a Store,
    running: OnceCell<Result<GatewayThread, String>>,
    /// Remaining budget of the run.
    run_budget: Arc<RemainingRunBudget>,
    active_attempts: RefCell<Vec<ActiveAttempt>>,
}

impl<'a> PrivateGateway<'a> {
    /// Creates a gateway that is not started yet; none if disabled.
    pub(crate) fn new(
        wish: PrivateGatewayMode,
        config: &'a Config,
        agents: &'a Agents,
        state: &Path,
        store: &'a Store,
    ) -> Option<Self> {
        if wish == PrivateGatewayMode::Off || !config.gateway().enabled {
            return None;
        }
        Some(Self {
            config,
            agents,
            folder: state.join("gateway"),
            env: environment_variables::all()
                .filter(|(_, value)| !value.is_empty())
                .collect(),
            store,
            running: OnceCell::new(),
            run_budget: Arc::default(),
            active_attempts: RefCell::default(),
        })
    }

    /// Returns how to call an agent, or another program that uses an API, through a gateway; none if it is not wired to
    /// one.
    fn wiring_for(
        &self,
        errand: &UpcomingAttemptInfo<'_>,
        url: &str,
    ) -> Option<(&Agent, CommandThroughGateway)> {
        let any = self.agents.get("command")?;
        let is_known =
            |agent: &&Agent| agent.id() != any.id() && agent.file().call.base_url.is_known();
        let known = errand.agent.and_then(|agent| self.agents.get(agent.id()));
        let known = known.filter(is_known);
        let agent = known.unwrap_or(any);
        let mut through = agent.through_gateway(url, errand.command)?;
        if known.is_none() {
            let used = self.used_protocols(errand);
            let own: Vec<_> = ApiAddressVariable::of_agent(any).collect();
            let is_used = |name: &str| {
                let mut own = own.iter().filter(|one| one.name == name);
                own.any(|one| used.contains(&one.protocol))
            };
            through.env.retain(|(name, _)| is_used(name));
        }
        // The user's value is kept for variables that hold more than a URL.
        let is_own = |name: &String| errand.env.iter().any(|(own, _)| own == name);
        let addresses: Vec<_> = ApiAddressVariable::of_agent(agent)
            .map(|one| one.name)
            .collect();
        let is_more = |name: &String| self.env.contains_key(name) && !addresses.contains(name);
        through
            .env
            .retain(|(name, _)| !is_own(name) && !is_more(name));
        let is_set = |name: &String| is_own(name) || self.env.contains_key(name);
        through.default_env.retain(|(name, _)| !is_set(name));
        through.files.retain(|(name, _)| !is_set(name));
        let is_told = !through.env.is_empty() || through.command != errand.command;
        let variable = |name: &str| {
            let own = errand.env.iter().find(|(own, _)| own == name);
            let value = own.map(|(_, value)| value).or_else(|| self.env.get(name));
            value.map(String::as_str)
        };
        let is_allowed = agent.file().call.base_url.is_allowed_by(variable);
        let is_left = self.has_own_address(agent, Path::new(errand.cwd));
        (is_told && is_allowed && !is_left).then_some((agent, through))
    }

    /// Returns the protocols that a program seems to use, judging by its environment.
    fn used_protocols(&self, errand: &UpcomingAttemptInfo<'_>) -> Vec<Protocol> {
        let is_own = |name: &str| errand.env.iter().any(|(own, _)| own == name);
        let is_set = |name: &str| self.env.contains_key(name) || is_own(name);
        let keys = KEY_VARIABLES.into_iter().filter(|(name, _)| is_set(name));
        let addresses = ApiAddressVariable::all(None, self.agents).into_iter();
        let addresses = addresses.filter(|one| self.env.contains_key(&one.name));
        let addresses = addresses.map(|one| one.protocol);
        keys.map(|(_, protocol)| protocol)
            .chain(addresses)
            .collect()
    }

    /// True if a settings file of the user sets the agent's API address in a way that we would override.
    fn has_own_address(&self, agent: &Agent, cwd: &Path) -> bool {
        let mut files = agent.file().call.base_url.indicator_files();
        files.any(|(file, sign)| self.file_contains(file, sign, cwd))
    }

    fn file_contains(&self, file: &str, sign: &CustomApiAddressSign, cwd: &Path) -> bool {
        let path = match (file.strip_prefix("~/"), file.strip_prefix('$')) {
            (Some(rest), _) => environment_variables::home().map(|home| home.join(rest)),
            (_, Some(rest)) => {
                let (name, rest) = rest.split_once('/').unwrap_or((rest, ""));
                let folder = self.env.get(name).map(PathBuf::from);
                folder.map(|folder| match rest {
                    "" => folder,
                    rest => folder.join(rest),
                })
            }
            _ => Some(cwd.join(file)),
        };
        let text = path.and_then(|path| read_named_text(&path, MAX_SETTINGS_BYTES).ok());
        text.is_some_and(|text| text.contains(&sign.contains))
    }

    /// True if the agents are already behind one of our gateways.
    fn is_behind_gateway(&self) -> bool {
        let variables = ApiAddressVariable::all(None, self.agents);
        let mut values = variables.iter().filter_map(|one| self.env.get(&one.name));
        self.env.contains_key(GATEWAY_MARKER) || values.any(|url| is_own_gateway(url))
    }

    fn ensure_running(
        &self,
        agent: &Agent,
        errand: &UpcomingAttemptInfo<'_>,
    ) -> Result<&GatewayThread, &str> {
        let start = || {
            if let Some(file) = self.config.ignored_upstreams() {
                let (path, why) = (file.file.display(), &file.reason);
                anyhow::bail!("{path} {why}, so its [gateway.upstreams] are ignored");
            }
            let variables = ApiAddressVariable::all(Some(agent), self.agents);
            let section = self.config.gateway();
            let upstreams = from_environment(section, &variables, &self.env)?;
            let mut settings = gateway_settings(section, upstreams, errand.policy.clone());
            settings.is_private = true;
            let project = errand.project.to_owned();
            let knowledge = GatewayKnowledge::new(self.config)?;
            GatewayThread::start(settings, knowledge, self.store.clone(), project)
        };
        let running = self
            .running
            .get_or_init(|| start().map_err(|error| format!("{error:#}")));
        running.as_ref().map_err(String::as_str)
    }

    /// Returns the session of an attempt: a new one, or that of the previous attempt. Its budget is the configured one
    /// plus approved extensions; resuming adds nothing.
    fn session_for(
        &self,
        running: &GatewayThread,
        gateway: &Gateway,
        errand: &UpcomingAttemptInfo<'_>,
    ) -> Arc<GatewaySession> {
        let past = running.prior_events(self.store, errand);
        let session = match gateway.session(errand.session.as_str()) {
            Some(session) => {
                session.begin_attempt(errand.is_probe);
                session
            }
            None => self.begin_session(gateway, errand, &past),
        };
        session.raise_cost_to(past.spent);
        let (own, today) = self.approved_extra(gateway, errand, &past);
        gateway.allow_spending(&session, own, today);
        session
    }

    fn begin_session(
        &self,
        gateway: &Gateway,
        errand: &UpcomingAttemptInfo<'_>,
        past: &PriorRun,
    ) -> Arc<GatewaySession> {
        let session = gateway.register(GatewaySessionSetup {
            name: errand.session.as_str().to_owned(),
            run: errand.run.clone(),
            session: errand.session.clone(),
            project: errand.project.to_owned(),
            policy: errand.policy.clone(),
            budget: self.config.gateway().budgets.session,
            spent: past.spent,
            escalates: false,
            agent: errand.agent.map(|agent| agent.id().to_owned()),
        });
        // Applies model switches made while another process served the session.
        for recorded in &past.events {
            if let Event::ModelSwitched(moved) = &recorded.event
                && moved.session.as_ref() == Some(errand.session)
                && moved.switch.reason == ModelSwitchReason::Manual
            {
                session.switch_model(&moved.switch.from_model, &moved.switch.to_model);
            }
        }
        session
    }

    /// Returns the approved extensions of a session's budget and of today's budget.
    fn approved_extra(
        &self,
        gateway: &Gateway,
        errand: &UpcomingAttemptInfo<'_>,
        past: &PriorRun,
    ) -> (Option<f64>, Option<f64>) {
        let (budgets, now) = (gateway.budgets(), clock::now().at);
        let raised = BudgetRaises::from_events(&past.events);
        let limit = |scope, configured: Option<f64>| {
            let configured = configured?;
            let limit =
                raised.effective_limit(scope, BudgetUnit::Usd, errand.session, configured, now);
            (limit > configured).then_some(limit)
        };
        let own = limit(BudgetScope::Session, budgets.session);
        (own, limit(BudgetScope::GatewayDay, budgets.day))
    }

    /// Tracks the run budget of an attempt, shared with the other active attempts of the run.
    fn track_run_budget(
        &self,
        session: &Arc<GatewaySession>,
        errand: &UpcomingAttemptInfo<'_>,
    ) -> Arc<()> {
        let token = Arc::new(());
        let mut under_way = self.active_attempts.borrow_mut();
        under_way
            .retain(|one| one.marker.strong_count() > 0 && one.session.name() != session.name());
        let used = under_way.iter().fold(CallUsage::default(), |sum, one| {
            sum.plus(one.session.usage().since(one.usage_before))
        });
        under_way.push(ActiveAttempt {
            marker: Arc::downgrade(&token),
            session: Arc::clone(session),
            usage_before: session.usage(),
        });
        self.run_budget
            .set_limits(errand.budgets, used, clock::now().at);
        session.set_run_budget(Some(Arc::clone(&self.run_budget)));
        token
    }

    fn variables(&self, through: CommandThroughGateway, url: &str) -> Vec<(String, String)> {
        let mut set = through.env;
        set.extend(through.default_env);
        for (name, content) in through.files {
            let path = self.folder.join(format!("{name}.json"));
            let written =
                std::fs::create_dir_all(&self.folder).and_then(|()| std::fs::write(&path, content));
            // Without the gateway, the agent still retries by itself.
            if written.is_ok() {
                set.push((name, path.display().to_string()));
            }
        }
        if PROXY_VARIABLES
            .iter()
            .any(|name| self.env.contains_key(*name))
        {
            let here = "127.0.0.1,localhost";
            set.extend(NO_PROXY_VARIABLES.iter().map(|name| {
                let value = match self.env.get(*name) {
                    Some(own) => format!("{own},{here}"),
                    None => here.to_owned(),
                };
                ((*name).to_owned(), value)
            }));
        }
        set.push((GATEWAY_MARKER.to_owned(), url.to_owned()));
        set
    }

    /// True if an attempt is ended when its agent is stuck in a loop. Not for interactive agents, and not if the model
    /// is told instead.
    fn ends_on_loop(&self, errand: &UpcomingAttemptInfo<'_>) -> bool {
        let headless = |agent| ParsedAgentCommandLine::parse(agent, errand.command).is_headless();
        let alone = errand.is_role || errand.agent.is_some_and(headless);
        let is_told = self.config.gateway().on_loop == OnLoop::Note;
        alone && !is_told && self.config.stuck().enabled
    }
}

impl GoBetween for PrivateGateway<'_> {
    fn attach(&self, errand: &UpcomingAttemptInfo<'_>) -> Option<Box<dyn GatewayAttachment>> {
        // With the policy off there is no gateway, so that the agent keeps its own retries.
        if !errand.policy.enabled || self.is_behind_gateway() {
            return None;
        }
        let (agent, _) = self.wiring_for(errand, "http://127.0.0.1")?;
        let running = match self.ensure_running(agent, errand) {
            Ok(running) => running,
            Err(why) => {
                return Some(Box::new(UnattachedAttempt {
                    command: errand.command.to_vec(),
                    reason: Some(why.to_owned()),
                }));
            }
        };
        let gateway = running.gateway()?;
        let notices = gateway.subscribe();
        let session = self.session_for(running, gateway, errand);
        let under_way = self.track_run_budget(&session, errand);
        let asks = self.config.gateway().budgets.on_reached == OnBudgetReached::Ask;
        let url = format!("http://{}/s/{}", gateway.address(), session.name());
        let (_, through) = self.wiring_for(errand, &url)?;
        Some(Box::new(PrivateGatewayAttachment {
            command: through.command.clone(),
            variables: self.variables(through, &url),
            usage_before: session.usage(),
            session,
            notices,
            ends_on_loop: self.ends_on_loop(errand),
            asks_about_budgets: asks,
            active_marker: under_way,
        }))
    }
}

/// A gateway on a thread of its own.
struct GatewayThread {
    gateway: Option<Arc<Gateway>>,
    runtime: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl GatewayThread {
    fn start(
        settings: GatewaySettings,
        knowledge: GatewayKnowledge,
        store: Store,
        project: String,
    ) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the runtime")?;
        let handle = runtime.handle().clone();
        let (started, starting) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let serving = GatewayThreadInput {
            settings,
            knowledge,
            store,
            project,
            started,
            stopped,
        };
        let thread = std::thread::Builder::new()
            .name("gateway".to_owned())
            .spawn(move || runtime.block_on(serving.serve()))?;
        let gateway = starting
            .recv()
            .context("the gateway stopped while starting")??;
        Ok(Self {
            gateway: Some(gateway),
            runtime: handle,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    fn gateway(&self) -> Option<&Gateway> {
        self.gateway.as_deref()
    }

    /// Returns the events of the run before this attempt.
    fn prior_events(&self, store: &Store, errand: &UpcomingAttemptInfo<'_>) -> PriorRun {
        let (store, run) = (store.clone(), errand.run.clone());
        let session = errand.session.clone();
        let (send, past) = mpsc::channel();
        self.runtime.spawn(async move {
            let events = store.load(&run).await.unwrap_or_default();
            let story = store.timeline(&run).await.ok().flatten();
            let sessions = story.map(|story| story.sessions).unwrap_or_default();
            let own = sessions.into_iter().find(|one| one.id == session);
            let spent = own.map_or(0.0, |own| own.cost_usd);
            // The caller waits for it.
            let _ = send.send(PriorRun { events, spent });
        });
        past.recv().unwrap_or_default()
    }
}

/// History of a run before an attempt.
#[derive(Default)]
struct PriorRun {
    events: Vec<EventRecord>,
    /// Cost of the session so far, in USD.
    spent: f64,
}

/// An active attempt.
struct ActiveAttempt {
    /// Expires when the attempt ends.
    marker: Weak<()>,
    session: Arc<GatewaySession>,
    /// Usage of its session before the attempt.
    usage_before: CallUsage,
}

/// Input of a gateway thread.
struct GatewayThreadInput {
    settings: GatewaySettings,
    knowledge: GatewayKnowledge,
    store: Store,
    project: String,
    started: mpsc::Sender<Result<Arc<Gateway>, GatewayError>>,
    stopped: oneshot::Receiver<()>,
}

impl GatewayThreadInput {
    async fn serve(self) {
        let books = store_recorder(self.store.clone(), self.project, None);
        let knowledge = Arc::new(self.knowledge);
        let gateway = Gateway::start(self.settings, knowledge, Arc::clone(&books) as _);
        let gateway = gateway.await.map(Arc::new);
        if let Ok(gateway) = &gateway {
            follow_spending(gateway, &self.store).await;
        }
        let own = gateway.as_ref().ok().map(Arc::clone);
        // If sending fails, the receiver is gone.
        let _ = self.started.send(gateway);
        let Some(gateway) = own else {
            return;
        };
        tokio::select! {
            _ = self.stopped => {}
            () = follow_decisions(&gateway, &self.store) => {}
        }
        if let Some(gateway) = Arc::into_inner(gateway) {
            gateway.stop().await;
        }
        books.close().await;
    }
}

impl Drop for GatewayThread {
    fn drop(&mut self) {
        self.gateway = None;
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            // The error of the thread has already been reported.
            let _ = thread.join();
        }
    }
}
