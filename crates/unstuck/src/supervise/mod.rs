//! Sets up what a run needs (store, reaper, signals, screen) and drives it.

mod chance;
mod keep_awake;
mod passthrough;
mod pipeline_screen;
mod screen;
mod signals;
mod story;
mod substitute_store;
mod wait_words;

pub(crate) use pipeline_screen::PipelineScreen;
pub(crate) use screen::{Screen, Told};
pub(crate) use signals::listen;

use std::cell::{Cell, OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use tokio::sync::watch;
use unstuck_core::action::Prompts;
use unstuck_core::agent::Agents;
use unstuck_core::decision::{Catalog, Draw};
use unstuck_core::knowledge::Playbook;
use unstuck_core::question::Patience;
use unstuck_core::redact::Redactor;
use unstuck_core::repair::Book;
use unstuck_core::settings::ProjectSettings;
use unstuck_core::{Classifier, RunId};
use unstuck_run::blobs::{BlobError, hash};
use unstuck_run::clock::Clock;
use unstuck_run::drive::pipeline::{Again, Conductor, Plan, Selection};
use unstuck_run::drive::{
    Announcer, Engine, Finished, GoBetween, Knowledge, Known, KnowsRepairs, RepairTerms, Repairer,
    Reporter, Request, RunError, RunReporter, Supervisors, Workshop, forget_stop_request,
};
use unstuck_run::process::{ReaperProgram, Stdin, Stop};
use unstuck_store::{Location, Store};

use self::keep_awake::KeepAwake;
use self::substitute_store::SubstituteStore;
use crate::config::Config;
use crate::environment;
use crate::gateway::{Private, Wish};
use crate::notifying::{AtWork, Notifying};
use crate::project_changes;
use crate::repairs::Repairs;
use crate::report::hinted;
use crate::session::Session;
use crate::trusting;
use crate::unrecorded;

/// What is to be driven.
enum Task<'a> {
    Start(Box<Request>, &'a mut dyn Reporter),
    Resume(Resumed, &'a mut dyn Reporter),
    Conduct(Box<Pipelined<'a>>, &'a mut dyn RunReporter),
}

impl Task<'_> {
    /// Removes a request to stop that belongs to an earlier process of the same run.
    fn forget_stop_request(&self, state: &Path) {
        match self {
            Self::Resume(resumed, _) => forget_stop_request(state, &resumed.run),
            Self::Conduct(pipeline, _) => {
                if let Conducted::Again(run, _) = &pipeline.how {
                    forget_stop_request(state, run);
                }
            }
            Self::Start(..) => {}
        }
    }

    /// Keeps what the store could not take of a run that has ended, and tells where.
    fn keep_unrecorded(&mut self, session: &Session<'_>, finished: &Finished) {
        if finished.unrecorded.is_empty() {
            return;
        }
        let run = &finished.run;
        let kept = unrecorded::keep(session.store, run, &finished.unrecorded);
        let told = match kept {
            Ok(path) => format!(
                "the end of run {run} is not in the store, which still cannot be written; it is kept in {} and recorded by the next \
                 unstuck command once there is room",
                path.display()
            ),
            Err(error) => format!(
                "the end of run {run} is not in the store, which still cannot be written, nor could it be kept elsewhere ({error}); \
                 what happened is in .unstuck/runs/{run} of its project"
            ),
        };
        match self {
            Self::Start(_, reporter) | Self::Resume(_, reporter) => reporter.warn(&told),
            Self::Conduct(_, reporter) => reporter.warn(&told),
        }
    }

    /// The project of a pipeline in which something may be repaired.
    fn project(&self) -> Option<PathBuf> {
        match self {
            Self::Conduct(pipeline, _) => {
                let plan = &pipeline.plan;
                plan.repair.as_ref().map(|_| plan.project.clone())
            }
            Self::Start(..) | Self::Resume(..) => None,
        }
    }
}

/// A single command that is resumed.
pub(crate) struct Resumed {
    pub(crate) run: RunId,
    /// How long it is tried from now on.
    pub(crate) keep_trying: Option<Duration>,
    /// The hash of what it goes by of the project's files.
    project_settings: String,
}

impl Resumed {
    pub(crate) fn new(run: &RunId, keep_trying: Option<Duration>, config: &Config) -> Self {
        let settings = project_changes::of_command(config);
        Self {
            run: run.clone(),
            keep_trying,
            project_settings: hash(settings.as_bytes()),
        }
    }
}

/// A pipeline that is to be conducted.
pub(crate) struct Pipelined<'a> {
    pub(crate) plan: Plan,
    pub(crate) how: Conducted,
    /// Reads its configuration again.
    pub(crate) reload: &'a dyn Fn(Option<&ProjectSettings>) -> Result<Plan>,
    /// What is told before anything runs.
    pub(crate) notes: Vec<String>,
    /// Whether the agents get a gateway.
    pub(crate) gateway: Wish,
}

/// How a pipeline is conducted.
pub(crate) enum Conducted {
    /// From its beginning.
    Start(Selection),
    /// Where it stopped.
    Again(RunId, Again),
}

/// What the user knows, and what comes on standard input.
struct Setting<'a> {
    known: ConfiguredKnown<'a>,
    stdin: Stdin,
    /// What may be repaired, and in which project.
    repair: Option<(RepairTerms, PathBuf)>,
    /// Whether the agents get a gateway.
    gateway: Wish,
    /// What a single command goes by of the project's files.
    project_settings: Option<String>,
}

impl Setting<'_> {
    /// Keeps what a single command goes by of the project's files.
    fn keep_project_settings(&self, state: &Path) {
        if let Some(settings) = &self.project_settings {
            project_changes::keep(settings, state);
        }
    }
}

/// What is known, with the user's own additions.
pub(crate) struct ConfiguredKnown<'a> {
    config: &'a Config,
    agents: &'a Agents,
    prompts: OnceCell<Prompts>,
}

impl<'a> ConfiguredKnown<'a> {
    pub(crate) fn new(config: &'a Config, agents: &'a Agents) -> Self {
        Self {
            config,
            agents,
            prompts: OnceCell::new(),
        }
    }
}

impl Known for ConfiguredKnown<'_> {
    fn classifier(&self) -> &Classifier {
        self.config.classifier_or_built_in()
    }

    fn playbook(&self) -> &Playbook {
        self.config.playbook()
    }

    fn catalog(&self) -> &Catalog {
        self.config.catalog()
    }

    fn prompts(&self) -> &Prompts {
        // Whoever uses templates of their own has had them checked before anything runs.
        let read = || {
            self.config
                .prompts()
                .unwrap_or_else(|_| Prompts::embedded())
        };
        self.prompts.get_or_init(read)
    }

    fn agents(&self) -> &Agents {
        self.agents
    }
}

impl KnowsRepairs for ConfiguredKnown<'_> {
    fn book(&self) -> &Book {
        self.config.book_or_built_in()
    }
}

/// A run that has come to its end, or to a stop, and where that leaves standard output.
#[derive(Debug)]
pub(crate) struct Supervised {
    /// How it ended.
    pub(crate) finished: Finished,
    /// Whether the last line on standard output has not come to its end.
    pub(crate) is_line_open: bool,
}

impl From<Finished> for Supervised {
    fn from(finished: Finished) -> Self {
        Self {
            finished,
            is_line_open: false,
        }
    }
}

/// Runs a command to its end.
pub(crate) fn start(
    session: &Session<'_>,
    config: &Config,
    mut request: Request,
    told: Told,
    repairs: Repairs,
    gateway: Wish,
) -> Result<Supervised> {
    let project_settings = project_changes::of_command(config);
    request.options.project_settings = Some(hash(project_settings.as_bytes()));
    let mut screen = Screen::new(session, told, request.options.tty);
    for note in &repairs.notes {
        screen.say(note);
    }
    let setting = Setting {
        known: ConfiguredKnown::new(config, config.recognized_agents()),
        stdin: Stdin::inherited().map_err(RunError::from)?,
        repair: repairs.terms.map(|terms| (terms, request.project.clone())),
        gateway,
        project_settings: Some(project_settings),
    };
    let task = Task::Start(Box::new(request), &mut screen);
    let finished = drive(session, setting, 1, task)?;
    Ok(Supervised {
        finished,
        is_line_open: screen.is_line_open(),
    })
}

/// Runs a command of the demo: with agents of its own, and without what comes on standard input.
pub(crate) fn stage(
    session: &Session<'_>,
    agents: &Agents,
    request: Request,
    reporter: &mut dyn Reporter,
) -> Result<Finished> {
    // What the user has configured could make the same failures end in another way.
    let config = Config::default();
    let setting = Setting {
        known: ConfiguredKnown::new(&config, agents),
        stdin: Stdin::null(),
        repair: None,
        gateway: Wish::Never,
        project_settings: None,
    };
    drive(
        session,
        setting,
        1,
        Task::Start(Box::new(request), reporter),
    )
}

/// How a run of one command was begun, as far as it counts for taking it up again.
pub(crate) struct Before {
    pub(crate) repairs: Repairs,
    pub(crate) project: PathBuf,
    /// Whether it has a terminal of its own.
    pub(crate) tty: bool,
}

/// Takes a run of one command up again, and tries it for so long from now on where a person says how long.
pub(crate) fn resume(
    session: &Session<'_>,
    config: &Config,
    resumed: Resumed,
    told: Told,
    before: Before,
    gateway: Wish,
) -> Result<Supervised> {
    let mut screen = Screen::new(session, told, before.tty);
    let (repairs, project) = (before.repairs, before.project);
    for note in &repairs.notes {
        screen.say(note);
    }
    let setting = Setting {
        known: ConfiguredKnown::new(config, config.recognized_agents()),
        stdin: Stdin::inherited().map_err(RunError::from)?,
        repair: repairs.terms.map(|terms| (terms, project)),
        gateway,
        project_settings: Some(project_changes::of_command(config)),
    };
    let finished = drive(session, setting, 1, Task::Resume(resumed, &mut screen))?;
    Ok(Supervised {
        finished,
        is_line_open: screen.is_line_open(),
    })
}

/// Runs a pipeline, or takes it up again.
pub(crate) fn conduct(
    session: &Session<'_>,
    config: &Config,
    pipeline: Pipelined<'_>,
    told: Told,
) -> Result<Finished> {
    let mut screen = PipelineScreen::new(session, told);
    for note in &pipeline.notes {
        screen.warn(note);
    }
    let setting = Setting {
        known: ConfiguredKnown::new(config, config.agents()),
        stdin: Stdin::null(),
        // The plan tells what may be repaired.
        repair: None,
        gateway: pipeline.gateway,
        // The conductor keeps it.
        project_settings: None,
    };
    let parallel = pipeline.plan.parallel;
    let task = Task::Conduct(Box::new(pipeline), &mut screen);
    drive(session, setting, parallel, task)
}

fn drive(
    session: &Session<'_>,
    mut setting: Setting<'_>,
    parallel: u32,
    mut task: Task<'_>,
) -> Result<Finished> {
    setting.known.config.prepare()?;
    let redactor = Arc::new(environment::redactor());
    let driven = drive_in(session, &mut setting, parallel, &mut task, &redactor);
    let (error, request, reporter) = match (driven, &mut task) {
        (Ok(Err(RunError::Unrecorded(error))), Task::Start(request, reporter)) => {
            (error, request, reporter)
        }
        (driven, _) => {
            let finished = driven?.map_err(explained)?;
            task.keep_unrecorded(session, &finished);
            return Ok(finished);
        }
    };
    let substitute = SubstituteStore::make(session.store, error, &mut **reporter)?;
    // What was spent and allowed before is not known there.
    request.policy.auto_escalate = false;
    setting.repair = None;
    let session = Session {
        store: substitute.location(),
        ..*session
    };
    let finished = drive_in(&session, &mut setting, parallel, &mut task, &redactor)?;
    let finished = finished.map_err(explained)?;
    if let Task::Start(_, reporter) = &mut task {
        substitute.hand_over(&finished.run, &mut **reporter);
    }
    Ok(finished)
}

fn drive_in(
    session: &Session<'_>,
    setting: &mut Setting<'_>,
    parallel: u32,
    task: &mut Task<'_>,
    redactor: &Arc<Redactor>,
) -> Result<Result<Finished, RunError>> {
    crate::runtime::block_on(async {
        // The reaper comes up while the store is being opened.
        let supervisors =
            Supervisors::start(ReaperProgram::own(), parallel).map_err(RunError::from)?;
        let opened = crate::store::open_unexplained(session.store, Arc::clone(redactor)).await;
        let store = match opened {
            Ok(store) => store,
            Err(error) => return Ok(Err(RunError::from(error).unbegun())),
        };
        let notifying = Notifying::new(setting.known.config, session);
        let courier = notifying.is_some().then(|| AtWork::start(&store));
        let (stop, stopped) = watch::channel(Stop::No);
        signals::listen(stop, supervisors.remote())?;
        let (environment, newest) = (environment::whole(), Cell::new(None));
        let surveyed = OnceCell::new();
        let state = state_folder(session.store);
        setting.keep_project_settings(&state);
        task.forget_stop_request(&state);
        let project = setting.repair.as_ref().map(|(_, project)| project.clone());
        let project = project.or_else(|| task.project());
        let committed = trusting::committed(project.as_deref());
        let config = setting.known.config;
        let at_start = trusting::accepted_at_start(config, project.as_deref(), &*committed);
        let accepted = |project: &Path| {
            let mut accepted = at_start.clone();
            accepted.extend(trusting::accepted(project));
            accepted
        };
        let workshop = Workshop {
            knows: &setting.known,
            state: &state,
            committed: &*committed,
            accepted: &accepted,
            own: &environment::own_folders(session.store),
            environment: &environment,
            surveyed: &surveyed,
            newest: &newest,
        };
        let agents = setting.known.agents;
        let private = Private::new(setting.gateway, config, agents, &state, &store);
        let repair = setting.repair.as_ref();
        let home = environment::variable("HOME").map(PathBuf::from);
        let around = Around {
            workshop,
            repairer: repair.map(|(terms, project)| Repairer {
                terms,
                project,
                workshop,
            }),
            store: &store,
            redactor,
            supervisors: &supervisors,
            known: &setting.known,
            state: &state,
            stop: stopped,
            patience: &config.escalations().patience(),
            announcer: notifying.as_ref().map(|hooks| hooks as &dyn Announcer),
            go_between: private.as_ref().map(|private| private as &dyn GoBetween),
            home: home.as_deref(),
            heartbeat: config.run().heartbeat,
        };
        let awake = config.run().keep_awake.then(KeepAwake::start);
        let finished = Box::pin(around.perform(task, &mut setting.stdin)).await;
        drop(awake);
        if let Ok(finished) = &finished {
            forget_stop_request(&state, &finished.run);
        }
        // What it has seen is on disk before the store is closed.
        drop(private);
        if let Some(courier) = courier {
            courier.finish().await;
        }
        let closed = store.close().await;
        if finished.is_ok() {
            closed.map_err(crate::store::explained)?;
        }
        Ok(finished)
    })
}

/// What a run finds around it.
struct Around<'a> {
    store: &'a Store,
    redactor: &'a Redactor,
    supervisors: &'a Supervisors,
    known: &'a dyn Known,
    state: &'a Path,
    stop: watch::Receiver<Stop>,
    workshop: Workshop<'a>,
    repairer: Option<Repairer<'a>>,
    patience: &'a Patience,
    announcer: Option<&'a dyn Announcer>,
    go_between: Option<&'a dyn GoBetween>,
    home: Option<&'a Path>,
    heartbeat: Duration,
}

impl<'a> Around<'a> {
    /// Drives what is to be driven, to its end or to a stop.
    async fn perform(&self, task: &mut Task<'_>, stdin: &mut Stdin) -> Result<Finished, RunError> {
        let mut draw = chance::draw;
        match task {
            Task::Start(request, reporter) => {
                let mut engine = self.engine(&mut **reporter, stdin, &mut draw);
                Box::pin(engine.start((**request).clone())).await
            }
            Task::Resume(resumed, reporter) => {
                let mut engine = self.engine(&mut **reporter, stdin, &mut draw);
                let settings = Some(resumed.project_settings.clone());
                Box::pin(engine.resume(&resumed.run, resumed.keep_trying, settings)).await
            }
            Task::Conduct(pipeline, reporter) => {
                let reload = |accepted: Option<&ProjectSettings>| {
                    (pipeline.reload)(accepted).map_err(|error| format!("{error:#}"))
                };
                let plan = pipeline.plan.clone();
                let conductor = self.conductor(&mut **reporter, plan, &reload, &mut draw);
                match &pipeline.how {
                    Conducted::Start(selection) => Box::pin(conductor.start(selection)).await,
                    Conducted::Again(run, again) => Box::pin(conductor.resume(run, again)).await,
                }
            }
        }
    }

    fn knowledge(&self) -> Knowledge<'a> {
        Knowledge {
            known: self.known,
            own_playbook: None,
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    fn engine(
        &self,
        reporter: &'a mut dyn Reporter,
        stdin: &'a mut Stdin,
        draws: &'a mut dyn FnMut() -> Draw,
    ) -> Engine<'a> {
        Engine {
            store: self.store,
            knowledge: self.knowledge(),
            redactor: self.redactor,
            supervisors: self.supervisors,
            stdin,
            reporter,
            stop: self.stop.clone(),
            clock: Clock::System,
            network: environment::network_probe(),
            home: self.home,
            heartbeat: self.heartbeat,
            draws,
            state: self.state,
            role: None,
            repairer: self.repairer,
            patience: self.patience,
            announcer: self.announcer,
            go_between: self.go_between,
        }
    }

    fn conductor(
        &self,
        reporter: &'a mut dyn RunReporter,
        plan: Plan,
        reload: &'a dyn Fn(Option<&ProjectSettings>) -> Result<Plan, String>,
        draws: &'a mut dyn FnMut() -> Draw,
    ) -> Conductor<'a> {
        Conductor {
            store: self.store,
            knowledge: self.knowledge(),
            redactor: self.redactor,
            supervisors: self.supervisors,
            reporter: Mutex::new(reporter),
            stop: self.stop.clone(),
            clock: Clock::System,
            network: environment::network_probe(),
            home: self.home,
            heartbeat: self.heartbeat,
            draws: RefCell::new(draws),
            state: self.state,
            plan: RefCell::new(Rc::new(plan)),
            reload,
            workshop: self.workshop,
            announcer: self.announcer,
            go_between: self.go_between,
        }
    }
}

/// An error of the store comes with what to do about it.
fn explained(error: RunError) -> anyhow::Error {
    match error {
        RunError::Store(error) | RunError::Unrecorded(error) => crate::store::explained(error),
        RunError::LostOutput { ref role, .. } => hinted(
            error.to_string(),
            format!("`unstuck resume --restart {role}` makes it again, with all that depend on it"),
        ),
        RunError::File { path, source } | RunError::Output(BlobError { path, source }) => hinted(
            format!("cannot keep {}: {source}", path.display()),
            "see to it (is the disk full?), then `unstuck resume` goes on where it was",
        ),
        other => other.into(),
    }
}

/// Where what is needed to take a run up again is kept: beside the store.
pub(crate) fn state_folder(store: &Location) -> PathBuf {
    store.path().with_extension("d")
}
