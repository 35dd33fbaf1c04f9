//! One part of a pipeline: a role in one iteration, driven like a single command.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;
use unstuck_core::agent::Call;
use unstuck_core::decision::Draw;
use unstuck_core::duration::in_millis;
use unstuck_core::episode::PromptPattern;
use unstuck_core::event::{Event, Part, RecoveryResolved, SessionSpec, SessionStarted};
use unstuck_core::{Recorded, Recovery, SessionId, Timestamp};

use super::{Conductor, RolePlan, Stage};
use crate::blobs::Blobs;
use crate::drive::budget::Purse;
use crate::drive::engine::Engine;
use crate::drive::error::RunError;
use crate::drive::knowledge::Knowledge;
use crate::drive::log::Log;
use crate::drive::report::{Channel, Reporter};
use crate::drive::role_work::{RoleCall, RoleWork};
use crate::process::Stdin;
use crate::prompt::{ProjectFiles, Values};
use crate::worktree::Step;

impl Conductor<'_> {
    /// Runs a part to its end, and tells which it was.
    pub(super) async fn part(&self, stage: &Stage<'_, '_>, part: Part) -> Result<Part, RunError> {
        let plan = self.plan();
        let Some(role) = plan.role(&part.role) else {
            return Ok(part);
        };
        let journal = stage.journal;
        let call = self.call(stage, role, &part)?;
        let known = journal.know(|run| run.pipeline.as_ref()?.session_of(&part).cloned());
        let now = self.clock.at();
        let mut log = match known.as_ref() {
            Some(session) => {
                let started = self.started(stage, role, &part, session.clone(), &call)?;
                // What happened in this process counts as well, where it was answered meanwhile.
                let past = self.store.load(journal.run()).await?;
                let again = Log::part_again(journal, session, &past);
                match again {
                    Some(mut log) => {
                        if log.recovery().spec() != &started.spec {
                            log.configured(now, started);
                        }
                        let is_left_out = self.know(journal, |pipeline| {
                            pipeline.is_skipped(session) || pipeline.given_up().is_some()
                        });
                        if log.recovery().is_given_up() && !is_left_out {
                            let answer = RecoveryResolved::by_hand(Some(session.clone()));
                            log.note(now, answer);
                        }
                        log
                    }
                    None => Log::part(journal, started, now),
                }
            }
            None => {
                let session = self.next_session(stage);
                let started = self.started(stage, role, &part, session, &call)?;
                Log::part(journal, started, now)
            }
        };
        let mut reporter = PartReporter {
            conductor: self,
            stage,
            part: &part,
        };
        let mut draw = || -> Draw { (self.draws.borrow_mut())() };
        let purse = Purse::new(self.plan().budget, self.store);
        let mut engine = Engine {
            store: self.store,
            knowledge: Knowledge {
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
            draws: &mut draw,
            state: self.state,
            role: Some(RoleWork {
                call: &call,
                stuck: &self.plan().stuck,
                snapshots: stage.snapshots.as_ref(),
                told: &stage.told,
                optional: role.optional,
                rollback: self.plan().rollback,
                purse: &purse,
            }),
            repairer: self.repairer(&plan),
            patience: &plan.patience,
            announcer: self.announcer,
            go_between: self.go_between,
        };
        engine.drive(&mut log).await?;
        Ok(part)
    }

    fn next_session(&self, stage: &Stage<'_, '_>) -> SessionId {
        let number = stage.sessions.get() + 1;
        stage.sessions.set(number);
        stage.journal.run().session(number)
    }

    /// The call of a role, with its prompt filled in.
    fn call(
        &self,
        stage: &Stage<'_, '_>,
        role: &RolePlan,
        part: &Part,
    ) -> Result<RoleCall, RunError> {
        let outputs = self.outputs(stage, role)?;
        let (iterations, feedback) = self.know(stage.journal, |pipeline| {
            (pipeline.most_iterations(), pipeline.feedback().to_owned())
        });
        let values = Values {
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
                Some(_) => unstuck_core::repair::instructions().to_owned(),
                None => String::new(),
            },
        };
        let files = ProjectFiles::new(&self.plan().project);
        let (mut prompt, fault) = match role.prompt.render(&values, &files) {
            Ok(prompt) => (prompt, None),
            Err(fault) => (String::new(), Some(fault)),
        };
        if !feedback.is_empty() && !role.prompt.uses("feedback") && !prompt.trim().is_empty() {
            prompt = format!(
                "{}\n\nWhat the iteration before left undone:\n{feedback}\n",
                prompt.trim_end()
            );
        }
        Ok(RoleCall {
            agent: role.agent.clone(),
            command: role.command.clone(),
            prompt,
            model: role.model.clone(),
            tools: role.tools.clone(),
            args: role.args.clone(),
            env: role.env.clone(),
            max_output: role.max_output,
            fault,
        })
    }

    /// The outputs that can be built on, by role: of several who play it one after the other.
    fn outputs(
        &self,
        stage: &Stage<'_, '_>,
        role: &RolePlan,
    ) -> Result<BTreeMap<String, String>, RunError> {
        if !role.prompt.uses("outputs") {
            return Ok(BTreeMap::new());
        }
        let hashes = self.know(stage.journal, |pipeline| pipeline.outputs());
        let blobs = Blobs::at(self.state);
        let mut outputs = BTreeMap::new();
        for role in &self.plan().roles {
            // A role that has not run yet has said nothing so far.
            outputs.insert(role.id.clone(), String::new());
        }
        for (role, names) in hashes {
            let texts: Result<Vec<String>, RunError> = names
                .iter()
                .map(|name| match blobs.get(name) {
                    Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
                    Err(why) => Err(RunError::LostOutput {
                        role: role.clone(),
                        why: why.to_string(),
                    }),
                })
                .collect();
            let most = self.plan().role(&role).and_then(|role| role.max_output);
            let texts: Vec<_> = texts?.into_iter().map(|text| cut(text, most)).collect();
            outputs.insert(role, texts.join("\n\n"));
        }
        Ok(outputs)
    }

    fn started(
        &self,
        stage: &Stage<'_, '_>,
        role: &RolePlan,
        part: &Part,
        session: SessionId,
        call: &RoleCall,
    ) -> Result<SessionStarted, RunError> {
        let built = role.agent.build(&Call {
            command: &call.command,
            prompt: "",
            prompt_file: Some("-"),
            model: call.model.as_deref(),
            tools: &call.tools,
            args: &call.args,
            ..Call::default()
        });
        // What is wrong with the call is told when it is made.
        let command = built.map_or_else(|_| call.command.clone(), |built| built.command);
        let inputs = self.know(stage.journal, |pipeline| pipeline.outputs());
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
                timeout_ms: role.timeout.map(in_millis),
                idle_timeout_ms: role.idle_timeout.map(in_millis),
                options: json!(role.options),
                unrepeatable: None,
                knowledge: self.knowledge.version.to_owned(),
            },
            inputs: inputs.into_iter().filter(needed).collect(),
            prompt: Some(PromptPattern::masked(role.prompt.text())),
        })
    }
}

/// A text that is no longer than it may be; what was left out is said.
fn cut(text: String, most: Option<u64>) -> String {
    let most = most.and_then(|most| usize::try_from(most).ok());
    match most.and_then(|most| text.char_indices().nth(most)) {
        Some((at, _)) => format!(
            "{}\n[… cut: {} characters more]",
            &text[..at],
            text[at..].chars().count()
        ),
        None => text,
    }
}

/// Passes on what happens to a part.
struct PartReporter<'r, 's, 'a, 'c> {
    conductor: &'r Conductor<'c>,
    stage: &'r Stage<'s, 'a>,
    part: &'r Part,
}

impl Reporter for PartReporter<'_, '_, '_, '_> {
    fn output(&mut self, channel: Channel, bytes: &[u8]) {
        let part = self.part;
        self.conductor
            .tell(|reporter| reporter.output(part, channel, bytes));
    }

    fn happened(&mut self, events: &[Recorded], _recovery: &Recovery) {
        let journal = self.stage.journal;
        journal.know(|run| {
            self.conductor
                .tell(|reporter| reporter.happened(events, run))
        });
        self.note_trees(events);
    }

    fn still_waiting(&mut self, left: Duration, until: Timestamp, recovery: &Recovery) {
        let role = &self.part.role;
        self.conductor
            .tell(|reporter| reporter.still_waiting(role, left, until, recovery));
    }

    fn note(&mut self, message: &str) {
        self.conductor.tell(|reporter| reporter.note(message));
    }

    fn warn(&mut self, message: &str) {
        self.conductor.tell(|reporter| reporter.warn(message));
    }
}

impl PartReporter<'_, '_, '_, '_> {
    /// Keeps in mind what the role made of the work tree.
    fn note_trees(&self, events: &[Recorded]) {
        let mut steps = self.stage.steps.borrow_mut();
        for recorded in events {
            match &recorded.event {
                Event::AttemptStarted(attempt) => {
                    steps.extend(attempt.tree.clone().map(|tree| Step {
                        role: self.part.role.clone(),
                        after: tree.clone(),
                        before: tree,
                    }));
                }
                Event::AttemptFailed(attempt) => {
                    self.changed(&mut steps, attempt.end.tree.as_ref())
                }
                Event::AttemptSucceeded(attempt) => {
                    self.changed(&mut steps, attempt.end.tree.as_ref());
                }
                _ => {}
            }
        }
    }

    fn changed(&self, steps: &mut [Step], tree: Option<&String>) {
        let newest = steps
            .iter_mut()
            .rev()
            .find(|step| step.role == self.part.role);
        if let (Some(newest), Some(tree)) = (newest, tree) {
            newest.after.clone_from(tree);
        }
    }
}
