//! Where a pipeline stands: which roles are done, which are to run, and when it is over, as a fold over its events.
//!
//! Whoever drives a pipeline asks [`Pipeline::next`] what is to be done, does it, and records what happened. After a
//! crash the stored events are recorded again, and the drive goes on from there: what succeeded is not run again.

mod config_changes;

pub use config_changes::{ROLE_REMOVED, RoleChange, role_changes};

use std::collections::{BTreeMap, BTreeSet};

use crate::decision::ConcreteChange;
use crate::event::{
    EscalationAnswer, EscalationResolved, Event, EventRecord, IterationFinished, OnStuck,
    PipelineStarted, RoleInstance, RoleStarted, RunFinished, RunId, RunOutcome, SessionId,
};
use crate::money::BudgetRaises;

/// What the one who drives a pipeline has to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PipelineStep {
    /// Begin the iteration of this number.
    BeginIteration(u32),
    /// Begin these parts, or go on with them; they do not depend on each other.
    Run(Vec<RoleInstance>),
    /// Wait until a part that runs is at its end.
    Wait,
    /// Judge the iteration: all that could be run has run.
    EvaluateIteration,
    /// Ask a person: the loop does not get on.
    EscalateLoop(LoopProblem),
    /// Bring the run to this end.
    Finish(RunOutcome),
    /// Nothing: the run has come to its end.
    Finished,
}

/// Why a loop does not get on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopProblem {
    /// Iteration after iteration leaves the same undone and changes nothing.
    Stuck {
        /// How many iterations.
        iterations: u32,
    },
    /// The allowed number of iterations is reached.
    IterationLimit {
        /// How many.
        iterations: u32,
    },
}

/// Where a part stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RoleInstanceState {
    /// It began, and is not at its end.
    Open(SessionId),
    /// It did what it should, and this is its output.
    Done(Option<String>),
    /// It stopped without having done what it should.
    Stopped(SessionId, RunOutcome),
}

/// Where a pipeline stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    id: RunId,
    plan: PipelineStarted,
    iteration: u32,
    feedback: String,
    parts: BTreeMap<RoleInstance, RoleInstanceState>,
    /// The outputs of the iteration before, by role.
    previous_outputs: BTreeMap<String, Vec<String>>,
    last_iteration: Option<IterationFinished>,
    /// How often a person has allowed as many iterations again.
    extensions: u32,
    sessions: u32,
    /// What people have allowed beyond the budgets.
    budget_raises: BudgetRaises,
    /// Whether a person was asked about the run as a whole, and has not seen to it.
    has_open_escalation: bool,
    /// Questions beside which the run goes on, and the project's settings that count once one of them is approved.
    non_blocking_escalations: BTreeMap<String, Option<String>>,
    /// The hash of the project's settings that a person has approved, and that are to be taken over.
    approved_settings: Option<String>,
    /// The sessions that a person wants to be left out.
    skipped: BTreeSet<SessionId>,
    /// What a person said to the loop, for the next iteration.
    user_messages: Vec<String>,
    /// Why a person wants it to end as it is.
    abort_reason: Option<String>,
    has_recovered: bool,
    finished: Option<RunFinished>,
}

impl Pipeline {
    /// Begins with the event that began the run; none if it is no pipeline.
    pub fn from_first_event(first: &EventRecord) -> Option<Self> {
        match &first.event {
            Event::RunStarted(run) => Some(Self::new(&first.run, run.pipeline()?)),
            _ => None,
        }
    }

    /// Where a pipeline stands that began like this.
    pub fn new(id: &RunId, plan: &PipelineStarted) -> Self {
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

    /// The whole fold; none if there is no beginning, or it is no pipeline.
    pub fn from_events<'a>(events: impl IntoIterator<Item = &'a EventRecord>) -> Option<Self> {
        let mut events = events.into_iter();
        let mut pipeline = Self::from_first_event(events.next()?)?;
        events.for_each(|recorded| pipeline.apply(recorded));
        Some(pipeline)
    }

    /// Takes in what happened.
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
                // A person who stops it is no failure.
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
            Event::EscalationResolved(resolved) if resolved.is_by_person() => {
                self.on_escalation_resolved(resolved)
            }
            Event::RunFinished(end) => self.finished = Some(end.clone()),
            _ => {}
        }
    }

    /// A person has answered: what waited for it goes on, is left out, or everything ends.
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
                .filter_map(ConcreteChange::user_message);
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

    /// A loop that did not get on may try as often again.
    fn extend_iterations(&mut self) {
        if self.is_iteration_limit_reached() {
            self.extensions += 1;
        }
        if let Some(judged) = &mut self.last_iteration {
            judged.unchanged = 0;
        }
    }

    /// A person has taken it up again: what had stopped goes on, and what is to be run again is forgotten. What waits for
    /// money stays as it is until a person has answered.
    fn on_resumed(&mut self, restarted: &[String]) {
        self.extend_iterations();
        // Whoever has ended it and takes it up again has changed their mind.
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

    /// What is to be done, while these parts run.
    pub fn next(&self, running: &BTreeSet<RoleInstance>) -> PipelineStep {
        if self.finished.is_some() {
            return PipelineStep::Finished;
        }
        if self.iteration == 0 {
            return PipelineStep::BeginIteration(1);
        }
        if self.abort_reason.is_some() {
            return if running.is_empty() {
                PipelineStep::Finish(RunOutcome::Failed)
            } else {
                PipelineStep::Wait
            };
        }
        if let Some(judged) = &self.last_iteration {
            return self.step_after_iteration(judged);
        }
        let ready = self.ready_instances(running);
        if !ready.is_empty() {
            return PipelineStep::Run(ready);
        }
        if !running.is_empty() {
            return PipelineStep::Wait;
        }
        self.step_when_settled()
    }

    /// What follows when nothing of an iteration can be run any more.
    fn step_when_settled(&self) -> PipelineStep {
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
            PipelineStep::Finish(RunOutcome::AwaitingHuman)
        } else if stopped(RunOutcome::Interrupted) {
            PipelineStep::Finish(RunOutcome::Interrupted)
        } else if self.plan.loop_settings.is_some() {
            PipelineStep::EvaluateIteration
        } else if stopped(RunOutcome::Failed) {
            PipelineStep::Finish(RunOutcome::Failed)
        } else {
            self.finish_step()
        }
    }

    fn step_after_iteration(&self, judged: &IterationFinished) -> PipelineStep {
        let Some(looping) = &self.plan.loop_settings else {
            return self.finish_step();
        };
        if judged.done {
            return self.finish_step();
        }
        if self.has_open_escalation {
            return PipelineStep::Finish(RunOutcome::AwaitingHuman);
        }
        let stuck = judged.unchanged >= looping.stuck_after && looping.stuck_after > 0;
        match looping.on_stuck {
            OnStuck::Stop if stuck => return PipelineStep::Finish(RunOutcome::Failed),
            OnStuck::Escalate if stuck => {
                return PipelineStep::EscalateLoop(LoopProblem::Stuck {
                    iterations: judged.unchanged,
                });
            }
            _ => {}
        }
        if self.iteration < self.max_iterations() {
            return PipelineStep::BeginIteration(self.iteration + 1);
        }
        PipelineStep::EscalateLoop(LoopProblem::IterationLimit {
            iterations: self.iteration,
        })
    }

    fn finish_step(&self) -> PipelineStep {
        PipelineStep::Finish(if self.has_recovered {
            RunOutcome::Recovered
        } else {
            RunOutcome::Succeeded
        })
    }

    /// The most iterations, with those that a person has allowed since.
    pub fn max_iterations(&self) -> u32 {
        let looping = self.plan.loop_settings.as_ref();
        let most = looping.map_or(1, |looping| looping.max_iterations);
        most.saturating_mul(self.extensions + 1)
    }

    fn is_iteration_limit_reached(&self) -> bool {
        let judged = self.last_iteration.as_ref();
        judged.is_some_and(|judged| !judged.done) && self.iteration >= self.max_iterations()
    }

    /// The parts that can be run now: not begun, or begun and not at their end.
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

    fn instances_of(&self, role: &RoleStarted) -> impl Iterator<Item = RoleInstance> {
        let (id, iteration) = (role.id.clone(), self.iteration);
        (1..=role.instances.max(1)).map(move |instance| RoleInstance {
            role: id.clone(),
            iteration,
            instance,
        })
    }

    /// Whether those that need a role can go on.
    fn is_settled(&self, role: &str) -> bool {
        let Some(role) = self.role(role) else {
            // A role that was left out of this run.
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

    /// Whether a person wants a session to be left out.
    pub fn is_skipped(&self, session: &SessionId) -> bool {
        self.skipped.contains(session)
    }

    /// The hash of the project's settings that a person has approved since the configuration was last taken over.
    pub fn approved_settings(&self) -> Option<&str> {
        self.approved_settings.as_deref()
    }

    /// What a person said to the loop, for the next iteration.
    pub fn user_messages(&self) -> &[String] {
        &self.user_messages
    }

    /// Why a person wants it to end as it is, if they do.
    pub fn abort_reason(&self) -> Option<&str> {
        self.abort_reason.as_deref()
    }

    fn is_optional(&self, role: &str) -> bool {
        self.role(role).is_some_and(|role| role.optional)
    }

    /// The role of that id.
    pub fn role(&self, id: &str) -> Option<&RoleStarted> {
        self.plan.roles.iter().find(|role| role.id == id)
    }

    /// The outputs of this iteration, by role, as hashes.
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

    /// The outputs that can be built on, by role, as hashes: those of this iteration, else of the one before.
    pub fn available_outputs(&self) -> BTreeMap<String, Vec<String>> {
        let mut outputs = self.previous_outputs.clone();
        outputs.extend(self.current_outputs());
        outputs
    }

    /// How many iterations, one more included, left the same undone and changed nothing.
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

    /// The id of the run.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// What it is.
    pub fn plan(&self) -> &PipelineStarted {
        &self.plan
    }

    /// The iteration under way; 0 before the first.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// What the iteration before left undone.
    pub fn feedback(&self) -> &str {
        &self.feedback
    }

    /// How the newest iteration was judged, if it was.
    pub fn last_iteration(&self) -> Option<&IterationFinished> {
        self.last_iteration.as_ref()
    }

    /// The session of a part that has begun and is not done.
    pub fn session_of(&self, part: &RoleInstance) -> Option<&SessionId> {
        match self.parts.get(part)? {
            RoleInstanceState::Open(session) | RoleInstanceState::Stopped(session, _) => {
                Some(session)
            }
            RoleInstanceState::Done(_) => None,
        }
    }

    /// Whether a part has begun and is not at its end.
    pub fn is_open(&self, part: &RoleInstance) -> bool {
        matches!(self.parts.get(part), Some(RoleInstanceState::Open(_)))
    }

    /// What people have allowed beyond the budgets.
    pub fn budget_raises(&self) -> &BudgetRaises {
        &self.budget_raises
    }

    /// The question about a budget without whose answer nothing of it can go on, and why it is asked.
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
            again.next(&BTreeSet::new()) == PipelineStep::Finish(RunOutcome::AwaitingHuman);
        (is_restarted || is_held).then_some(question)
    }

    /// How many sessions there were.
    pub fn session_count(&self) -> u32 {
        self.sessions
    }

    /// The roles of which every part of this iteration is done.
    pub fn completed_roles(&self) -> Vec<&str> {
        let done = |role: &&RoleStarted| {
            self.instances_of(role)
                .all(|part| matches!(self.parts.get(&part), Some(RoleInstanceState::Done(_))))
        };
        let roles = self.plan.roles.iter().filter(done);
        roles.map(|role| role.id.as_str()).collect()
    }

    /// The parts that stopped without having done what they should, and how.
    pub fn stopped_instances(&self) -> impl Iterator<Item = (&RoleInstance, RunOutcome)> {
        self.parts.iter().filter_map(|(part, state)| match state {
            RoleInstanceState::Stopped(_, outcome) => Some((part, *outcome)),
            _ => None,
        })
    }

    /// The roles of this iteration that are not done, in the order in which they are run.
    pub fn remaining_roles(&self) -> Vec<&str> {
        let done = self.completed_roles();
        let roles = self.plan.roles.iter().map(|role| role.id.as_str());
        roles.filter(|id| !done.contains(id)).collect()
    }

    /// How the run came to its end, if it did.
    pub fn run_finished(&self) -> Option<&RunFinished> {
        self.finished.as_ref()
    }

    /// These roles and all that depend on them, directly or not.
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

/// The number in a session's id.
fn session_number(session: &SessionId) -> u32 {
    let number = session.as_str().rsplit_once('-').map(|(_, number)| number);
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
