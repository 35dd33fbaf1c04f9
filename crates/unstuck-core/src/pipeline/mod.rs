//! Where a pipeline stands: which roles are done, which are to run, and when it is over, as a fold over its events.
//!
//! Whoever drives a pipeline asks [`Pipeline::next`] what is to be done, does it, and records what happened. After a
//! crash the stored events are recorded again, and the drive goes on from there: what succeeded is not run again.

mod changes;

pub use changes::{GONE, RoleChange, changes};

use std::collections::{BTreeMap, BTreeSet};

use crate::decision::Changed;
use crate::event::{
    Answer, Event, IterationFinished, OnStuck, Outcome, Part, PipelineStarted, Recorded,
    RecoveryResolved, RoleStarted, RunFinished, RunId, SessionId,
};
use crate::money::RaisedBudgets;

/// What the one who drives a pipeline has to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Begin the iteration of this number.
    Iterate(u32),
    /// Begin these parts, or go on with them; they do not depend on each other.
    Run(Vec<Part>),
    /// Wait until a part that runs is at its end.
    Wait,
    /// Judge the iteration: all that could be run has run.
    Judge,
    /// Ask a person: the loop does not get on.
    AskAboutLoop(LoopTrouble),
    /// Bring the run to this end.
    Finish(Outcome),
    /// Nothing: the run has come to its end.
    Nothing,
}

/// Why a loop does not get on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopTrouble {
    /// Iteration after iteration leaves the same undone and changes nothing.
    Stuck {
        /// How many iterations.
        iterations: u32,
    },
    /// The allowed number of iterations is reached.
    UsedUp {
        /// How many.
        iterations: u32,
    },
}

/// Where a part stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// It began, and is not at its end.
    Open(SessionId),
    /// It did what it should, and this is its output.
    Done(Option<String>),
    /// It stopped without having done what it should.
    Stopped(SessionId, Outcome),
}

/// Where a pipeline stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    id: RunId,
    plan: PipelineStarted,
    iteration: u32,
    feedback: String,
    parts: BTreeMap<Part, State>,
    /// The outputs of the iteration before, by role.
    previous: BTreeMap<String, Vec<String>>,
    judged: Option<IterationFinished>,
    /// How often a person has allowed as many iterations again.
    extensions: u32,
    sessions: u32,
    /// What people have allowed beyond the budgets.
    budgets: RaisedBudgets,
    /// Whether a person was asked about the run as a whole, and has not seen to it.
    asked: bool,
    /// Questions beside which the run goes on, and the project's settings that count once one of them is approved.
    beside: BTreeMap<String, Option<String>>,
    /// The hash of the project's settings that a person has approved, and that are to be taken over.
    approved_settings: Option<String>,
    /// The sessions that a person wants to be left out.
    skipped: BTreeSet<SessionId>,
    /// What a person said to the loop, for the next iteration.
    words: Vec<String>,
    /// Why a person wants it to end as it is.
    given_up: Option<String>,
    recovered: bool,
    finished: Option<RunFinished>,
}

impl Pipeline {
    /// Begins with the event that began the run; none if it is no pipeline.
    pub fn begin(first: &Recorded) -> Option<Self> {
        match &first.event {
            Event::RunStarted(run) => Some(Self::of(&first.run, run.pipeline()?)),
            _ => None,
        }
    }

    /// Where a pipeline stands that began like this.
    pub fn of(id: &RunId, plan: &PipelineStarted) -> Self {
        Self {
            id: id.clone(),
            plan: plan.clone(),
            iteration: 0,
            feedback: String::new(),
            parts: BTreeMap::new(),
            previous: BTreeMap::new(),
            judged: None,
            extensions: 0,
            sessions: 0,
            budgets: RaisedBudgets::default(),
            asked: false,
            beside: BTreeMap::new(),
            approved_settings: None,
            skipped: BTreeSet::new(),
            words: Vec::new(),
            given_up: None,
            recovered: false,
            finished: None,
        }
    }

    /// The whole fold; none if there is no beginning, or it is no pipeline.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Recorded>) -> Option<Self> {
        let mut events = events.into_iter();
        let mut pipeline = Self::begin(events.next()?)?;
        events.for_each(|recorded| pipeline.record(recorded));
        Some(pipeline)
    }

    /// Takes in what happened.
    pub fn record(&mut self, recorded: &Recorded) {
        self.budgets.record(recorded);
        match &recorded.event {
            Event::RunResumed(resumed) => {
                if let Some(plan) = &resumed.pipeline {
                    self.plan = (**plan).clone();
                }
                self.approved_settings = None;
                self.resumed(&resumed.restarted);
            }
            Event::ConfigReloaded(reloaded) => {
                if let Some(plan) = &reloaded.pipeline {
                    self.plan = (**plan).clone();
                    self.approved_settings = None;
                }
            }
            Event::IterationStarted(started) => {
                self.previous = self.outputs();
                self.iteration = started.iteration;
                self.feedback.clone_from(&started.feedback);
                self.words.clear();
                self.parts.clear();
                self.judged = None;
            }
            Event::IterationFinished(finished) => self.judged = Some(finished.clone()),
            Event::OutputReused(reused) => {
                let done = State::Done(Some(reused.output.clone()));
                self.parts.insert(reused.part.clone(), done);
            }
            Event::SessionStarted(started) => {
                let session = started.spec.session.clone();
                self.sessions = self.sessions.max(number_of(&session));
                self.parts
                    .insert(started.part.clone(), State::Open(session));
            }
            Event::SessionFinished(end) => {
                // A person who stops it is no failure.
                let fine = [Outcome::Succeeded, Outcome::Interrupted];
                self.recovered |= !fine.contains(&end.outcome);
                let state = match end.outcome.is_success() {
                    true => State::Done(end.output.clone()),
                    false => State::Stopped(end.session.clone(), end.outcome),
                };
                if end.part.iteration == self.iteration {
                    self.parts.insert(end.part.clone(), state);
                }
            }
            Event::RecoveryEscalated(asked) if asked.lets_it_go_on() => {
                let accepts = asked.shown.accepts.clone();
                self.beside.insert(asked.id.clone(), accepts);
            }
            Event::RecoveryEscalated(asked) if asked.session.is_none() => self.asked = true,
            Event::RecoveryResolved(resolved) if resolved.is_by_person() => self.answered(resolved),
            Event::RunFinished(end) => self.finished = Some(end.clone()),
            _ => {}
        }
    }

    /// A person has answered: what waited for it goes on, is left out, or everything ends.
    fn answered(&mut self, resolved: &RecoveryResolved) {
        let answer = resolved.answer().unwrap_or(Answer::Resolve);
        let beside = resolved.id.as_ref().and_then(|id| self.beside.get(id));
        if let Some(accepts) = beside {
            if answer == Answer::Approve {
                self.approved_settings.clone_from(accepts);
            }
            return;
        }
        if answer == Answer::Abort || (answer == Answer::Skip && resolved.session.is_none()) {
            self.given_up = Some(resolved.said());
        }
        let Some(session) = &resolved.session else {
            if std::mem::take(&mut self.asked) && answer.goes_on() {
                self.loosened();
            }
            let said = resolved.changes.iter().filter_map(Changed::words);
            self.words.extend(said.map(str::to_owned));
            return;
        };
        if answer == Answer::Skip {
            self.skipped.insert(session.clone());
        }
        for state in self.parts.values_mut() {
            if let State::Stopped(one, Outcome::AwaitingHuman) = state
                && one == session
            {
                *state = State::Open(session.clone());
            }
        }
    }

    /// A loop that did not get on may try as often again.
    fn loosened(&mut self) {
        if self.is_used_up() {
            self.extensions += 1;
        }
        if let Some(judged) = &mut self.judged {
            judged.unchanged = 0;
        }
    }

    /// A person has taken it up again: what had stopped goes on, and what is to be run again is forgotten. What waits for
    /// money stays as it is until a person has answered.
    fn resumed(&mut self, restarted: &[String]) {
        self.loosened();
        // Whoever has ended it and takes it up again has changed their mind.
        if self.is_failed() {
            self.given_up = None;
        }
        self.finished = None;
        self.asked = false;
        self.parts.retain(|part, _| !restarted.contains(&part.role));
        if !restarted.is_empty() {
            self.judged = None;
        }
        for state in self.parts.values_mut() {
            if let State::Stopped(session, _) = state
                && self.budgets.question_of(session).is_none()
            {
                *state = State::Open(session.clone());
            }
        }
    }

    fn is_failed(&self) -> bool {
        let end = self.finished.as_ref();
        end.is_some_and(|end| end.outcome == Outcome::Failed)
    }

    /// What is to be done, while these parts run.
    pub fn next(&self, running: &BTreeSet<Part>) -> Step {
        if self.finished.is_some() {
            return Step::Nothing;
        }
        if self.iteration == 0 {
            return Step::Iterate(1);
        }
        if self.given_up.is_some() {
            return match running.is_empty() {
                true => Step::Finish(Outcome::Failed),
                false => Step::Wait,
            };
        }
        if let Some(judged) = &self.judged {
            return self.after(judged);
        }
        let ready = self.ready(running);
        if !ready.is_empty() {
            return Step::Run(ready);
        }
        if !running.is_empty() {
            return Step::Wait;
        }
        self.settled()
    }

    /// What follows when nothing of an iteration can be run any more.
    fn settled(&self) -> Step {
        let stopped = |wanted: Outcome| {
            let mut parts = self.parts.iter();
            parts.any(|(part, state)| match state {
                State::Stopped(session, outcome) => {
                    let is_needed = !self.is_optional(&part.role) && !self.is_skipped(session);
                    *outcome == wanted && is_needed
                }
                _ => false,
            })
        };
        if self.asked || stopped(Outcome::AwaitingHuman) {
            Step::Finish(Outcome::AwaitingHuman)
        } else if stopped(Outcome::Interrupted) {
            Step::Finish(Outcome::Interrupted)
        } else if self.plan.looping.is_some() {
            Step::Judge
        } else if stopped(Outcome::Failed) {
            Step::Finish(Outcome::Failed)
        } else {
            self.done()
        }
    }

    fn after(&self, judged: &IterationFinished) -> Step {
        let Some(looping) = &self.plan.looping else {
            return self.done();
        };
        if judged.done {
            return self.done();
        }
        if self.asked {
            return Step::Finish(Outcome::AwaitingHuman);
        }
        let stuck = judged.unchanged >= looping.stuck_after && looping.stuck_after > 0;
        match looping.on_stuck {
            OnStuck::Stop if stuck => return Step::Finish(Outcome::Failed),
            OnStuck::Escalate if stuck => {
                return Step::AskAboutLoop(LoopTrouble::Stuck {
                    iterations: judged.unchanged,
                });
            }
            _ => {}
        }
        if self.iteration < self.most_iterations() {
            return Step::Iterate(self.iteration + 1);
        }
        Step::AskAboutLoop(LoopTrouble::UsedUp {
            iterations: self.iteration,
        })
    }

    fn done(&self) -> Step {
        Step::Finish(match self.recovered {
            true => Outcome::Recovered,
            false => Outcome::Succeeded,
        })
    }

    /// The most iterations, with those that a person has allowed since.
    pub fn most_iterations(&self) -> u32 {
        let looping = self.plan.looping.as_ref();
        let most = looping.map_or(1, |looping| looping.max_iterations);
        most.saturating_mul(self.extensions + 1)
    }

    fn is_used_up(&self) -> bool {
        let judged = self.judged.as_ref();
        judged.is_some_and(|judged| !judged.done) && self.iteration >= self.most_iterations()
    }

    /// The parts that can be run now: not begun, or begun and not at their end.
    fn ready(&self, running: &BTreeSet<Part>) -> Vec<Part> {
        let mut ready = Vec::new();
        for role in &self.plan.roles {
            if !role.needs.iter().all(|needed| self.is_settled(needed)) {
                continue;
            }
            for part in self.parts_of(role) {
                let open = matches!(self.parts.get(&part), None | Some(State::Open(_)));
                if open && !running.contains(&part) {
                    ready.push(part);
                }
            }
        }
        ready
    }

    fn parts_of(&self, role: &RoleStarted) -> impl Iterator<Item = Part> {
        let (id, iteration) = (role.id.clone(), self.iteration);
        (1..=role.instances.max(1)).map(move |instance| Part {
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
        self.parts_of(role).all(|part| match self.parts.get(&part) {
            Some(State::Done(_)) => true,
            Some(State::Stopped(session, outcome)) => {
                (optional || self.is_skipped(session)) && *outcome != Outcome::Interrupted
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
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Why a person wants it to end as it is, if they do.
    pub fn given_up(&self) -> Option<&str> {
        self.given_up.as_deref()
    }

    fn is_optional(&self, role: &str) -> bool {
        self.role(role).is_some_and(|role| role.optional)
    }

    /// The role of that id.
    pub fn role(&self, id: &str) -> Option<&RoleStarted> {
        self.plan.roles.iter().find(|role| role.id == id)
    }

    /// The outputs of this iteration, by role, as hashes.
    pub fn outputs_now(&self) -> BTreeMap<String, Vec<String>> {
        let mut outputs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (part, state) in &self.parts {
            if let State::Done(Some(output)) = state {
                let of_role = outputs.entry(part.role.clone()).or_default();
                of_role.push(output.clone());
            }
        }
        outputs
    }

    /// The outputs that can be built on, by role, as hashes: those of this iteration, else of the one before.
    pub fn outputs(&self) -> BTreeMap<String, Vec<String>> {
        let mut outputs = self.previous.clone();
        outputs.extend(self.outputs_now());
        outputs
    }

    /// How many iterations, one more included, left the same undone and changed nothing.
    pub fn unchanged_with(
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
    pub fn judged(&self) -> Option<&IterationFinished> {
        self.judged.as_ref()
    }

    /// The session of a part that has begun and is not done.
    pub fn session_of(&self, part: &Part) -> Option<&SessionId> {
        match self.parts.get(part)? {
            State::Open(session) | State::Stopped(session, _) => Some(session),
            State::Done(_) => None,
        }
    }

    /// Whether a part has begun and is not at its end.
    pub fn is_open(&self, part: &Part) -> bool {
        matches!(self.parts.get(part), Some(State::Open(_)))
    }

    /// What people have allowed beyond the budgets.
    pub fn budgets(&self) -> &RaisedBudgets {
        &self.budgets
    }

    /// The question about a budget without whose answer nothing of it can go on, and why it is asked.
    pub fn waits_for_money(&self, restarted: &[String]) -> Option<(&str, &str)> {
        let question = self.budgets.question()?;
        let is_restarted = self.parts.iter().any(|(part, state)| match state {
            State::Open(session) | State::Stopped(session, _) => {
                restarted.contains(&part.role) && self.budgets.question_of(session).is_some()
            }
            State::Done(_) => false,
        });
        let mut again = self.clone();
        again.resumed(restarted);
        let is_held = again.next(&BTreeSet::new()) == Step::Finish(Outcome::AwaitingHuman);
        (is_restarted || is_held).then_some(question)
    }

    /// How many sessions there were.
    pub fn sessions(&self) -> u32 {
        self.sessions
    }

    /// The roles of which every part of this iteration is done.
    pub fn completed(&self) -> Vec<&str> {
        let done = |role: &&RoleStarted| {
            self.parts_of(role)
                .all(|part| matches!(self.parts.get(&part), Some(State::Done(_))))
        };
        let roles = self.plan.roles.iter().filter(done);
        roles.map(|role| role.id.as_str()).collect()
    }

    /// The parts that stopped without having done what they should, and how.
    pub fn stopped(&self) -> impl Iterator<Item = (&Part, Outcome)> {
        self.parts.iter().filter_map(|(part, state)| match state {
            State::Stopped(_, outcome) => Some((part, *outcome)),
            _ => None,
        })
    }

    /// The roles of this iteration that are not done, in the order in which they are run.
    pub fn left(&self) -> Vec<&str> {
        let done = self.completed();
        let roles = self.plan.roles.iter().map(|role| role.id.as_str());
        roles.filter(|id| !done.contains(id)).collect()
    }

    /// How the run came to its end, if it did.
    pub fn finished(&self) -> Option<&RunFinished> {
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
fn number_of(session: &SessionId) -> u32 {
    let number = session.as_str().rsplit_once('-').map(|(_, number)| number);
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
