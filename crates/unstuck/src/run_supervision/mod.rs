//! Sets up the environment of a run (store, reaper, signals, screen) and supervises it.

mod command_screen;
mod event_lines;
mod keep_awake;
mod output_passthrough;
mod pipeline_screen;
mod randomness;
mod signals;
mod substitute_store;
mod wait_lines;

pub(crate) use command_screen::{CommandScreen, Verbosity};
pub(crate) use pipeline_screen::PipelineScreen;
pub(crate) use signals::listen;

use std::cell::{Cell, OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use tokio::sync::watch;
use unstuck_core::agent::Agents;
use unstuck_core::decision::{ModelCatalog, RandomDraw};
use unstuck_core::escalation::EscalationDeadlinePolicy;
use unstuck_core::knowledge::RecoveryKnowledge;
use unstuck_core::project_settings_snapshot::ProjectSettingsSnapshot;
use unstuck_core::recovery_plan::PromptNoteTemplates;
use unstuck_core::redact::Redactor;
use unstuck_core::repair::RepairCatalog;
use unstuck_core::{Classifier, RunId};
use unstuck_run::blobs::{BlobError, content_hash};
use unstuck_run::clock::Clock;
use unstuck_run::process::{AttemptStopRequest, ReaperProgram, Stdin};
use unstuck_run::runner::pipeline::{
    PartialRunSelection, PipelineResumeOptions, PipelineRunner, PipelineSpec,
};
use unstuck_run::runner::{
    ChildSupervisorPool, GoBetween, NotificationBuilder, PipelineReporter, RepairCatalogProvider,
    RepairCoordinator, RepairSettings, ResumedSettings, RunError, RunKnowledgeBase,
    RunKnowledgeProvider, RunRequest, RunResult, SessionReporter, SessionRunner,
    SharedRepairContext, clear_stop_request,
};
use unstuck_store::{Store, StoreLocation};

use self::keep_awake::KeepAwake;
use self::substitute_store::SubstituteStore;
use crate::command_context::CommandContext;
use crate::config::Config;
use crate::effective_repair_settings::EffectiveRepairSettings;
use crate::environment_variables;
use crate::error_report::error_with_hint;
use crate::event_spill;
use crate::gateway::{PrivateGateway, PrivateGatewayMode};
use crate::notifications::{ConfiguredNotifier, NotificationDeliveryTask};
use crate::project_setting_changes;
use crate::project_trust;

/// The task to supervise.
enum RunTask<'a> {
    Start(Box<RunRequest>, &'a mut dyn SessionReporter),
    Resume(CommandRunToResume, &'a mut dyn SessionReporter),
    Pipeline(Box<PipelineTask<'a>>, &'a mut dyn PipelineReporter),
}

impl RunTask<'_> {
    /// Removes a stop request left by an earlier process of the same run.
    fn forget_stop_request(&self, state: &Path) {
        match self {
            Self::Resume(resumed, _) => clear_stop_request(state, &resumed.run),
            Self::Pipeline(pipeline, _) => {
                if let PipelineStartMode::Resume(run, _) = &pipeline.mode {
                    clear_stop_request(state, run);
                }
            }
            Self::Start(..) => {}
        }
    }

    /// Saves events of an ended run that the store could not take, and reports where.
    fn save_unrecorded(&mut self, session: &CommandContext<'_>, finished: &RunResult) {
        if finished.unrecorded.is_empty() {
            return;
        }
        let run = &finished.run;
        let kept = event_spill::spill(session.store, run, &finished.unrecorded);
        let told = match kept {
            Ok(path) => format!(
                "cannot record the end of run {run}: the store is still not writable; saved to {}; the next unstuck command records it",
                path.display()
            ),
            Err(error) => format!(
                "cannot record the end of run {run}: the store is still not writable, and saving it elsewhere failed ({error}); \
                 see .unstuck/runs/{run} in its project"
            ),
        };
        match self {
            Self::Start(_, reporter) | Self::Resume(_, reporter) => reporter.warn(&told),
            Self::Pipeline(_, reporter) => reporter.warn(&told),
        }
    }

    /// Returns the project of a pipeline in which repairs are possible.
    fn project(&self) -> Option<PathBuf> {
        match self {
            Self::Pipeline(pipeline, _) => {
                let plan = &pipeline.plan;
                plan.repair.as_ref().map(|_| plan.project.clone())
            }
            Self::Start(..) | Self::Resume(..) => None,
        }
    }
}

/// A single command to resume.
pub(crate) struct CommandRunToResume {
    pub(crate) run: RunId,
    /// Time limit for retries from now on.
    pub(crate) keep_trying: Option<Duration>,
    /// The project settings that apply to it.
    settings: ResumedSettings,
    /// The settings with all changes, in stored form.
    written: String,
}

impl CommandRunToResume {
    pub(crate) fn new(run: &RunId, keep_trying: Option<Duration>, config: &Config) -> Self {
        let in_effect = project_setting_changes::settings_of_command(config);
        let written = project_setting_changes::written_settings_of_command(config);
        Self {
            run: run.clone(),
            keep_trying,
            settings: ResumedSettings {
                in_effect: content_hash(in_effect.as_bytes()),
                held: config.unapproved_changes().to_vec(),
                written: content_hash(written.as_bytes()),
            },
            written,
        }
    }
}

/// A pipeline to run.
pub(crate) struct PipelineTask<'a> {
    pub(crate) plan: PipelineSpec,
    pub(crate) mode: PipelineStartMode,
    /// Reloads its configuration.
    pub(crate) reload: &'a dyn Fn(Option<&ProjectSettingsSnapshot>) -> Result<PipelineSpec>,
    /// Notes to print before the start.
    pub(crate) notes: Vec<String>,
    /// Mode of the private gateway.
    pub(crate) gateway: PrivateGatewayMode,
}

/// The way in which a pipeline is started.
pub(crate) enum PipelineStartMode {
    /// From the beginning.
    Start(PartialRunSelection),
    /// Resume from where it stopped.
    Resume(RunId, PipelineResumeOptions),
}

/// The user's knowledge, and the standard input.
struct RunInputs<'a> {
    known: ConfiguredKnowledge<'a>,
    stdin: Stdin,
    /// Repair settings and the project that they apply to.
    repair: Option<(RepairSettings, PathBuf)>,
    /// Mode of the private gateway.
    gateway: PrivateGatewayMode,
    /// Project settings that apply to a single command.
    project_settings: Option<String>,
}

impl RunInputs<'_> {
    /// Saves the project settings that apply to a single command.
    fn keep_project_settings(&self, state: &Path) {
        if let Some(settings) = &self.project_settings {
            project_setting_changes::store_settings(settings, state);
        }
    }
}

/// Built-in knowledge with the user's additions.
pub(crate) struct ConfiguredKnowledge<'a> {
    config: &'a Config,
    agents: &'a Agents,
    prompts: OnceCell<PromptNoteTemplates>,
}

impl<'a> ConfiguredKnowledge<'a> {
    pub(crate) fn new(config: &'a Config, agents: &'a Agents) -> Self {
        Self {
            config,
            agents,
            prompts: OnceCell::new(),
        }
    }
}

impl RunKnowledgeProvider for ConfiguredKnowledge<'_> {
    fn classifier(&self) -> &Classifier {
        self.config.classifier_or_built_in()
    }

    fn playbook(&self) -> &RecoveryKnowledge {
        self.config.playbook()
    }

    fn catalog(&self) -> &ModelCatalog {
        self.config.catalog()
    }

    fn prompts(&self) -> &PromptNoteTemplates {
        // The user's own templates were validated before the start.
        let read = || {
            self.config
                .prompts()
                .unwrap_or_else(|_| PromptNoteTemplates::embedded())
        };
        self.prompts.get_or_init(read)
    }

    fn agents(&self) -> &Agents {
        self.agents
    }
}

impl RepairCatalogProvider for ConfiguredKnowledge<'_> {
    fn catalog(&self) -> &RepairCatalog {
        self.config.repair_catalog_or_built_in()
    }
}

/// The end of a supervised run: its result, and the state of standard output.
#[derive(Debug)]
pub(crate) struct SupervisedRunEnd {
    /// Result of the run.
    pub(crate) finished: RunResult,
    /// True if the last line on standard output is incomplete.
    pub(crate) is_line_open: bool,
}

impl From<RunResult> for SupervisedRunEnd {
    fn from(finished: RunResult) -> Self {
        Self {
            finished,
            is_line_open: false,
        }
    }
}

/// Runs a command to its end.
pub(crate) fn run_command(
    session: &CommandContext<'_>,
    config: &Config,
    mut request: RunRequest,
    told: Verbosity,
    repairs: EffectiveRepairSettings,
    gateway: PrivateGatewayMode,
) -> Result<SupervisedRunEnd> {
    let project_settings = project_setting_changes::settings_of_command(config);
    request.options.project_settings = Some(content_hash(project_settings.as_bytes()));
    let mut screen = CommandScreen::new(session, told, request.options.tty);
    for note in &repairs.notes {
        screen.print_line(note);
    }
    let setting = RunInputs {
        known: ConfiguredKnowledge::new(config, config.recognized_agents()),
        stdin: Stdin::inherited().map_err(RunError::from)?,
        repair: repairs.terms.map(|terms| (terms, request.project.clone())),
        gateway,
        project_settings: Some(project_settings),
    };
    let task = RunTask::Start(Box::new(request), &mut screen);
    let finished = run_task(session, setting, 1, task)?;
    Ok(SupervisedRunEnd {
        finished,
        is_line_open: screen.is_line_open(),
    })
}

/// Runs a command of the demo: with its own agents, and without standard input.
pub(crate) fn run_demo(
    session: &CommandContext<'_>,
    agents: &Agents,
    request: RunRequest,
    reporter: &mut dyn SessionReporter,
) -> Result<RunResult> {
    // The user's configuration could change how the demo's failures end.
    let config = Config::default();
    let setting = RunInputs {
        known: ConfiguredKnowledge::new(&config, agents),
        stdin: Stdin::null(),
        repair: None,
        gateway: PrivateGatewayMode::Off,
        project_settings: None,
    };
    run_task(
        session,
        setting,
        1,
        RunTask::Start(Box::new(request), reporter),
    )
}

/// Original start of a single command, needed to resume it.
pub(crate) struct OriginalStart {
    pub(crate) repairs: EffectiveRepairSettings,
    pub(crate) project: PathBuf,
    /// If set, it has a pseudo-terminal.
    pub(crate) tty: bool,
}

/// Resumes a single command, with a new time limit for retries if given.
pub(crate) fn resume_command(
    session: &CommandContext<'_>,
    config: &Config,
    resumed: CommandRunToResume,
    told: Verbosity,
    before: OriginalStart,
    gateway: PrivateGatewayMode,
) -> Result<SupervisedRunEnd> {
    let mut screen = CommandScreen::new(session, told, before.tty);
    let (repairs, project) = (before.repairs, before.project);
    for note in &repairs.notes {
        screen.print_line(note);
    }
    let setting = RunInputs {
        known: ConfiguredKnowledge::new(config, config.recognized_agents()),
        stdin: Stdin::inherited().map_err(RunError::from)?,
        repair: repairs.terms.map(|terms| (terms, project)),
        gateway,
        project_settings: Some(project_setting_changes::settings_of_command(config)),
    };
    let finished = run_task(session, setting, 1, RunTask::Resume(resumed, &mut screen))?;
    Ok(SupervisedRunEnd {
        finished,
        is_line_open: screen.is_line_open(),
    })
}

/// Runs or resumes a pipeline.
pub(crate) fn run_pipeline(
    session: &CommandContext<'_>,
    config: &Config,
    pipeline: PipelineTask<'_>,
    told: Verbosity,
) -> Result<RunResult> {
    let mut screen = PipelineScreen::new(session, told);
    for note in &pipeline.notes {
        screen.warn(note);
    }
    let setting = RunInputs {
        known: ConfiguredKnowledge::new(config, config.agents()),
        stdin: Stdin::null(),
        // The plan defines the repair settings.
        repair: None,
        gateway: pipeline.gateway,
        // Kept by the pipeline runner.
        project_settings: None,
    };
    let parallel = pipeline.plan.parallel;
    let task = RunTask::Pipeline(Box::new(pipeline), &mut screen);
    run_task(session, setting, parallel, task)
}

fn run_task(
    session: &CommandContext<'_>,
    mut setting: RunInputs<'_>,
    parallel: u32,
    mut task: RunTask<'_>,
) -> Result<RunResult> {
    setting.known.config.prepare()?;
    let redactor = Arc::new(environment_variables::redactor());
    let driven = run_task_in_store(session, &mut setting, parallel, &mut task, &redactor);
    let (error, request, reporter) = match (driven, &mut task) {
        (Ok(Err(RunError::StoreUnwritable(error))), RunTask::Start(request, reporter)) => {
            (error, request, reporter)
        }
        (driven, _) => {
            let finished = driven?.map_err(with_hint)?;
            task.save_unrecorded(session, &finished);
            return Ok(finished);
        }
    };
    let substitute = SubstituteStore::create(session.store, error, &mut **reporter)?;
    // Earlier spending and approvals are not known there.
    request.policy.auto_switch_model = false;
    setting.repair = None;
    let session = CommandContext {
        store: substitute.location(),
        ..*session
    };
    let finished = run_task_in_store(&session, &mut setting, parallel, &mut task, &redactor)?;
    let finished = finished.map_err(with_hint)?;
    if let RunTask::Start(_, reporter) = &mut task {
        substitute.copy_to_original(&finished.run, &mut **reporter);
    }
    Ok(finished)
}

fn run_task_in_store(
    session: &CommandContext<'_>,
    setting: &mut RunInputs<'_>,
    parallel: u32,
    task: &mut RunTask<'_>,
    redactor: &Arc<Redactor>,
) -> Result<Result<RunResult, RunError>> {
    crate::async_runtime::block_on(async {
        // The reaper starts while the store is being opened.
        let supervisors =
            ChildSupervisorPool::start(ReaperProgram::own(), parallel).map_err(RunError::from)?;
        let opened = crate::store::open_without_hint(session.store, Arc::clone(redactor)).await;
        let store = match opened {
            Ok(store) => store,
            Err(error) => return Ok(Err(RunError::from(error).into_not_started())),
        };
        let notifying = ConfiguredNotifier::new(setting.known.config, session);
        let courier = notifying
            .is_some()
            .then(|| NotificationDeliveryTask::start(&store));
        let (stop, stopped) = watch::channel(AttemptStopRequest::Continue);
        signals::listen(stop, supervisors.signal_sender())?;
        let (environment, newest) = (environment_variables::all_os(), Cell::new(None));
        let surveyed = OnceCell::new();
        let state = state_dir(session.store);
        setting.keep_project_settings(&state);
        task.forget_stop_request(&state);
        let project = setting.repair.as_ref().map(|(_, project)| project.clone());
        let project = project.or_else(|| task.project());
        let committed = project_trust::committed_files(project.as_deref());
        let config = setting.known.config;
        let at_start = project_trust::files_at_start(config, project.as_deref(), &*committed);
        let accepted = |project: &Path| {
            let mut accepted = at_start.clone();
            accepted.extend(project_trust::accepted_files(project));
            accepted
        };
        let workshop = SharedRepairContext {
            catalog_source: &setting.known,
            state: &state,
            committed: &*committed,
            accepted: &accepted,
            hidden_paths: &environment_variables::own_paths(session.store),
            environment: &environment,
            confinement: &surveyed,
            last_started: &newest,
        };
        let agents = setting.known.agents;
        let private = PrivateGateway::new(setting.gateway, config, agents, &state, &store);
        let repair = setting.repair.as_ref();
        let home = environment_variables::variable("HOME").map(PathBuf::from);
        let around = Around {
            workshop,
            repairer: repair.map(|(terms, project)| RepairCoordinator {
                settings: terms,
                project,
                context: workshop,
            }),
            store: &store,
            redactor,
            supervisors: &supervisors,
            known: &setting.known,
            state: &state,
            stop: stopped,
            patience: &config.escalations().deadline_policy(),
            announcer: notifying
                .as_ref()
                .map(|hooks| hooks as &dyn NotificationBuilder),
            go_between: private.as_ref().map(|private| private as &dyn GoBetween),
            home: home.as_deref(),
            heartbeat: config.run().heartbeat,
        };
        let cwd = std::env::current_dir().unwrap_or_default();
        let folders = [Some(&*cwd), project.as_deref()];
        let projects: Vec<_> = folders.into_iter().flatten().collect();
        let awake = config.run().keep_awake.then(|| KeepAwake::start(&projects));
        let finished = Box::pin(around.perform(task, &mut setting.stdin)).await;
        drop(awake);
        if let Ok(finished) = &finished {
            clear_stop_request(&state, &finished.run);
        }
        // Its events must be on disk before the store is closed.
        drop(private);
        if let Some(courier) = courier {
            courier.flush_and_stop().await;
        }
        let closed = store.close().await;
        if finished.is_ok() {
            closed.map_err(crate::store::with_hint)?;
        }
        Ok(finished)
    })
}

/// Shared environment of a run.
struct Around<'a> {
    store: &'a Store,
    redactor: &'a Redactor,
    supervisors: &'a ChildSupervisorPool,
    known: &'a dyn RunKnowledgeProvider,
    state: &'a Path,
    stop: watch::Receiver<AttemptStopRequest>,
    workshop: SharedRepairContext<'a>,
    repairer: Option<RepairCoordinator<'a>>,
    patience: &'a EscalationDeadlinePolicy,
    announcer: Option<&'a dyn NotificationBuilder>,
    go_between: Option<&'a dyn GoBetween>,
    home: Option<&'a Path>,
    heartbeat: Duration,
}

impl<'a> Around<'a> {
    /// Supervises the task until it ends or stops.
    async fn perform(
        &self,
        task: &mut RunTask<'_>,
        stdin: &mut Stdin,
    ) -> Result<RunResult, RunError> {
        let mut draw = randomness::random_draw;
        match task {
            RunTask::Start(request, reporter) => {
                let mut engine = self.engine(&mut **reporter, stdin, &mut draw);
                Box::pin(engine.start((**request).clone())).await
            }
            RunTask::Resume(resumed, reporter) => {
                let mut engine = self.engine(&mut **reporter, stdin, &mut draw);
                if !resumed.settings.held.is_empty() {
                    project_setting_changes::store_settings(&resumed.written, self.state);
                }
                let settings = &resumed.settings;
                Box::pin(engine.resume(&resumed.run, resumed.keep_trying, settings)).await
            }
            RunTask::Pipeline(pipeline, reporter) => {
                let reload = |accepted: Option<&ProjectSettingsSnapshot>| {
                    (pipeline.reload)(accepted).map_err(|error| format!("{error:#}"))
                };
                let plan = pipeline.plan.clone();
                let conductor = self.conductor(&mut **reporter, plan, &reload, &mut draw);
                match &pipeline.mode {
                    PipelineStartMode::Start(selection) => {
                        Box::pin(conductor.start(selection)).await
                    }
                    PipelineStartMode::Resume(run, again) => {
                        Box::pin(conductor.resume(run, again)).await
                    }
                }
            }
        }
    }

    fn knowledge(&self) -> RunKnowledgeBase<'a> {
        RunKnowledgeBase {
            source: self.known,
            own_playbook: None,
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    fn engine(
        &self,
        reporter: &'a mut dyn SessionReporter,
        stdin: &'a mut Stdin,
        draws: &'a mut dyn FnMut() -> RandomDraw,
    ) -> SessionRunner<'a> {
        SessionRunner {
            store: self.store,
            knowledge: self.knowledge(),
            redactor: self.redactor,
            supervisors: self.supervisors,
            stdin,
            reporter,
            stop: self.stop.clone(),
            clock: Clock::System,
            network: environment_variables::network_probe(),
            home: self.home,
            heartbeat: self.heartbeat,
            random_draws: draws,
            state: self.state,
            role: None,
            repairer: self.repairer,
            deadline_policy: self.patience,
            notifier: self.announcer,
            go_between: self.go_between,
        }
    }

    fn conductor(
        &self,
        reporter: &'a mut dyn PipelineReporter,
        plan: PipelineSpec,
        reload: &'a dyn Fn(Option<&ProjectSettingsSnapshot>) -> Result<PipelineSpec, String>,
        draws: &'a mut dyn FnMut() -> RandomDraw,
    ) -> PipelineRunner<'a> {
        PipelineRunner {
            store: self.store,
            knowledge: self.knowledge(),
            redactor: self.redactor,
            supervisors: self.supervisors,
            reporter: Mutex::new(reporter),
            stop: self.stop.clone(),
            clock: Clock::System,
            network: environment_variables::network_probe(),
            home: self.home,
            heartbeat: self.heartbeat,
            random_draws: RefCell::new(draws),
            state: self.state,
            plan: RefCell::new(Rc::new(plan)),
            reload,
            repair_context: self.workshop,
            notifier: self.announcer,
            go_between: self.go_between,
        }
    }
}

/// Adds a hint to a store error.
fn with_hint(error: RunError) -> anyhow::Error {
    match error {
        RunError::Store(error) | RunError::StoreUnwritable(error) => crate::store::with_hint(error),
        RunError::OutputMissing { ref role, .. } => error_with_hint(
            error.to_string(),
            format!("`unstuck resume --restart {role}` re-runs it and all roles that depend on it"),
        ),
        RunError::File { path, source } | RunError::Output(BlobError { path, source }) => {
            error_with_hint(
                format!("cannot save {}: {source}", path.display()),
                "fix this (is the disk full?), then continue with `unstuck resume`",
            )
        }
        other => other.into(),
    }
}

/// Returns the directory for resume data, next to the store.
pub(crate) fn state_dir(store: &StoreLocation) -> PathBuf {
    store.path().with_extension("d")
}
