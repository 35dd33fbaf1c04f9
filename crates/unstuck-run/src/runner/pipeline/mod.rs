//! Runs pipelines: roles that depend on each other, in parallel where possible, in a loop until the work is done.
//!
//! The state of a pipeline is a fold over its events ([`PipelineState`]). Each role is a session that runs like a single
//! command; all sessions share the log of the run.

mod config_reload;
mod evaluate_iteration;
mod external_events;
mod partial_run;
mod repairs_between_iterations;
mod resume;
mod role_instance;
mod spec;

pub use partial_run::PartialRunSelection;
pub use resume::PipelineResumeOptions;
pub use spec::{
    AcceptedProjectSettings, CompletionMarker, LoopEndCondition, LoopPlan, PipelineSpec, RolePlan,
};

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::watch;
use unstuck_core::decision::{EscalationReason, RandomDraw};
use unstuck_core::duration::to_millis;
use unstuck_core::escalation::AnswerOptionsContext;
use unstuck_core::event::{
    EscalationKind, EscalationOpened, IterationFinished, IterationStarted, RoleInstance,
    RunFinished, RunKind, RunOutcome, RunStarted,
};
use unstuck_core::pipeline::{NextPipelineStep, PipelineLoopProblem};
use unstuck_core::project_settings_snapshot::ProjectSettingsSnapshot;
use unstuck_core::redact::Redactor;
use unstuck_core::views::RunProjection;
use unstuck_core::{Event, EventRecord, FailureKind, PipelineState, RunId};
use unstuck_store::Store;

use external_events::ExternalEvent;
use repairs_between_iterations::IterationReadiness;

use super::child_supervisor_pool::ChildSupervisorPool;
use super::error::RunError;
use super::escalation_draft::{EscalationDraft, run_escalation_details};
use super::gateway_hook::GoBetween;
use super::interruption::Interruption;
use super::knowledge::RunKnowledgeBase;
use super::notify_hook::NotificationBuilder;
use super::repair::SharedRepairContext;
use super::reporter::PipelineReporter;
use super::run_event_log::{RunEventLog, RunStorage, StoreState};
use super::run_lease::RunLease;
use super::run_result::RunResult;
use super::session_runner::{EXIT_INPUT_NEEDED, wait_for_stop};
use crate::clock::Clock;
use crate::process::{AttemptStopRequest, StopRequestUnixSignal};
use crate::worktree::{RoleTreeChange, SnapshotStore};
use unstuck_network::NetworkProbe;

/// Interval at which the live view is updated.
const TICK_INTERVAL: Duration = Duration::from_millis(200);

/// Interval at which an unwritable store is retried.
const STORE_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Runs pipelines.
pub struct PipelineRunner<'a> {
    /// The store.
    pub store: &'a Store,
    /// The knowledge.
    pub knowledge: RunKnowledgeBase<'a>,
    /// Removes secrets from what is stored.
    pub redactor: &'a Redactor,
    /// The supervisors that run the children.
    pub supervisors: &'a ChildSupervisorPool,
    /// Receives what happens.
    pub reporter: Mutex<&'a mut dyn PipelineReporter>,
    /// Receives stop requests.
    pub stop: watch::Receiver<AttemptStopRequest>,
    /// The clock.
    pub clock: Clock,
    /// The user's home directory, where agents keep their conversations.
    pub home: Option<&'a Path>,
    /// Interval of the messages about a wait in a log.
    pub heartbeat: Duration,
    /// Checks the network.
    pub network: NetworkProbe,
    /// The source of randomness.
    pub random_draws: RefCell<&'a mut dyn FnMut() -> RandomDraw>,
    /// The state directory, out of the agents' reach.
    pub state: &'a Path,
    /// The pipeline to run; a changed configuration may replace it between two iterations.
    pub plan: RefCell<Rc<PipelineSpec>>,
    /// Reloads the configuration and compares it with the accepted one; returns the reason if it is invalid.
    pub reload: &'a dyn Fn(Option<&ProjectSettingsSnapshot>) -> Result<PipelineSpec, String>,
    /// The context of repairs.
    pub repair_context: SharedRepairContext<'a>,
    /// Computes the notifications; `None` if none are sent.
    pub notifier: Option<&'a dyn NotificationBuilder>,
    /// Attaches gateways to attempts; `None` if there is no gateway.
    pub go_between: Option<&'a dyn GoBetween>,
}

/// The execution of one run.
struct PipelineExecution<'s, 'a> {
    journal: &'s RunEventLog<'a>,
    /// Events before this process started or resumed the run.
    past: Vec<EventRecord>,
    /// Number of the newest session.
    sessions: Cell<u32>,
    snapshots: Option<SnapshotStore>,
    /// True if the warning about missing snapshots was shown.
    is_snapshot_warning_shown: Cell<bool>,
    /// Modification time of the configuration in effect.
    config_modified_at: Cell<Option<SystemTime>>,
    /// The reason why the configuration was rejected at the last reload.
    rejected_config: RefCell<Option<String>>,
    /// The evaluation of the newest iteration in this process.
    last_iteration: RefCell<Option<IterationFinished>>,
    /// Changes of the work tree by each role.
    steps: RefCell<Vec<RoleTreeChange>>,
}

/// The reason for the end of a wait for running role instances.
enum WakeReason<T> {
    /// An instance has ended; `None` if none is running.
    InstanceEnded(Option<T>),
    /// An external event has occurred.
    External(ExternalEvent),
}

impl<'a> PipelineRunner<'a> {
    /// Returns the storage of the run.
    pub(super) fn run_storage(&self) -> RunStorage<'a> {
        RunStorage {
            store: self.store,
            redactor: self.redactor,
            state: self.state,
        }
    }
}

impl PipelineRunner<'_> {
    /// Runs the pipeline, or the selected part of it, from start to end.
    pub async fn start(&self, selection: &PartialRunSelection) -> Result<RunResult, RunError> {
        let run = RunId::random((self.random_draws.borrow_mut())());
        let reused = self.reused_outputs(selection).await?;
        self.save_settings(&self.plan());
        let held = RunLease::claim_new(self.store, &run, self.clock).await?;
        let started = RunStarted {
            head: Some(self.repair_context.committed.commit().unwrap_or_default()),
            project: self.plan().project.display().to_string(),
            kind: RunKind::Pipeline(Box::new(
                self.plan().to_started_event(self.knowledge.version),
            )),
        };
        let at = self.clock.timestamp();
        let journal = RunEventLog::begin(self.run_storage(), &run, &started, at, held);
        let journal = journal.ok_or_else(|| nothing_to_run_error(&run))?;
        let journal = journal.with_notifier(self.notifier);
        let mut events = vec![Event::from(Box::new(started))];
        if !reused.is_empty() {
            let (iteration, feedback) = (1, String::new());
            events.push(
                IterationStarted {
                    iteration,
                    feedback,
                }
                .into(),
            );
            events.extend(reused.into_iter().map(Event::from));
        }
        self.write(&journal, events).await?;
        Box::pin(self.run_loop(journal, Vec::new())).await
    }

    /// Runs the main loop.
    async fn run_loop(
        &self,
        journal: RunEventLog<'_>,
        past: Vec<EventRecord>,
    ) -> Result<RunResult, RunError> {
        let stage = PipelineExecution {
            sessions: Cell::new(self.with_pipeline(&journal, PipelineState::session_count)),
            snapshots: self.open_snapshots(journal.run()),
            is_snapshot_warning_shown: Cell::new(false),
            config_modified_at: Cell::new(self.config_modified_at()),
            rejected_config: RefCell::default(),
            last_iteration: RefCell::default(),
            steps: RefCell::default(),
            journal: &journal,
            past,
        };
        self.pin_programs(&journal);
        let mut running = FuturesUnordered::new();
        let mut parts = BTreeSet::new();
        loop {
            let step = journal.with_view(|run| match &run.pipeline {
                Some(pipeline) => pipeline.next(&parts),
                None => NextPipelineStep::Finished,
            });
            match self.stop_if_requested(step, &parts) {
                NextPipelineStep::BeginIteration(iteration) => {
                    match self.repair_before_iteration(&stage, iteration).await? {
                        IterationReadiness::Ready(told) => {
                            self.begin_iteration(&journal, iteration, &told).await?
                        }
                        IterationReadiness::Blocked => {}
                    }
                }
                NextPipelineStep::Run(ready) => {
                    for part in ready {
                        parts.insert(part.clone());
                        running.push(self.run_instance(&stage, part));
                    }
                }
                NextPipelineStep::Wait => {
                    let woken = async {
                        tokio::select! {
                            ended = running.next() => Ok(WakeReason::InstanceEnded(ended)),
                            news = self.next_external_event(&stage) => news.map(WakeReason::External),
                        }
                    };
                    let ended = match self.with_ticks(&journal, woken).await? {
                        WakeReason::InstanceEnded(ended) => Vec::from_iter(ended),
                        WakeReason::External(news) => {
                            self.apply_while_running(&stage, news, &mut running).await?
                        }
                    };
                    for ended in ended {
                        let ended = ended?;
                        self.ensure_instance_finished(&journal, &ended)?;
                        parts.remove(&ended);
                    }
                }
                NextPipelineStep::EvaluateIteration => self.evaluate_iteration(&stage).await?,
                NextPipelineStep::EscalateLoop(trouble) => {
                    self.escalate_loop_problem(&journal, trouble).await?
                }
                NextPipelineStep::Finish(RunOutcome::AwaitingHuman) if self.waits_for_answers() => {
                    self.wait_for_answer(&stage).await?;
                }
                NextPipelineStep::Finish(outcome) => self.finish(&journal, outcome).await?,
                NextPipelineStep::Finished => break,
            }
        }
        drop(running);
        drop(stage);
        let end = journal.with_view(|run| run.pipeline.as_ref()?.run_finished().cloned());
        journal.close(end, None).await
    }

    /// Checks that an instance has finished: otherwise it would be run again forever.
    fn ensure_instance_finished(
        &self,
        journal: &RunEventLog<'_>,
        part: &RoleInstance,
    ) -> Result<(), RunError> {
        if !self.with_pipeline(journal, |pipeline| pipeline.is_open(part)) {
            Ok(())
        } else {
            Err(RunError::NotResumable {
                run: journal.run().clone(),
                why: format!("role `{}` stopped without a recorded end", part.role),
            })
        }
    }

    /// Stops the run if that is requested; nothing new is started then.
    fn stop_if_requested(
        &self,
        step: NextPipelineStep,
        running: &BTreeSet<RoleInstance>,
    ) -> NextPipelineStep {
        let is_stopped = *self.stop.borrow() != AttemptStopRequest::Continue;
        match step {
            NextPipelineStep::Run(_)
            | NextPipelineStep::BeginIteration(_)
            | NextPipelineStep::EvaluateIteration
                if is_stopped =>
            {
                if running.is_empty() {
                    NextPipelineStep::Finish(RunOutcome::Interrupted)
                } else {
                    NextPipelineStep::Wait
                }
            }
            step => step,
        }
    }

    /// Waits for a future while the live view is updated.
    async fn with_ticks<T>(
        &self,
        journal: &RunEventLog<'_>,
        something: impl Future<Output = T>,
    ) -> T {
        tokio::pin!(something);
        let live = self.with_reporter(|reporter| reporter.is_live());
        let mut stop = self.stop.clone();
        let mut is_told = *stop.borrow() != AttemptStopRequest::Continue;
        loop {
            tokio::select! {
                done = &mut something => return done,
                () = wait_for_stop(&mut stop), if !is_told => {
                    is_told = true;
                    let message = "Stopping… (press Ctrl-C again to stop immediately)";
                    self.with_reporter(|reporter| reporter.note(message));
                }
                () = tokio::time::sleep(TICK_INTERVAL), if live || journal.has_stale_files() => {
                    journal.refresh_files();
                    if live {
                        let now = self.clock.timestamp();
                        journal.with_view(|run| self.with_reporter(|reporter| reporter.tick(run, now)));
                    }
                }
            }
        }
    }

    /// Returns true if the process waits for human input and was not stopped.
    fn waits_for_answers(&self) -> bool {
        let waits = self.plan().roles.iter().any(|role| role.options.wait);
        waits && *self.stop.borrow() == AttemptStopRequest::Continue
    }

    async fn begin_iteration(
        &self,
        journal: &RunEventLog<'_>,
        iteration: u32,
        repaired: &[String],
    ) -> Result<(), RunError> {
        let mut feedback = self.with_pipeline(journal, |pipeline| {
            let judged = pipeline.last_iteration();
            judged
                .map(|judged| judged.feedback.clone())
                .unwrap_or_default()
        });
        let words = self.with_pipeline(journal, |pipeline| pipeline.user_messages().to_vec());
        let words = words
            .iter()
            .map(|words| format!("Message from the user: {words}"));
        for told in words.chain(repaired.iter().cloned()) {
            feedback = format!("{feedback}\n\n{told}").trim_start().to_owned();
        }
        let started = IterationStarted {
            iteration,
            feedback,
        };
        self.write(journal, vec![started.into()]).await?;
        Ok(())
    }

    async fn escalate_loop_problem(
        &self,
        journal: &RunEventLog<'_>,
        trouble: PipelineLoopProblem,
    ) -> Result<(), RunError> {
        let (number, left) = self.with_pipeline(journal, |pipeline| {
            let judged = pipeline.last_iteration();
            let left = judged.map(|judged| summary_line(&judged.feedback));
            let left = left.unwrap_or_default();
            let more = pipeline.plan().loop_settings.as_ref();
            let more = more.map_or(0, |looping| looping.max_iterations);
            (pipeline.iteration(), (left, more))
        });
        let (left, more) = left;
        let (question, reason, iterations) = match trouble {
            PipelineLoopProblem::Stuck { iterations } => (
                EscalationKind::Stuck,
                format!("no progress in the last {iterations} iterations: {left}; resume to retry"),
                None,
            ),
            PipelineLoopProblem::IterationLimit { iterations } => (
                EscalationKind::Hiccup,
                format!(
                    "iteration limit of {iterations} reached: {left}; resume to allow {more} more"
                ),
                Some(more),
            ),
        };
        let asking = EscalationDraft {
            kind: FailureKind::Stuck,
            ..EscalationDraft::without_failure(question, EscalationReason::Exhausted, reason)
        };
        let of = AnswerOptionsContext {
            iterations,
            accepts_message: true,
            ..AnswerOptionsContext::default()
        };
        let id = format!("{}-i{number}", journal.run());
        let asked = self.run_escalation(id, asking, &of, None);
        self.write(journal, vec![asked.into()]).await?;
        Ok(())
    }

    /// Creates an escalation of the whole run.
    fn run_escalation(
        &self,
        id: String,
        asking: EscalationDraft,
        of: &AnswerOptionsContext<'_>,
        repair: Option<String>,
    ) -> Box<EscalationOpened> {
        let plan = self.plan();
        let doing = summary_line(&plan.task);
        Box::new(EscalationOpened {
            session: None,
            id,
            escalation_kind: asking.escalation_kind,
            trigger: asking.escalation_kind.trigger().into(),
            kind: asking.kind,
            reason_code: asking.why,
            details: run_escalation_details(
                &asking,
                doing,
                of,
                &plan.patience,
                self.clock.timestamp(),
            ),
            reason: asking.reason,
            awaiting: "human".into(),
            proposed: None,
            cost: None,
            repair,
            budget: asking.budget,
        })
    }

    async fn finish(&self, journal: &RunEventLog<'_>, outcome: RunOutcome) -> Result<(), RunError> {
        let (now, plan) = (self.clock.timestamp(), self.plan());
        let cause = self
            .stop
            .borrow()
            .cause()
            .unwrap_or(StopRequestUnixSignal::Interrupt);
        let interruption = Interruption::by_signal(cause, self.state, journal.run());
        let end = journal.with_view(|run| {
            let view = &run.summary;
            let stopped = run
                .pipeline
                .as_ref()
                .into_iter()
                .flat_map(|one| one.stopped_instances());
            let is_needed =
                |part: &&RoleInstance| !plan.role(&part.role).is_some_and(|role| role.optional);
            let stopped = stopped.map(|(part, _)| part).filter(is_needed);
            let stopped: Vec<&RoleInstance> = stopped.collect();
            let mut failed = run.sessions.iter().filter(|session| {
                session
                    .part
                    .as_ref()
                    .is_some_and(|part| stopped.contains(&part))
            });
            let failed = failed.next();
            let given_up = run.pipeline.as_ref().and_then(PipelineState::abort_reason);
            let given_up = given_up.map(str::to_owned);
            let said = failed.map(|session| {
                let role = session.part.as_ref().map_or("", |part| part.role.as_str());
                let why = session.reason.as_deref().unwrap_or("failed");
                format!("{role}: {why}")
            });
            let reason = match outcome {
                RunOutcome::Interrupted => interruption.reason,
                RunOutcome::Succeeded | RunOutcome::Recovered => outcome_summary(view.error_count),
                RunOutcome::AwaitingHuman if said.is_none() => {
                    view.reason.clone().unwrap_or_default()
                }
                RunOutcome::Failed if given_up.is_some() => given_up.unwrap_or_default(),
                _ => said
                    .or_else(|| stuck_reason(run))
                    .or(view.reason.clone())
                    .unwrap_or_default(),
            };
            RunFinished {
                outcome,
                exit_code: match outcome {
                    RunOutcome::Succeeded | RunOutcome::Recovered => 0,
                    RunOutcome::AwaitingHuman => EXIT_INPUT_NEEDED,
                    RunOutcome::Interrupted => interruption.exit_code,
                    RunOutcome::Failed => 1,
                },
                reason,
                attempts: view.attempts,
                retry_count: view.retry_count,
                recovery_level: view.recovery_level,
                cost_usd: run.known_cost(),
                duration_ms: to_millis(now.since(view.started)),
            }
        });
        self.write(journal, vec![end.into()]).await?;
        Ok(())
    }

    /// Waits until the store can be written again: the cost of further work could not be recorded.
    async fn wait_for_store(
        &self,
        journal: &RunEventLog<'_>,
        state: &StoreState,
    ) -> Result<(), RunError> {
        if let StoreState::BecameUnwritable(error) = state {
            let message = format!("{error}; no new roles start until this is fixed");
            self.with_reporter(|reporter| reporter.warn(&message));
        }
        let mut stop = self.stop.clone();
        while !journal.flush_backlog().await? {
            tokio::select! {
                () = tokio::time::sleep(STORE_RETRY_INTERVAL) => {}
                () = wait_for_stop(&mut stop) => return Ok(()),
            }
        }
        let message = "the store is writable again";
        self.with_reporter(|reporter| reporter.warn(message));
        Ok(())
    }

    /// Writes events of the whole run, then shows them.
    async fn write(
        &self,
        journal: &RunEventLog<'_>,
        events: Vec<Event>,
    ) -> Result<Vec<EventRecord>, RunError> {
        let written = journal.write(self.clock.timestamp(), events).await?;
        if journal.is_ahead_of_store() {
            self.wait_for_store(journal, &written.store).await?;
        }
        journal.with_view(|run| {
            self.with_reporter(|reporter| reporter.on_events(&written.events, run))
        });
        if let Some(warning) = &written.warning {
            self.with_reporter(|reporter| reporter.warn(warning));
        }
        Ok(written.events)
    }

    fn with_pipeline<T>(
        &self,
        journal: &RunEventLog<'_>,
        look: impl FnOnce(&PipelineState) -> T,
    ) -> T
    where
        T: Default,
    {
        journal.with_view(|run| run.pipeline.as_ref().map(look).unwrap_or_default())
    }

    /// Returns the current pipeline.
    fn plan(&self) -> Rc<PipelineSpec> {
        Rc::clone(&self.plan.borrow())
    }

    fn with_reporter<T>(&self, say: impl FnOnce(&mut dyn PipelineReporter) -> T) -> T {
        match self.reporter.lock() {
            Ok(mut reporter) => say(&mut **reporter),
            // Reports do not panic; if one did, reporting continues.
            Err(poisoned) => say(&mut **poisoned.into_inner()),
        }
    }

    /// Opens the snapshot store, if snapshots are possible.
    fn open_snapshots(&self, run: &RunId) -> Option<SnapshotStore> {
        if !self.plan().snapshots {
            return None;
        }
        match SnapshotStore::open(&self.plan().project, run, self.state) {
            Ok(snapshots) => Some(snapshots),
            Err(error) => {
                if self.plan().rollback {
                    let message = format!("cannot roll back failed attempts here: {error}");
                    self.with_reporter(|reporter| reporter.warn(&message));
                }
                None
            }
        }
    }
}

fn nothing_to_run_error(run: &RunId) -> RunError {
    RunError::NotResumable {
        run: run.clone(),
        why: "the start event is missing".into(),
    }
}

fn outcome_summary(failures: u32) -> String {
    match failures {
        0 => "succeeded without failures".to_owned(),
        1 => "succeeded after 1 failure".to_owned(),
        n => format!("succeeded after {n} failures"),
    }
}

/// Returns the reason why a loop was given up without an escalation.
fn stuck_reason(run: &RunProjection) -> Option<String> {
    let judged = run.pipeline.as_ref()?.last_iteration()?;
    Some(format!(
        "no progress in the last {} iterations: {}",
        judged.unchanged,
        summary_line(&judged.feedback)
    ))
}

/// Returns the first line of a text; also the last line if the first only announces something.
fn summary_line(text: &str) -> String {
    let mut lines = text.trim().lines().map(str::trim);
    let first = lines.next().unwrap_or_default();
    match lines.rfind(|line| !line.is_empty()) {
        Some(last) if first.ends_with(':') => {
            let most = last
                .char_indices()
                .nth(160)
                .map_or(last.len(), |(at, _)| at);
            format!("{first} {}", &last[..most])
        }
        _ => first.to_owned(),
    }
}
