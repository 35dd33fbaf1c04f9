//! A role instance: one role in one iteration, run like a single command.

use std::collections::BTreeMap;

use serde_json::json;
use unstuck_core::agent::AgentCommandInputs;
use unstuck_core::decision::RandomDraw;
use unstuck_core::duration::to_millis;
use unstuck_core::event::{EscalationResolved, Event, RoleInstance, SessionSpec, SessionStarted};
use unstuck_core::views::NormalizedPrompt;
use unstuck_core::{EventRecord, SessionId, SessionState};

use super::{PipelineExecution, PipelineRunner, RolePlan};
use crate::blobs::BlobStore;
use crate::process::Stdin;
use crate::prompt::{ProjectPromptFileProvider, PromptValues};
use crate::runner::budget_tracker::BudgetTracker;
use crate::runner::error::RunError;
use crate::runner::knowledge::RunKnowledgeBase;
use crate::runner::pinned_program::{inherited_path, pinned_program};
use crate::runner::reporter::{OutputChannel, SessionReporter, SessionWait};
use crate::runner::role_execution_settings::{RoleAgentCommand, RoleContext};
use crate::runner::run_event_log::RunEventLog;
use crate::runner::session_event_log::SessionEventLog;
use crate::runner::session_runner::SessionRunner;
use crate::worktree::RoleTreeChange;

impl PipelineRunner<'_> {
    /// Runs a role instance to its end and returns it.
    pub(super) async fn run_instance(
        &self,
        stage: &PipelineExecution<'_, '_>,
        part: RoleInstance,
    ) -> Result<RoleInstance, RunError> {
        let plan = self.plan();
        let Some(role) = plan.role(&part.role) else {
            return Ok(part);
        };
        let journal = stage.journal;
        let call = self.role_invocation(stage, role, &part)?;
        let known = journal.with_view(|run| run.pipeline.as_ref()?.session_of(&part).cloned());
        let now = self.clock.timestamp();
        let mut log = match known.as_ref() {
            Some(session) => {
                let started = self.session_started(stage, role, &part, session.clone(), &call)?;
                // Answers may have been recorded while this process was running.
                let past = self.store.load(journal.run()).await?;
                let again = SessionEventLog::reopen_instance(journal, session, &past);
                match again {
                    Some(mut log) => {
                        if log.recovery().spec() != &started.spec {
                            log.note_reconfigured(now, started);
                        }
                        let is_left_out = self.with_pipeline(journal, |pipeline| {
                            pipeline.is_skipped(session) || pipeline.abort_reason().is_some()
                        });
                        if log.recovery().needs_human() && !is_left_out {
                            let answer = EscalationResolved::by_hand(Some(session.clone()));
                            log.note(now, answer);
                        }
                        log
                    }
                    None => SessionEventLog::begin_instance(journal, started, now),
                }
            }
            None => {
                let session = self.next_session(stage);
                let started = self.session_started(stage, role, &part, session, &call)?;
                SessionEventLog::begin_instance(journal, started, now)
            }
        };
        let mut reporter = InstanceReporter {
            runner: self,
            stage,
            instance: &part,
        };
        let mut draw = || -> RandomDraw { (self.random_draws.borrow_mut())() };
        let purse = BudgetTracker::new(self.plan().budget, self.store);
        let mut engine = SessionRunner {
            store: self.store,
            knowledge: RunKnowledgeBase {
                own_playbook: role.playbook.as_ref(),
                ..self.knowledge
            },
            redactor: self.redactor,
            supervisors: self.supervisors,
            stdin: &mut Stdin::null(),
            reporter: &mut reporter,
            stop: self.stop.clone(),
            clock: self.clock,
            home: self.home,
            heartbeat: self.heartbeat,
            network: self.network.clone(),
            random_draws: &mut draw,
            state: self.state,
            role: Some(RoleContext {
                invocation: &call,
                loop_limits: &self.plan().stuck,
                snapshots: stage.snapshots.as_ref(),
                is_snapshot_warning_shown: &stage.is_snapshot_warning_shown,
                optional: role.optional,
                rollback: self.plan().rollback,
                budget: &purse,
            }),
            repairer: self.repair_coordinator(&plan),
            deadline_policy: &plan.patience,
            notifier: self.notifier,
            go_between: self.go_between,
        };
        engine.run_loop(&mut log).await?;
        Ok(part)
    }

    /// Finds the programs of all roles before any of them runs.
    pub(super) fn pin_programs(&self, journal: &RunEventLog<'_>) {
        let plan = self.plan();
        for role in &plan.roles {
            let own = role.command.first().map(String::as_str);
            let Some(name) = own.or_else(|| role.agent.file().call.program()) else {
                continue;
            };
            let path = role.env.iter().rev().find(|(name, _)| name == "PATH");
            let search = path.map_or_else(inherited_path, |(_, path)| path.into());
            let folders = (&*plan.project, &*plan.project);
            // Without it, the program is looked up for each attempt.
            let _ = pinned_program((self.state, journal.run()), name.as_ref(), &search, folders);
        }
    }

    fn next_session(&self, stage: &PipelineExecution<'_, '_>) -> SessionId {
        let number = stage.sessions.get() + 1;
        stage.sessions.set(number);
        stage.journal.run().session_id(number)
    }

    /// Returns the invocation of a role, with its rendered prompt.
    fn role_invocation(
        &self,
        stage: &PipelineExecution<'_, '_>,
        role: &RolePlan,
        part: &RoleInstance,
    ) -> Result<RoleAgentCommand, RunError> {
        let outputs = self.dependency_outputs(stage, role)?;
        let (iterations, feedback) = self.with_pipeline(stage.journal, |pipeline| {
            (pipeline.max_iterations(), pipeline.feedback().to_owned())
        });
        let values = PromptValues {
            task: self.plan().task.clone(),
            iteration: part.iteration,
            max_iterations: iterations,
            role: part.role.clone(),
            instance: part.instance,
            instances: role.instances,
            outputs,
            feedback: feedback.clone(),
            run: stage.journal.run().to_string(),
            recovery_instructions: match self.plan().repair {
                Some(_) => unstuck_core::repair::agent_instructions().to_owned(),
                None => String::new(),
            },
        };
        let files = ProjectPromptFileProvider::new(&self.plan().project);
        let (mut prompt, fault) = match role.prompt.render(&values, &files) {
            Ok(prompt) => (prompt, None),
            Err(fault) => (String::new(), Some(fault)),
        };
        if !feedback.is_empty()
            && !role.prompt.uses_variable("feedback")
            && !prompt.trim().is_empty()
        {
            prompt = format!(
                "{}\n\nUnfinished after the previous iteration:\n{feedback}\n",
                prompt.trim_end()
            );
        }
        Ok(RoleAgentCommand {
            agent: role.agent.clone(),
            command: role.command.clone(),
            prompt,
            model: role.model.clone(),
            tools: role.tools.clone(),
            args: role.args.clone(),
            env: role.env.clone(),
            max_output: role.max_output,
            prompt_fault: fault,
        })
    }

    /// Returns the outputs of the dependencies by role; for several instances, one after the other.
    fn dependency_outputs(
        &self,
        stage: &PipelineExecution<'_, '_>,
        role: &RolePlan,
    ) -> Result<BTreeMap<String, String>, RunError> {
        if !role.prompt.uses_variable("outputs") {
            return Ok(BTreeMap::new());
        }
        let hashes = self.with_pipeline(stage.journal, |pipeline| pipeline.available_outputs());
        let blobs = BlobStore::in_state_dir(self.state);
        let mut outputs = BTreeMap::new();
        for role in &self.plan().roles {
            // A role that has not run yet has no output.
            outputs.insert(role.id.clone(), String::new());
        }
        for (role, names) in hashes {
            let texts: Result<Vec<String>, RunError> = names
                .iter()
                .map(|name| match blobs.get(name) {
                    Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
                    Err(why) => Err(RunError::OutputMissing {
                        role: role.clone(),
                        why: why.to_string(),
                    }),
                })
                .collect();
            let most = self.plan().role(&role).and_then(|role| role.max_output);
            let texts: Vec<_> = texts?
                .into_iter()
                .map(|text| truncate_text(text, most))
                .collect();
            outputs.insert(role, texts.join("\n\n"));
        }
        Ok(outputs)
    }

    fn session_started(
        &self,
        stage: &PipelineExecution<'_, '_>,
        role: &RolePlan,
        part: &RoleInstance,
        session: SessionId,
        call: &RoleAgentCommand,
    ) -> Result<SessionStarted, RunError> {
        let built = role.agent.build_command(&AgentCommandInputs {
            command: &call.command,
            prompt: "",
            prompt_file: Some("-"),
            model: call.model.as_deref(),
            tools: &call.tools,
            args: &call.args,
            ..AgentCommandInputs::default()
        });
        // An invalid command line is reported when the attempt is made.
        let command = built.map_or_else(|_| call.command.clone(), |built| built.command);
        let inputs = self.with_pipeline(stage.journal, |pipeline| pipeline.available_outputs());
        let needed = |(id, _): &(String, Vec<String>)| role.needs.contains(id);
        Ok(SessionStarted {
            part: part.clone(),
            spec: SessionSpec {
                session,
                cwd: self.plan().cwd.display().to_string(),
                command,
                agent: Some(role.agent.id().to_owned()),
                model: role.model.clone(),
                policy: role.policy.clone(),
                origins: role.origins.clone(),
                timeout_ms: role.timeout.map(to_millis),
                idle_timeout_ms: role.idle_timeout.map(to_millis),
                options: json!(role.options),
                unrepeatable_reason: None,
                knowledge: self.knowledge.version.to_owned(),
            },
            inputs: inputs.into_iter().filter(needed).collect(),
            prompt: Some(NormalizedPrompt::mask(role.prompt.text())),
        })
    }
}

/// Truncates a text to a limit and says what was omitted.
fn truncate_text(text: String, most: Option<u64>) -> String {
    let most = most.and_then(|most| usize::try_from(most).ok());
    match most.and_then(|most| text.char_indices().nth(most)) {
        Some((at, _)) => format!(
            "{}\n[… truncated: {} more characters]",
            &text[..at],
            text[at..].chars().count()
        ),
        None => text,
    }
}

/// Reports the events of a role instance.
struct InstanceReporter<'r, 's, 'a, 'c> {
    runner: &'r PipelineRunner<'c>,
    stage: &'r PipelineExecution<'s, 'a>,
    instance: &'r RoleInstance,
}

impl SessionReporter for InstanceReporter<'_, '_, '_, '_> {
    fn output(&mut self, channel: OutputChannel, bytes: &[u8]) {
        let part = self.instance;
        self.runner
            .with_reporter(|reporter| reporter.output(part, channel, bytes));
    }

    fn on_events(&mut self, events: &[EventRecord], _recovery: &SessionState) {
        let journal = self.stage.journal;
        journal.with_view(|run| {
            self.runner
                .with_reporter(|reporter| reporter.on_events(events, run))
        });
        self.record_tree_steps(events);
    }

    fn on_still_waiting(&mut self, wait: &SessionWait, recovery: &SessionState) {
        let role = &self.instance.role;
        self.runner
            .with_reporter(|reporter| reporter.on_still_waiting(role, wait, recovery));
    }

    fn on_held_call(&mut self, wait: Option<&SessionWait>, recovery: &SessionState) {
        let session = &recovery.spec().session;
        self.runner
            .with_reporter(|reporter| reporter.on_held_call(session, wait));
    }

    fn note(&mut self, message: &str) {
        self.runner.with_reporter(|reporter| reporter.note(message));
    }

    fn warn(&mut self, message: &str) {
        self.runner.with_reporter(|reporter| reporter.warn(message));
    }
}

impl InstanceReporter<'_, '_, '_, '_> {
    /// Records how the role changed the work tree.
    fn record_tree_steps(&self, events: &[EventRecord]) {
        let mut steps = self.stage.steps.borrow_mut();
        for recorded in events {
            match &recorded.event {
                Event::AttemptStarted(attempt) => {
                    steps.extend(attempt.tree.clone().map(|tree| RoleTreeChange {
                        role: self.instance.role.clone(),
                        after: tree.clone(),
                        before: tree,
                    }));
                }
                Event::AttemptFailed(attempt) => {
                    self.set_tree_after(&mut steps, attempt.end.tree.as_ref())
                }
                Event::AttemptSucceeded(attempt) => {
                    self.set_tree_after(&mut steps, attempt.end.tree.as_ref());
                }
                _ => {}
            }
        }
    }

    fn set_tree_after(&self, steps: &mut [RoleTreeChange], tree: Option<&String>) {
        let newest = steps
            .iter_mut()
            .rev()
            .find(|step| step.role == self.instance.role);
        if let (Some(newest), Some(tree)) = (newest, tree) {
            newest.after.clone_from(tree);
        }
    }
}
