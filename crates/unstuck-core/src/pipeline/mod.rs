//! The state machine of a pipeline, as a fold over its events.
//!
//! The driver asks [`PipelineState::next`] for the next step, executes it, and records the resulting events. After a crash
//! the stored events are applied again and the driver continues from there: roles that succeeded do not run again.

mod config_changes;

pub use config_changes::{ROLE_REMOVED, RoleConfigChange, role_changes};

use std::collections::{BTreeMap, BTreeSet};

use crate::decision::ConcreteAttemptChange;
use crate::event::{
    EscalationAnswer, EscalationResolved, Event, EventRecord, IterationFinished, OnStuck,
    RecordedPipelineSettings, RecordedRoleSettings, RoleInstance, RunFinished, RunId, RunOutcome,
    SessionId,
};
use crate::money::BudgetRaises;

/// The next step of a pipeline's driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextPipelineStep {
    /// Begin the iteration with this number.
    BeginIteration(u32),
    /// Start or continue these role instances; they do not depend on each other.
    Run(Vec<RoleInstance>),
    /// Wait until a running role instance ends.
    Wait,
    /// Evaluate the iteration: all roles that could run have run.
    EvaluateIteration,
    /// Escalate to a human: the loop makes no progress.
    EscalateLoop(PipelineLoopProblem),
    /// Finish the run with this outcome.
    Finish(RunOutcome),
    /// No step is left: the run has finished.
    Finished,
}

/// The reason why a loop makes no progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipelineLoopProblem {
    /// Consecutive iterations leave the same work unfinished and change nothing.
    Stuck {
        /// The number of iterations.
        iterations: u32,
    },
    /// The iteration limit is reached.
    IterationLimit {
        /// The number of iterations.
        iterations: u32,
    },
}

/// The state of a role instance.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RoleInstanceState {
    /// It started and has not ended.
    Open(SessionId),
    /// It succeeded with this output.
    Done(Option<String>),
    /// It stopped without success.
    Stopped(SessionId, RunOutcome),
}

/// The state of a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct PipelineState {
    id: RunId,
    plan: RecordedPipelineSettings,
    iteration: u32,
    feedback: String,
    parts: BTreeMap<RoleInstance, RoleInstanceState>,
    /// The outputs of the previous iteration, by role.
    previous_outputs: BTreeMap<String, Vec<String>>,
    last_iteration: Option<IterationFinished>,
    /// The number of extensions of the iteration limit that humans approved.
    extensions: u32,
    sessions: u32,
    /// The budget raises that humans approved.
    budget_raises: BudgetRaises,
    /// True if an escalation about the whole run is open.
    has_open_escalation: bool,
    /// Escalations that do not block the run, with the project settings that apply once one of them is approved.
    non_blocking_escalations: BTreeMap<String, Option<String>>,
    /// The hash of the project settings that a human approved and that are not applied yet.
    approved_settings: Option<String>,
    /// The sessions that a human skipped.
    skipped: BTreeSet<SessionId>,
    /// Messages of humans to the loop, for the next iteration.
    user_messages: Vec<String>,
    /// The reason why a human aborted it.
    abort_reason: Option<String>,
    has_recovered: bool,
    finished: Option<RunFinished>,
}

impl PipelineState {
    /// Creates the state from the event that started the run; `None` if it is not a pipeline.
    pub fn from_first_event(first: &EventRecord) -> Option<Self> {
        match &first.event {
            Event::RunStarted(run) => Some(Self::new(&first.run, run.pipeline()?)),
            _ => None,
        }
    }

    /// Creates the initial state of a pipeline.
    pub fn new(id: &RunId, plan: &RecordedPipelineSettings) -> Self {
        Self {
            id: id.clone(),
            plan: plan.clone(),
            iteration: 0,
            feedback: String::new(),
            parts: BTreeMap::new(),
            previous_outputs: BTreeMap::new(),
            last_iteration: None,
            extensions: 0,
            sessions: 0,
            budget_raises: BudgetRaises::default(),
            has_open_escalation: false,
            non_blocking_escalations: BTreeMap::new(),
            approved_settings: None,
            skipped: BTreeSet::new(),
            user_messages: Vec::new(),
            abort_reason: None,
            has_recovered: false,
            finished: None,
        }
    }

    /// Folds all events; `None` if the starting event is missing or it is not a pipeline.
    pub fn from_events<'a>(events: impl IntoIterator<Item = &'a EventRecord>) -> Option<Self> {
        let mut events = events.into_iter();
        let mut pipeline = Self::from_first_event(events.next()?)?;
        events.for_each(|recorded| pipeline.apply(recorded));
        Some(pipeline)
    }

    /// Applies an event.
    pub fn apply(&mut self, recorded: &EventRecord) {
        self.budget_raises.apply(recorded);
        match &recorded.event {
            Event::RunResumed(resumed) => {
                if let Some(plan) = &resumed.pipeline {
                    self.plan = (**plan).clone();
                }
                self.approved_settings = None;
                self.on_resumed(&resumed.restarted);
            }
            Event::ConfigReloaded(reloaded) => {
                if let Some(plan) = &reloaded.pipeline {
                    self.plan = (**plan).clone();
                    self.approved_settings = None;
                }
            }
            Event::IterationStarted(started) => {
                self.previous_outputs = self.available_outputs();
                self.iteration = started.iteration;
                self.feedback.clone_from(&started.feedback);
                self.user_messages.clear();
                self.parts.clear();
                self.last_iteration = None;
            }
            Event::IterationFinished(finished) => self.last_iteration = Some(finished.clone()),
            Event::OutputReused(reused) => {
                let done = RoleInstanceState::Done(Some(reused.output.clone()));
                self.parts.insert(reused.part.clone(), done);
            }
            Event::SessionStarted(started) => {
                let session = started.spec.session.clone();
                self.sessions = self.sessions.max(session_number(&session));
                self.parts
                    .insert(started.part.clone(), RoleInstanceState::Open(session));
            }
            Event::SessionFinished(end) => {
                // A stop by a human is not a failure.
                let fine = [RunOutcome::Succeeded, RunOutcome::Interrupted];
                self.has_recovered |= !fine.contains(&end.outcome);
                let state = if end.outcome.is_success() {
                    RoleInstanceState::Done(end.output.clone())
                } else {
                    RoleInstanceState::Stopped(end.session.clone(), end.outcome)
                };
                if end.part.iteration == self.iteration {
                    self.parts.insert(end.part.clone(), state);
                }
            }
            Event::EscalationOpened(asked) if asked.is_non_blocking() => {
                let accepts = asked.details.accepted_settings.clone();
                self.non_blocking_escalations
                    .insert(asked.id.clone(), accepts);
            }
            Event::EscalationOpened(asked) if asked.session.is_none() => {
                self.has_open_escalation = true
            }
            Event::EscalationResolved(resolved) if resolved.is_by_human() => {
                self.on_escalation_resolved(resolved)
            }
            Event::RunFinished(end) => self.finished = Some(end.clone()),
            _ => {}
        }
    }

    /// Handles an answer: what waited for it continues, is skipped, or the run is aborted.
    fn on_escalation_resolved(&mut self, resolved: &EscalationResolved) {
        let answer = resolved.answer().unwrap_or(EscalationAnswer::Resolve);
        let beside = resolved
            .id
            .as_ref()
            .and_then(|id| self.non_blocking_escalations.get(id));
        if let Some(accepts) = beside {
            if answer == EscalationAnswer::Approve {
                self.approved_settings.clone_from(accepts);
            }
            return;
        }
        if answer == EscalationAnswer::Abort
            || (answer == EscalationAnswer::Skip && resolved.session.is_none())
        {
            self.abort_reason = Some(resolved.summary());
        }
        let Some(session) = &resolved.session else {
            if std::mem::take(&mut self.has_open_escalation) && answer.continues() {
                self.extend_iterations();
            }
            let said = resolved
                .changes
                .iter()
                .filter_map(ConcreteAttemptChange::user_message);
            self.user_messages.extend(said.map(str::to_owned));
            return;
        };
        if answer == EscalationAnswer::Skip {
            self.skipped.insert(session.clone());
        }
        for state in self.parts.values_mut() {
            if let RoleInstanceState::Stopped(one, RunOutcome::AwaitingHuman) = state
                && one == session
            {
                *state = RoleInstanceState::Open(session.clone());
            }
        }
    }

    /// Extends the iteration limit of a loop that made no progress.
    fn extend_iterations(&mut self) {
        if self.is_iteration_limit_reached() {
            self.extensions += 1;
        }
        if let Some(judged) = &mut self.last_iteration {
            judged.unchanged = 0;
        }
    }

    /// Handles a resume: stopped roles continue, and roles to run again are reset. Roles that wait for a budget stay
    /// stopped until a human answers.
    fn on_resumed(&mut self, restarted: &[String]) {
        self.extend_iterations();
        // Resuming an aborted run revokes the abort.
        if self.is_failed() {
            self.abort_reason = None;
        }
        self.finished = None;
        self.has_open_escalation = false;
        self.parts.retain(|part, _| !restarted.contains(&part.role));
        if !restarted.is_empty() {
            self.last_iteration = None;
        }
        for state in self.parts.values_mut() {
            if let RoleInstanceState::Stopped(session, _) = state
                && self.budget_raises.open_escalation_of(session).is_none()
            {
                *state = RoleInstanceState::Open(session.clone());
            }
        }
    }

    fn is_failed(&self) -> bool {
        let end = self.finished.as_ref();
        end.is_some_and(|end| end.outcome == RunOutcome::Failed)
    }

    /// Returns the next step while these role instances run.
    pub fn next(&self, running: &BTreeSet<RoleInstance>) -> NextPipelineStep {
        if self.finished.is_some() {
            return NextPipelineStep::Finished;
        }
        if self.iteration == 0 {
            return NextPipelineStep::BeginIteration(1);
        }
        if self.abort_reason.is_some() {
            return if running.is_empty() {
                NextPipelineStep::Finish(RunOutcome::Failed)
            } else {
                NextPipelineStep::Wait
            };
        }
        if let Some(judged) = &self.last_iteration {
            return self.step_after_iteration(judged);
        }
        let ready = self.ready_instances(running);
        if !ready.is_empty() {
            return NextPipelineStep::Run(ready);
        }
        if !running.is_empty() {
            return NextPipelineStep::Wait;
        }
        self.step_when_idle()
    }

    /// Returns the next step when nothing in an iteration can run any more.
    fn step_when_idle(&self) -> NextPipelineStep {
        let stopped = |wanted: RunOutcome| {
            let mut parts = self.parts.iter();
            parts.any(|(part, state)| match state {
                RoleInstanceState::Stopped(session, outcome) => {
                    let is_needed = !self.is_optional(&part.role) && !self.is_skipped(session);
                    *outcome == wanted && is_needed
                }
                _ => false,
            })
        };
        if self.has_open_escalation || stopped(RunOutcome::AwaitingHuman) {
            NextPipelineStep::Finish(RunOutcome::AwaitingHuman)
        } else if stopped(RunOutcome::Interrupted) {
            NextPipelineStep::Finish(RunOutcome::Interrupted)
        } else if self.plan.loop_settings.is_some() {
            NextPipelineStep::EvaluateIteration
        } else if stopped(RunOutcome::Failed) {
            NextPipelineStep::Finish(RunOutcome::Failed)
        } else {
            self.finish_step()
        }
    }

    fn step_after_iteration(&self, judged: &IterationFinished) -> NextPipelineStep {
        let Some(looping) = &self.plan.loop_settings else {
            return self.finish_step();
        };
        if judged.done {
            return self.finish_step();
        }
        if self.has_open_escalation {
            return NextPipelineStep::Finish(RunOutcome::AwaitingHuman);
        }
        let stuck = judged.unchanged >= looping.stuck_after && looping.stuck_after > 0;
        match looping.on_stuck {
            OnStuck::Stop if stuck => return NextPipelineStep::Finish(RunOutcome::Failed),
            OnStuck::Escalate if stuck => {
                return NextPipelineStep::EscalateLoop(PipelineLoopProblem::Stuck {
                    iterations: judged.unchanged,
                });
            }
            _ => {}
        }
        if self.iteration < self.max_iterations() {
            return NextPipelineStep::BeginIteration(self.iteration + 1);
        }
        NextPipelineStep::EscalateLoop(PipelineLoopProblem::IterationLimit {
            iterations: self.iteration,
        })
    }

    fn finish_step(&self) -> NextPipelineStep {
        NextPipelineStep::Finish(if self.has_recovered {
            RunOutcome::Recovered
        } else {
            RunOutcome::Succeeded
        })
    }

    /// Returns the iteration limit with the extensions that humans approved.
    pub fn max_iterations(&self) -> u32 {
        let looping = self.plan.loop_settings.as_ref();
        let most = looping.map_or(1, |looping| looping.max_iterations);
        most.saturating_mul(self.extensions + 1)
    }

    fn is_iteration_limit_reached(&self) -> bool {
        let judged = self.last_iteration.as_ref();
        judged.is_some_and(|judged| !judged.done) && self.iteration >= self.max_iterations()
    }

    /// Returns the role instances that can run now: not started, or started and not ended.
    fn ready_instances(&self, running: &BTreeSet<RoleInstance>) -> Vec<RoleInstance> {
        let mut ready = Vec::new();
        for role in &self.plan.roles {
            if !role.needs.iter().all(|needed| self.is_settled(needed)) {
                continue;
            }
            for part in self.instances_of(role) {
                let open = matches!(
                    self.parts.get(&part),
                    None | Some(RoleInstanceState::Open(_))
                );
                if open && !running.contains(&part) {
                    ready.push(part);
                }
            }
        }
        ready
    }

    fn instances_of(&self, role: &RecordedRoleSettings) -> impl Iterator<Item = RoleInstance> {
        let (id, iteration) = (role.id.clone(), self.iteration);
        (1..=role.instances.max(1)).map(move |instance| RoleInstance {
            role: id.clone(),
            iteration,
            instance,
        })
    }

    /// True if the roles that depend on this role can continue.
    fn is_settled(&self, role: &str) -> bool {
        let Some(role) = self.role(role) else {
            // A role that is excluded from this run.
            return true;
        };
        let optional = role.optional;
        self.instances_of(role)
            .all(|part| match self.parts.get(&part) {
                Some(RoleInstanceState::Done(_)) => true,
                Some(RoleInstanceState::Stopped(session, outcome)) => {
                    (optional || self.is_skipped(session)) && *outcome != RunOutcome::Interrupted
                }
                _ => false,
            })
    }

    /// True if a human skipped the session.
    pub fn is_skipped(&self, session: &SessionId) -> bool {
        self.skipped.contains(session)
    }

    /// Returns the hash of the project settings that a human approved since the configuration was last applied.
    pub fn approved_settings(&self) -> Option<&str> {
        self.approved_settings.as_deref()
    }

    /// Returns messages of humans to the loop, for the next iteration.
    pub fn user_messages(&self) -> &[String] {
        &self.user_messages
    }

    /// Returns the reason why a human aborted it, if they did.
    pub fn abort_reason(&self) -> Option<&str> {
        self.abort_reason.as_deref()
    }

    fn is_optional(&self, role: &str) -> bool {
        self.role(role).is_some_and(|role| role.optional)
    }

    /// Returns the role with this id.
    pub fn role(&self, id: &str) -> Option<&RecordedRoleSettings> {
        self.plan.roles.iter().find(|role| role.id == id)
    }

    /// Returns the outputs of this iteration by role, as hashes.
    pub fn current_outputs(&self) -> BTreeMap<String, Vec<String>> {
        let mut outputs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (part, state) in &self.parts {
            if let RoleInstanceState::Done(Some(output)) = state {
                let of_role = outputs.entry(part.role.clone()).or_default();
                of_role.push(output.clone());
            }
        }
        outputs
    }

    /// Returns the available outputs by role, as hashes: those of this iteration, otherwise of the previous one.
    pub fn available_outputs(&self) -> BTreeMap<String, Vec<String>> {
        let mut outputs = self.previous_outputs.clone();
        outputs.extend(self.current_outputs());
        outputs
    }

    /// Counts the consecutive iterations, including one more, with the same unfinished work and no change.
    pub fn unchanged_iterations_with(
        &self,
        newest: &IterationFinished,
        before: Option<&IterationFinished>,
    ) -> u32 {
        let same = before.is_some_and(|before| {
            before.fingerprint.is_some()
                && before.fingerprint == newest.fingerprint
                && before.tree.is_some()
                && before.tree == newest.tree
        });
        match before {
            Some(before) if same => before.unchanged.max(1) + 1,
            _ => 1,
        }
    }

    /// Returns the id of the run.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// Returns the pipeline's settings.
    pub fn plan(&self) -> &RecordedPipelineSettings {
        &self.plan
    }

    /// Returns the current iteration; 0 before the first.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// Returns the unfinished work of the previous iteration.
    pub fn feedback(&self) -> &str {
        &self.feedback
    }

    /// Returns the evaluation of the latest iteration, if there is one.
    pub fn last_iteration(&self) -> Option<&IterationFinished> {
        self.last_iteration.as_ref()
    }

    /// Returns the session of a role instance that has started and is not done.
    pub fn session_of(&self, part: &RoleInstance) -> Option<&SessionId> {
        match self.parts.get(part)? {
            RoleInstanceState::Open(session) | RoleInstanceState::Stopped(session, _) => {
                Some(session)
            }
            RoleInstanceState::Done(_) => None,
        }
    }

    /// True if a role instance has started and not ended.
    pub fn is_open(&self, part: &RoleInstance) -> bool {
        matches!(self.parts.get(part), Some(RoleInstanceState::Open(_)))
    }

    /// Returns the budget raises that humans approved.
    pub fn budget_raises(&self) -> &BudgetRaises {
        &self.budget_raises
    }

    /// Returns the budget escalation that blocks the whole pipeline: its id and its reason.
    pub fn blocking_budget_escalation(&self, restarted: &[String]) -> Option<(&str, &str)> {
        let question = self.budget_raises.oldest_open_escalation()?;
        let is_restarted = self.parts.iter().any(|(part, state)| match state {
            RoleInstanceState::Open(session) | RoleInstanceState::Stopped(session, _) => {
                restarted.contains(&part.role)
                    && self.budget_raises.open_escalation_of(session).is_some()
            }
            RoleInstanceState::Done(_) => false,
        });
        let mut again = self.clone();
        again.on_resumed(restarted);
        let is_held =
            again.next(&BTreeSet::new()) == NextPipelineStep::Finish(RunOutcome::AwaitingHuman);
        (is_restarted || is_held).then_some(question)
    }

    /// Returns the number of sessions.
    pub fn session_count(&self) -> u32 {
        self.sessions
    }

    /// Returns the roles whose instances of this iteration are all done.
    pub fn completed_roles(&self) -> Vec<&str> {
        let done = |role: &&RecordedRoleSettings| {
            self.instances_of(role)
                .all(|part| matches!(self.parts.get(&part), Some(RoleInstanceState::Done(_))))
        };
        let roles = self.plan.roles.iter().filter(done);
        roles.map(|role| role.id.as_str()).collect()
    }

    /// Returns the role instances that stopped without success, with their outcomes.
    pub fn stopped_instances(&self) -> impl Iterator<Item = (&RoleInstance, RunOutcome)> {
        self.parts.iter().filter_map(|(part, state)| match state {
            RoleInstanceState::Stopped(_, outcome) => Some((part, *outcome)),
            _ => None,
        })
    }

    /// Returns the roles of this iteration that are not done, in execution order.
    pub fn remaining_roles(&self) -> Vec<&str> {
        let done = self.completed_roles();
        let roles = self.plan.roles.iter().map(|role| role.id.as_str());
        roles.filter(|id| !done.contains(id)).collect()
    }

    /// Returns the end of the run, if it has ended.
    pub fn run_finished(&self) -> Option<&RunFinished> {
        self.finished.as_ref()
    }

    /// Returns these roles and all that depend on them, directly or indirectly.
    pub fn with_dependents(&self, roles: &[String]) -> Vec<String> {
        let mut all: BTreeSet<&str> = roles.iter().map(String::as_str).collect();
        loop {
            let more: Vec<&str> = self
                .plan
                .roles
                .iter()
                .filter(|role| !all.contains(role.id.as_str()))
                .filter(|role| {
                    role.needs
                        .iter()
                        .any(|needed| all.contains(needed.as_str()))
                })
                .map(|role| role.id.as_str())
                .collect();
            if more.is_empty() {
                break;
            }
            all.extend(more);
        }
        all.into_iter().map(str::to_owned).collect()
    }
}

/// Returns the number in a session's id.
fn session_number(session: &SessionId) -> u32 {
    let number = session.as_str().rsplit_once('-').map(|(_, number)| number);
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
