//! The main loop of a session: decides on the next step and executes it until the session ends.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;
use unstuck_core::RunId;
use unstuck_core::agent::{Agent, ParsedAgentCommandLine};
use unstuck_core::decision::{
    EscalationReason, OperationRepeatability, RandomDraw, RecoveryAction, RetryChangeCapability,
};
use unstuck_core::duration::to_millis;
use unstuck_core::escalation::EscalationDeadlinePolicy;
use unstuck_core::event::{
    DecisionMade, InterruptionCause, ModelSwitched, RunKind, RunOutcome, RunStarted, SessionSpec,
};
use unstuck_core::redact::Redactor;
use unstuck_core::session_state::{NextSessionStep, RunnerDecisionContext};
use unstuck_store::{Store, StoreError};

use super::child_supervisor_pool::ChildSupervisorPool;
use super::error::RunError;
use super::escalation_draft::EscalationDraft;
use super::gateway_hook::GoBetween;
use super::interruption::Interruption;
use super::knowledge::RunKnowledgeBase;
use super::notify_hook::NotificationBuilder;
use super::repair::{RepairCoordinator, SelectedRepair};
use super::reporter::SessionReporter;
use super::role_execution_settings::RoleContext;
use super::run_event_log::{RunEventLog, RunStorage, StoreState};
use super::run_lease::RunLease;
use super::run_request::{RunAttemptOptions, RunRequest};
use super::run_result::RunResult;
use super::session_event_log::SessionEventLog;
use crate::clock::Clock;
use crate::process::{AttemptStopRequest, Stdin};
use unstuck_network::NetworkProbe;

/// The exit code if an escalation is pending.
pub(super) const EXIT_INPUT_NEEDED: i32 = 3;
/// The exit code of a timeout.
const EXIT_TIMED_OUT: i32 = 124;

/// Runs sessions of single commands and of roles.
pub struct SessionRunner<'a> {
    /// The store.
    pub store: &'a Store,
    /// The knowledge.
    pub knowledge: RunKnowledgeBase<'a>,
    /// Removes secrets from what is stored.
    pub redactor: &'a Redactor,
    /// The supervisors that run the children.
    pub supervisors: &'a ChildSupervisorPool,
    /// The standard input.
    pub stdin: &'a mut Stdin,
    /// Receives what happens.
    pub reporter: &'a mut dyn SessionReporter,
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
    pub random_draws: &'a mut dyn FnMut() -> RandomDraw,
    /// The state directory, out of the agents' reach.
    pub state: &'a Path,
    /// The context of a role; `None` if there is only a command line.
    pub role: Option<RoleContext<'a>>,
    /// Repairs the environment, if allowed.
    pub repairer: Option<RepairCoordinator<'a>>,
    /// Deadlines of escalations.
    pub deadline_policy: &'a EscalationDeadlinePolicy,
    /// Computes the notifications; `None` if none are sent.
    pub notifier: Option<&'a dyn NotificationBuilder>,
    /// Attaches gateways to attempts; `None` if there is no gateway.
    pub go_between: Option<&'a dyn GoBetween>,
}

impl<'a> SessionRunner<'a> {
    /// Returns the storage of the run.
    pub(super) fn run_storage(&self) -> RunStorage<'a> {
        RunStorage {
            store: self.store,
            redactor: self.redactor,
            state: self.state,
        }
    }
}

impl SessionRunner<'_> {
    /// Runs a command from start to end.
    pub async fn start(&mut self, request: RunRequest) -> Result<RunResult, RunError> {
        let run = RunId::random((self.random_draws)());
        let held = RunLease::claim_new(self.store, &run, self.clock).await;
        let held = held.map_err(RunError::into_not_started)?;
        let started = self.run_started_event(&run, request);
        let at = self.clock.timestamp();
        let nothing = || RunError::NotResumable {
            run: run.clone(),
            why: "the start event is missing".into(),
        };
        let journal = RunEventLog::begin(self.run_storage(), &run, &started, at, held);
        let journal = journal.ok_or_else(nothing)?.with_notifier(self.notifier);
        let mut log = SessionEventLog::begin(&journal, started, at).ok_or_else(nothing)?;
        self.run_loop(&mut log).await?;
        let (end, child) = (log.recovery().run_finished().cloned(), log.child_exit());
        journal.close(end, child).await
    }

    /// Returns the commit that is checked out now if repairs are possible; empty if there is none.
    fn checked_out_commit(&self) -> Option<String> {
        let committed = self.repairer.map(|one| one.context.committed);
        committed.map(|one| one.commit().unwrap_or_default())
    }

    fn run_started_event(&mut self, run: &RunId, request: RunRequest) -> RunStarted {
        let agent = self.agent_of(&request.command, request.agent.as_deref());
        let (agent, model) = match agent {
            Some(agent) => (
                Some(agent.id().to_owned()),
                ParsedAgentCommandLine::parse(agent, &request.command)
                    .model()
                    .map(str::to_owned),
            ),
            None => (None, None),
        };
        let command = self.redactor.redact_command(&request.command);
        let unrepeatable = (command != request.command)
            .then(|| "the command line contains a secret, which is not stored".to_owned());
        let spec = SessionSpec {
            cwd: request.cwd.display().to_string(),
            command: request.command,
            agent,
            model,
            session: run.session_id(1),
            policy: request.policy,
            origins: request.origins,
            timeout_ms: request.timeout.map(to_millis),
            idle_timeout_ms: request.idle_timeout.map(to_millis),
            options: json!(request.options),
            unrepeatable_reason: unrepeatable,
            knowledge: self.knowledge.version.to_owned(),
        };
        RunStarted {
            head: self.checked_out_commit(),
            project: request.project.display().to_string(),
            kind: RunKind::Command(Box::new(spec)),
        }
    }

    pub(super) fn agent_of(&self, command: &[String], named: Option<&str>) -> Option<&Agent> {
        let agents = self.knowledge.agents();
        match named {
            Some(name) => agents.get(name),
            None => agents.recognize(command),
        }
    }

    /// Returns true if a command line runs an agent headless.
    pub(super) fn is_headless(&self, spec: &SessionSpec) -> bool {
        let agent = self.agent_of(&spec.command, spec.agent.as_deref());
        agent.is_some_and(|agent| ParsedAgentCommandLine::parse(agent, &spec.command).is_headless())
    }

    /// Runs the main loop.
    pub(super) async fn run_loop(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
    ) -> Result<(), RunError> {
        loop {
            let now = self.clock.timestamp();
            match log.recovery().next_step(now) {
                NextSessionStep::Attempt => self.run_attempt(log).await?,
                NextSessionStep::Check => self.rerun_check(log).await?,
                NextSessionStep::RecordInterruption => self.note_crash(log)?,
                NextSessionStep::Decide => self.decide(log).await?,
                NextSessionStep::Repair => self.run_repair(log).await?,
                NextSessionStep::RecordInterruptedRepair => self.note_interrupted_repair(log),
                NextSessionStep::Wait(until) => {
                    self.flush(log).await?;
                    self.wait(log, until).await?;
                }
                NextSessionStep::Finish(RunOutcome::AwaitingHuman) if self.is_optional() => {
                    self.finish(log, RunOutcome::Failed)?;
                }
                NextSessionStep::Finish(RunOutcome::AwaitingHuman) if log.options().wait => {
                    self.wait_for_answer(log).await?;
                }
                NextSessionStep::Finish(outcome) => self.finish(log, outcome)?,
                NextSessionStep::Finished => break,
            }
        }
        self.flush(log).await?;
        self.flush_backlog(log).await?;
        self.delete_stored_stdin(log);
        Ok(())
    }

    /// Retries to write the buffered events; the remaining ones are part of the result.
    async fn flush_backlog(&mut self, log: &SessionEventLog<'_, '_>) -> Result<(), RunError> {
        let journal = log.journal();
        if journal.is_ahead_of_store() {
            journal.flush_backlog().await?;
        }
        Ok(())
    }

    /// Writes the pending events, then shows them.
    pub(super) async fn flush(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
    ) -> Result<(), RunError> {
        let Some(written) = log.flush().await? else {
            return Ok(());
        };
        match &written.store {
            StoreState::Writable => self.delete_exit_records(log, &written.events),
            StoreState::StillUnwritable => {}
            StoreState::BecameUnwritable(error) => {
                self.reporter.warn(&store_unwritable_warning(error))
            }
            StoreState::CaughtUp(count) => {
                self.delete_all_exit_records(log);
                self.reporter.warn(&store_recovered_message(*count));
            }
        }
        if let Some(warning) = &written.warning {
            self.reporter.warn(warning);
        }
        self.reporter.on_events(&written.events, log.recovery());
        Ok(())
    }

    async fn decide(&mut self, log: &mut SessionEventLog<'_, '_>) -> Result<(), RunError> {
        // A call refused because of our own budget is not a failure to recover from.
        if let Some(reached) = log.take_budget_reached() {
            self.escalate_budget(log, reached);
            return Ok(());
        }
        let odds = self.store.success_rates(self.clock.timestamp()).await?;
        // Actions that cost more than a plain retry are on disk before they are executed.
        let is_recorded = !log.journal().is_ahead_of_store();
        let best = if is_recorded {
            self.select_repair(log).await?
        } else {
            None
        };
        let is_timed = log.recovery().spec().policy.give_up_after.is_some();
        let is_offline = is_timed
            && log.recovery().network_symptom().is_some()
            && self.network.is_offline().await;
        let spec = log.recovery().spec();
        let tool = spec.command.first().map(String::as_str);
        let means = RunnerDecisionContext {
            recovery_knowledge: self.knowledge.playbook(),
            catalog: self.knowledge.catalog(),
            success_rates: &odds,
            capabilities: if is_recorded {
                self.capabilities(spec)
            } else {
                self.capabilities(spec)
                    .without(RetryChangeCapability::Model)
            },
            session_limits: log.options().session_limits(),
            tool,
            repeatable: self.repeatable(log.options()),
            repair: best.as_ref().map(SelectedRepair::offer),
            is_offline,
            can_park: log.options().parks_when_stalled,
        };
        let now = self.clock.timestamp();
        let draw = (self.random_draws)();
        let Some(made) = log.recovery().decide(&means, now, draw) else {
            // Otherwise the same decision would be requested forever.
            return Err(RunError::NotResumable {
                run: log.recovery().id().clone(),
                why: "the run has no recorded failure".into(),
            });
        };
        self.note_decision(log, made);
        Ok(())
    }

    /// Returns if and how a further attempt may be made.
    fn repeatable(&self, options: &RunAttemptOptions) -> OperationRepeatability {
        if options.nested {
            OperationRepeatability::OuterRetries
        } else if options.interactive {
            OperationRepeatability::Interactive
        } else if self.stdin.is_replayable(options.wiring()) {
            OperationRepeatability::Safe
        } else {
            OperationRepeatability::InputNotReplayable
        }
    }

    fn note_decision(&mut self, log: &mut SessionEventLog<'_, '_>, made: DecisionMade) {
        let now = self.clock.timestamp();
        let decision = made.decision.clone();
        log.note(now, Box::new(made));
        let session = Some(log.recovery().spec().session.clone());
        if let Some(change) = decision.model_switch() {
            let session = session.clone();
            log.note(
                now,
                ModelSwitched {
                    session,
                    switch: change,
                },
            );
        }
        match decision.action {
            RecoveryAction::Retry { until, .. } | RecoveryAction::Change { until, .. }
                if until > decision.decided_at =>
            {
                self.note_wait(log, &decision, until);
            }
            RecoveryAction::Escalate {
                trigger,
                why,
                proposed,
            } if !self.is_optional() => {
                let is_about_budget = why == EscalationReason::MaxCost;
                let reached = log.recovery().cost_reached(now);
                self.escalate(
                    log,
                    EscalationDraft {
                        escalation_kind: trigger.into(),
                        why,
                        kind: decision.kind,
                        reason: decision.reason,
                        proposed,
                        cost: decision.cost,
                        budget: reached.filter(|_| is_about_budget),
                    },
                );
            }
            _ => {}
        }
    }

    /// Returns true if the pipeline continues without it, so that nothing is escalated.
    fn is_optional(&self) -> bool {
        self.role.is_some_and(|role| role.optional)
    }

    /// Notes that the run was stopped from outside, or that its output is lost.
    pub(super) fn note_interrupted(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
        attempt: Option<InterruptedAttempt>,
    ) {
        let stop = *self.stop.borrow();
        let run = log.recovery().id();
        let why = Interruption::new(stop, &*self.reporter, self.state, run);
        self.note_interruption(log, attempt, why);
    }

    /// Notes that the run was stopped, with the reason.
    pub(super) fn note_interruption(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
        attempt: Option<InterruptedAttempt>,
        why: Interruption,
    ) {
        let now = self.clock.timestamp();
        if why.by == InterruptionCause::Output {
            self.reporter.warn(&why.reason);
        }
        if let Some(attempt) = attempt {
            log.note(now, log.interruption_event(why.by, attempt.conversation));
        }
        let recovery = log.recovery();
        let end = recovery.finish(RunOutcome::Interrupted, why.exit_code, why.reason, now);
        log.note_end(now, end, None);
    }

    fn finish(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
        outcome: RunOutcome,
    ) -> Result<(), RunError> {
        let now = self.clock.timestamp();
        let recovery = log.recovery();
        let (exit_code, reason) = match outcome {
            RunOutcome::AwaitingHuman => (EXIT_INPUT_NEEDED, log.escalation_reason()),
            RunOutcome::Failed if self.is_optional() => {
                (log.failure_exit_code(EXIT_TIMED_OUT), log.failure_summary())
            }
            RunOutcome::Failed => match recovery.abort_reason() {
                Some(why) => (log.failure_exit_code(EXIT_TIMED_OUT), why.to_owned()),
                None => (
                    log.failure_exit_code(EXIT_TIMED_OUT),
                    log.passthrough_reason(),
                ),
            },
            _ => (log.child_exit_code(0), log.outcome_summary()),
        };
        let end = recovery.finish(outcome, exit_code, reason, now);
        let output = match (&self.role, outcome.is_success()) {
            (Some(_), true) => Some(self.store_role_output(log)?),
            _ => None,
        };
        log.note_end(now, end, output);
        Ok(())
    }
}

/// Returns the warning that the store cannot be written any more.
pub(super) fn store_unwritable_warning(error: &StoreError) -> String {
    format!(
        "{error}; events are kept in memory until this is fixed; plain retries continue, without repairs or model switches"
    )
}

/// Returns the message that the store can be written again.
pub(super) fn store_recovered_message(count: usize) -> String {
    format!("the store is writable again; recorded {count} pending events")
}

/// An interrupted attempt, and the conversation that can be resumed.
#[derive(Default)]
pub(super) struct InterruptedAttempt {
    pub(super) conversation: Option<String>,
}

/// Completes when a stop is requested; never if it cannot be requested.
pub(super) async fn wait_for_stop(stop: &mut watch::Receiver<AttemptStopRequest>) {
    if stop
        .wait_for(|stop| *stop != AttemptStopRequest::Continue)
        .await
        .is_err()
    {
        std::future::pending::<()>().await;
    }
}
