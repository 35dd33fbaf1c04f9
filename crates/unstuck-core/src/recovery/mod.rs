//! The way from a failure to its outcome, as a fold over the events of one session.
//!
//! Whoever drives a run asks [`Recovery::next`] what is to be done, does it, and records what happened. After a crash
//! the stored events are recorded again, and the drive goes on from there: there is no second way.

mod plan;
mod repairs;
mod situation;
mod stated_reset;

pub use plan::AttemptPlan;
pub use repairs::{Repair, RepairState, Repairs};
pub use situation::Means;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::decision::{
    Catalog, Chosen, CostEstimate, Decision, History, RereadCost, Tokens, WaitFor,
};
use crate::diagnosis::WaitSource;
use crate::duration::in_millis;
use crate::event::{
    ApprovalSource, AttemptEnd, AttemptFailed, BudgetReached, BudgetScope, BudgetUnit, CallFailed,
    Event, InterruptedBy, Outcome, Recorded, RecoveryEscalated, RecoveryExecuted, RecoveryFailed,
    RecoveryResolved, RunFinished, RunId, RunResumed, SessionSpec, Tried,
};
use crate::failure::Level;
use crate::moment::Timestamp;
use crate::money::{RaisedBudgets, known};

use plan::Course;
use stated_reset::Resets;

/// So much of what was tried is kept: the first, and the newest.
const MOST_TRIED: usize = 6;

/// For so long providers keep what was sent to them.
const CACHED_FOR: Duration = Duration::from_secs(300);

/// What the one who drives a run has to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Make the attempt that [`Recovery::plan`] describes.
    Attempt,
    /// Run the check again that failed after the newest attempt: a repair was run since, and the work itself is done.
    Check,
    /// Note that the attempt under way was cut off; only ever after a crash.
    NoteInterruption,
    /// Decide what to do about the failure.
    Decide,
    /// Run the repair that [`Recovery::repair`] names.
    Repair,
    /// Note that the repair under way was cut off; only ever after a crash.
    NoteCutRepair,
    /// Wait until the moment.
    Wait(Timestamp),
    /// Bring the run to this end.
    Finish(Outcome),
    /// Nothing: the run has come to its end.
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Ready,
    Running,
    Failed,
    Waiting(Timestamp),
    Repairing,
    Asked,
    PassedOn,
    Done,
}

/// Where the recovery of a session stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Recovery {
    id: RunId,
    spec: SessionSpec,
    began: Timestamp,
    phase: Phase,
    attempts: u32,
    /// Whether the newest attempt was cut off, and is to be made again under its number.
    cut_off: bool,
    /// How often an attempt was cut off.
    cut_offs: u32,
    /// Whether only the check is to be run again.
    recheck: bool,
    /// The conversation that the agent was told to use in the newest attempt.
    given: Option<String>,
    /// The API calls of the newest attempt that wait for their next try, and until when.
    held: BTreeMap<String, Timestamp>,
    retries: u32,
    level: Option<Level>,
    history: Option<History>,
    course: Course,
    failed: Option<Box<AttemptFailed>>,
    /// When the newest failure happened.
    failed_at: Timestamp,
    /// When its conversation was last at work.
    idle_since: Timestamp,
    /// What failures have stated about the reset of a limit.
    resets: Resets,
    ended: Option<AttemptEnd>,
    used: Tokens,
    /// How long its conversation is, in tokens, as far as that was told last.
    context: Option<u64>,
    spent: f64,
    /// How many attempts used what has no known price.
    unpriced: u64,
    finished: Option<RunFinished>,
    /// What a person was asked last.
    asked: Option<Box<RecoveryEscalated>>,
    /// How many questions there were.
    questions: u32,
    /// Why a person does not want it to go on.
    given_up: Option<String>,
    /// What was tried since a person last saw to it, and why it did not help.
    tried: Vec<Tried>,
    /// What people have allowed beyond its budgets.
    budgets: RaisedBudgets,
    /// When something happened last.
    last_at: Timestamp,
    /// What the newest wait is for.
    wait_for: WaitFor,
    /// When it is given up if there is no progress until then, where time bounds the retries.
    give_up_at: Option<Timestamp>,
    /// Whether people were told that it is parked, and there was no progress since.
    is_parked: bool,
}

impl Recovery {
    /// Begins with the event that began the session; none if it is another event.
    pub fn begin(first: &Recorded) -> Option<Self> {
        let spec = match &first.event {
            Event::RunStarted(run) => run.sole_session()?,
            Event::SessionStarted(started) => &started.spec,
            _ => return None,
        };
        Some(Self::of(&first.run, spec, first.at))
    }

    /// Where a session stands that began like this.
    pub fn of(id: &RunId, spec: &SessionSpec, began: Timestamp) -> Self {
        Self {
            id: id.clone(),
            spec: spec.clone(),
            began,
            phase: Phase::Ready,
            attempts: 0,
            cut_off: false,
            cut_offs: 0,
            recheck: false,
            given: None,
            held: BTreeMap::new(),
            retries: 0,
            level: None,
            history: None,
            course: Course::of(spec),
            failed: None,
            failed_at: began,
            idle_since: began,
            resets: Resets::default(),
            ended: None,
            used: Tokens::default(),
            context: None,
            spent: 0.0,
            unpriced: 0,
            finished: None,
            asked: None,
            questions: 0,
            given_up: None,
            tried: Vec::new(),
            budgets: RaisedBudgets::default(),
            last_at: began,
            wait_for: WaitFor::Retry,
            give_up_at: None,
            is_parked: false,
        }
    }

    /// The whole fold; none if there is no beginning.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Recorded>) -> Option<Self> {
        let mut events = events.into_iter();
        let mut recovery = Self::begin(events.next()?)?;
        events.for_each(|recorded| recovery.record(recorded));
        Some(recovery)
    }

    /// Takes in what happened; what happened to other sessions is passed over.
    pub fn record(&mut self, recorded: &Recorded) {
        let about = recorded.event.session();
        if about.is_some_and(|session| *session != self.spec.session) {
            return;
        }
        self.budgets.record(recorded);
        let before = std::mem::replace(&mut self.last_at, recorded.at);
        match &recorded.event {
            Event::RunResumed(resumed) => self.resumed(before, recorded.at, resumed),
            Event::SessionStarted(started) => {
                self.spec = started.spec.clone();
                self.course.configured(&started.spec);
            }
            Event::AttemptStarted(attempt) => {
                self.attempts = attempt.number;
                self.given.clone_from(&attempt.agent_session);
                self.cut_off = false;
                self.held.clear();
                self.wait_over(recorded.at);
                self.phase = Phase::Running;
            }
            Event::AttemptInterrupted(attempt) => {
                self.cut_off = true;
                self.cut_offs += 1;
                self.course.cut_off(attempt.agent_session.as_deref());
                self.phase = self.held_phase(recorded.at);
            }
            Event::CallFailed(call) => self.call_failed(call, recorded.at),
            Event::CallResumed(call) => {
                self.held.remove(&call.call);
            }
            Event::CallFinished(call) => {
                self.held.remove(&call.call);
            }
            Event::AttemptFailed(attempt) => self.failed(recorded.at, attempt),
            Event::AttemptSucceeded(attempt) => {
                self.ended(&attempt.end, recorded.at);
                self.phase = Phase::Done;
            }
            Event::DecisionMade(made) => self.decided(&made.decision),
            Event::RecoveryApproved(repair) if repair.source == ApprovalSource::Human => {
                self.course.allowed(&repair.id, &repair.command);
            }
            Event::WaitEnded(_) if matches!(self.phase, Phase::Waiting(_)) => {
                self.wait_over(recorded.at);
                self.phase = Phase::Ready;
            }
            Event::SessionParked(_) => self.is_parked = true,
            Event::RecoveryStarted(_) => {
                self.wait_over(recorded.at);
                self.phase = Phase::Repairing;
            }
            Event::RecoveryExecuted(repair) => self.repaired(recorded.at, repair),
            Event::RecoveryFailed(repair) => self.not_repaired(recorded.at, repair),
            Event::RecoveryEscalated(asked) => {
                self.asked = Some(asked.clone());
                self.questions += 1;
                self.phase = Phase::Asked;
            }
            Event::RecoveryResolved(resolved) if resolved.is_by_person() => self.answered(resolved),
            Event::RunFinished(end) => self.finished = Some(end.clone()),
            Event::SessionFinished(end) => self.finished = Some(end.end()),
            _ => {}
        }
    }

    /// It is taken up again: what nobody did meanwhile is no time without progress.
    fn resumed(&mut self, before: Timestamp, at: Timestamp, resumed: &RunResumed) {
        self.finished = None;
        if let Some(time) = resumed.keep_trying_ms {
            self.spec.policy.keep_trying(Duration::from_millis(time));
        }
        if self.phase == Phase::Running {
            self.idle_since = before;
        }
        // A wait goes on by the clock on the wall.
        if !matches!(self.phase, Phase::Waiting(_))
            && let Some(history) = &mut self.history
        {
            history.paused(before, at.since(before));
        }
    }

    /// The wait that there was is over, at its time or not.
    fn wait_over(&mut self, at: Timestamp) {
        self.wait_for = WaitFor::Retry;
        self.give_up_at = None;
        if matches!(self.phase, Phase::Waiting(_))
            && let Some(history) = &mut self.history
        {
            history.resumed(at);
        }
    }

    /// A person has seen to it: what follows is a new beginning with all its retries, or the end.
    fn answered(&mut self, resolved: &RecoveryResolved) {
        self.history = None;
        self.resets = Resets::default();
        self.is_parked = false;
        self.tried.clear();
        match resolved.answer() {
            Some(answer) if !answer.goes_on() => {
                self.given_up = Some(resolved.said());
                self.phase = Phase::PassedOn;
            }
            _ => {
                let failed = self.failed.as_ref().map(|failed| failed.diagnosis.kind);
                self.course.wanted_again(failed);
                self.course.told(&resolved.changes);
                self.phase = Phase::Ready;
            }
        }
    }

    /// Whether it helped, the next attempt tells; one that costs money is not made where the repair itself says no.
    fn repaired(&mut self, at: Timestamp, repair: &RecoveryExecuted) {
        self.course.repaired();
        self.after_repair(at, repair.exit_code == 0 || self.spec.agent.is_none());
    }

    /// Either the attempt is made, or something else is decided about the failure that the repair was for.
    fn after_repair(&mut self, at: Timestamp, attempt: bool) {
        if attempt || self.failed.is_none() {
            let failed_check = self.failed.as_ref().map(|failed| failed.check.is_some());
            self.recheck = failed_check == Some(true);
            self.phase = Phase::Ready;
            return;
        }
        let spent = self.spent;
        self.history.get_or_insert_with(|| History {
            spent_before: spent,
            ..History::new(at)
        });
        self.phase = Phase::Failed;
    }

    fn not_repaired(&mut self, at: Timestamp, repair: &RecoveryFailed) {
        let was_due = self.course.repair() == Some(repair.id.as_str());
        if self.phase != Phase::Repairing && !was_due {
            return;
        }
        self.tried(format!("the repair `{}`", repair.command), &repair.error);
        self.course.repaired();
        // Nobody knows what it had done; the attempt tells.
        self.after_repair(at, repair.cut_off);
    }

    fn ended(&mut self, end: &AttemptEnd, at: Timestamp) {
        self.idle_since = at;
        let cost = end.used.cost_usd.unwrap_or(0.0);
        self.spent += cost;
        self.unpriced += u64::from(end.is_unpriced(self.spec.agent.as_deref()));
        if let Some(tokens) = end.used.tokens {
            self.used = tokens;
        }
        self.context = end.used.context().or(self.context);
        if let Some(newest) = self.history.as_mut().and_then(|h| h.attempts.last_mut()) {
            newest.cost += cost;
        }
        self.ended = Some(end.clone());
    }

    /// One of its API calls failed; it may wait for its next try.
    fn call_failed(&mut self, call: &CallFailed, at: Timestamp) {
        if self.given.is_none() {
            self.given.clone_from(&call.conversation);
        }
        let progress = self.history.as_ref().and_then(|one| one.last_progress);
        self.resets.failed(&call.diagnosis, at, progress);
        match call.decision.action {
            // The network may be back long before its wait would end; the next attempt finds out.
            Chosen::Retry { until, .. } | Chosen::Change { until, .. }
                if call.fallback.is_none() && call.decision.wait_for != WaitFor::Network =>
            {
                self.held.insert(call.call.clone(), until);
            }
            Chosen::Retry { .. }
            | Chosen::Change { .. }
            | Chosen::Ask { .. }
            | Chosen::Stop { .. } => {
                self.held.remove(&call.call);
            }
        }
    }

    /// What one of its API calls waited for when it was cut off is still waited for.
    fn held_phase(&self, at: Timestamp) -> Phase {
        match self.held.values().max() {
            Some(until) if *until > at => Phase::Waiting(*until),
            _ => Phase::Ready,
        }
    }

    fn failed(&mut self, at: Timestamp, attempt: &AttemptFailed) {
        self.ended(&attempt.end, at);
        self.recheck = false;
        if attempt.lost_conversation {
            self.course.lost_conversation();
            self.phase = Phase::Ready;
            return;
        }
        let spent = self.spent;
        let history = self.history.get_or_insert_with(|| History {
            spent_before: spent,
            // What the gateway tried in vain counts.
            ..History::new(attempt.end.failing_since.unwrap_or(at))
        });
        if let Some(progress) = attempt.end.last_progress {
            self.is_parked &= progress <= history.progress_or_start();
            history.progressed(progress);
        }
        let progress = history.last_progress;
        self.resets.failed(&attempt.diagnosis, at, progress);
        self.failed_at = at;
        self.tried(self.course.said(), &attempt.diagnosis.message);
        self.course.failed(attempt);
        self.failed = Some(Box::new(attempt.clone()));
        self.phase = Phase::Failed;
    }

    fn tried(&mut self, what: String, why: &str) {
        if self.tried.len() == MOST_TRIED {
            self.tried.remove(1);
        }
        let why = why.to_owned();
        self.tried.push(Tried { what, why });
    }

    fn decided(&mut self, decision: &Decision) {
        self.level = self.level.max(decision.level);
        if let (Some(attempt), Some(history)) = (decision.attempted(0.0), &mut self.history) {
            history.record(attempt);
            self.retries += 1;
        }
        self.course.decided(decision);
        self.wait_for = decision.wait_for;
        self.give_up_at = decision.give_up_at;
        self.phase = match decision.action {
            Chosen::Retry { until, .. } | Chosen::Change { until, .. } => Phase::Waiting(until),
            Chosen::Ask { .. } => Phase::Asked,
            Chosen::Stop { .. } => Phase::PassedOn,
        };
    }

    /// What is to be done at this moment.
    pub fn next(&self, now: Timestamp) -> Next {
        if self.finished.is_some() {
            return Next::Nothing;
        }
        match self.phase {
            Phase::Waiting(until) if now < until => Next::Wait(until),
            Phase::Ready | Phase::Waiting(_) if self.course.repair().is_some() => Next::Repair,
            Phase::Ready if self.recheck => Next::Check,
            Phase::Ready | Phase::Waiting(_) => Next::Attempt,
            Phase::Repairing => Next::NoteCutRepair,
            Phase::Running => Next::NoteInterruption,
            Phase::Failed => Next::Decide,
            Phase::Asked => Next::Finish(Outcome::AwaitingHuman),
            Phase::PassedOn => Next::Finish(Outcome::Failed),
            Phase::Done if self.failed.is_some() => Next::Finish(Outcome::Recovered),
            Phase::Done => Next::Finish(Outcome::Succeeded),
        }
    }

    /// What the wait that is under way is for.
    pub fn wait_for(&self) -> WaitFor {
        self.wait_for
    }

    /// When the wait that is under way began.
    pub fn waits_since(&self) -> Option<Timestamp> {
        let newest = self.history.as_ref()?.attempts.last()?;
        matches!(self.phase, Phase::Waiting(_)).then_some(newest.at)
    }

    /// When its conversation was last at work.
    pub fn idle_since(&self) -> Timestamp {
        self.idle_since
    }

    /// Where the reset is stated that the newest failure is to be waited out until.
    pub fn reset_source(&self) -> Option<WaitSource> {
        self.resets.current().map(|reset| reset.source)
    }

    /// What it costs to wake its conversation at a moment: all of it is read again, and nothing is cached any more. None where
    /// no conversation continues, it was at work a moment ago, or nobody told how long it is.
    pub fn reread(&self, catalog: &Catalog, at: Timestamp) -> Option<RereadCost> {
        let wakes = self.course.wakes_conversation();
        let is_cached = at.since(self.idle_since) < CACHED_FOR;
        self.reread_of(catalog, wakes && !is_cached)
    }

    /// What it costs to wake its conversation if a person wants it to continue.
    pub fn reread_when_answered(&self, catalog: &Catalog) -> Option<RereadCost> {
        let failed = self.failed.as_ref().map(|failed| failed.diagnosis.kind);
        let mut course = self.course.clone();
        course.wanted_again(failed);
        self.reread_of(catalog, course.wakes_conversation())
    }

    fn reread_of(&self, catalog: &Catalog, wakes: bool) -> Option<RereadCost> {
        let tokens = self.context.filter(|_| wakes)?;
        let told = self.ended.as_ref().and_then(|end| end.model.as_deref());
        let model = self.course.model().or(told).or(self.spec.model.as_deref());
        Some(catalog.reread(model, tokens))
    }

    /// When it is given up if there is no progress until then, where time bounds the retries.
    pub fn give_up_at(&self) -> Option<Timestamp> {
        self.give_up_at
    }

    /// Whether people were told that it is parked, and there was no progress since.
    pub fn is_parked(&self) -> bool {
        self.is_parked
    }

    /// How the next attempt is to be made.
    pub fn plan(&self) -> AttemptPlan {
        let number = self.attempts + u32::from(!self.cut_off);
        self.course.plan(number)
    }

    /// The repair that is to be run before the next attempt.
    pub fn repair(&self) -> Option<&str> {
        self.course.repair()
    }

    /// The repair that a person is asked about, if that is what they are asked.
    pub fn asked_repair(&self) -> Option<&str> {
        self.question()?.repair.as_deref()
    }

    /// What a person is asked and has not answered.
    pub fn question(&self) -> Option<&RecoveryEscalated> {
        self.asked.as_deref().filter(|_| self.is_asked())
    }

    /// The id of the run.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// What the session runs.
    pub fn spec(&self) -> &SessionSpec {
        &self.spec
    }

    /// The newest failure.
    pub fn failure(&self) -> Option<&AttemptFailed> {
        self.failed.as_deref()
    }

    /// How the newest attempt ended.
    pub fn end(&self) -> Option<&AttemptEnd> {
        self.ended.as_ref()
    }

    /// The conversation that the agent was told to use in the newest attempt.
    pub fn given_conversation(&self) -> Option<&str> {
        self.given.as_deref()
    }

    /// How many attempts have begun.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// How often an attempt was cut off from outside.
    pub fn cut_offs(&self) -> u32 {
        self.cut_offs
    }

    /// Whether an API call of the newest attempt waits for its next try.
    pub fn is_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether the newest attempt was cut off, so that nobody knows what it did.
    pub fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    /// How many attempts have failed since a person last saw to it, the first included.
    pub fn history(&self) -> Option<&History> {
        self.history.as_ref()
    }

    /// What it has cost so far, in USD, as far as is known.
    pub fn spent(&self) -> f64 {
        self.spent
    }

    /// The question about a budget that it waits for, and why it is asked.
    pub fn waits_for_money(&self) -> Option<(&str, &str)> {
        self.budgets.question_of(&self.spec.session)
    }

    /// What it may cost in all, in USD: by its policy, and by what people have allowed since.
    pub fn max_cost(&self, now: Timestamp) -> Option<f64> {
        let configured = self.spec.policy.max_cost?;
        let (scope, unit) = (BudgetScope::Policy, BudgetUnit::Usd);
        let session = &self.spec.session;
        Some(self.budgets.limit(scope, unit, session, configured, now))
    }

    /// The limit of its policy that is used up, if it is.
    pub fn cost_reached(&self, now: Timestamp) -> Option<BudgetReached> {
        let (configured, limit) = (self.spec.policy.max_cost?, self.max_cost(now)?);
        let (scope, unit) = (BudgetScope::Policy, BudgetUnit::Usd);
        let reached = BudgetReached::new(scope, unit, self.spent, limit, configured);
        (self.spent >= limit).then_some(reached)
    }

    /// How the session came to its end, if it did.
    pub fn finished(&self) -> Option<&RunFinished> {
        self.finished.as_ref()
    }

    /// Whether it goes on only if a person wants it: they were asked, or the failure was passed on.
    pub fn is_given_up(&self) -> bool {
        matches!(self.phase, Phase::Asked | Phase::PassedOn)
    }

    /// Whether a person wants it to be tried again, though it had come to its end.
    pub fn is_wanted_again(&self) -> bool {
        self.finished.is_some() && self.phase == Phase::Ready
    }

    /// Whether a person has been asked and has not seen to it.
    pub fn is_asked(&self) -> bool {
        self.phase == Phase::Asked
    }

    /// The model in use, as far as is known.
    pub fn model(&self) -> Option<&str> {
        self.course.model().or(self.spec.model.as_deref())
    }

    /// What one model is expected to cost more than another.
    pub fn dearer(&self, catalog: &Catalog, from: &str, to: &str) -> CostEstimate {
        catalog.difference(from, to, self.expected())
    }

    /// What was tried since a person last saw to it, and why it did not help.
    pub fn tries(&self) -> &[Tried] {
        &self.tried
    }

    /// How many questions there were.
    pub fn questions(&self) -> u32 {
        self.questions
    }

    /// Why a person does not want it to go on, if they do not.
    pub fn given_up(&self) -> Option<&str> {
        self.given_up.as_deref()
    }

    /// The end of the session, and of the run if it is its only one.
    pub fn finish(
        &self,
        outcome: Outcome,
        exit_code: i32,
        reason: String,
        at: Timestamp,
    ) -> RunFinished {
        RunFinished {
            outcome,
            exit_code,
            reason,
            attempts: self.attempts,
            retry_count: self.retries,
            recovery_level: self.level,
            cost_usd: known(self.spent, self.unpriced),
            duration_ms: in_millis(at.since(self.began)),
        }
    }
}

/// How often a run was cut off in a row by the end of its supervisor without any sign of health in between: an attempt that
/// ended by itself after some progress or did its work, or one that had written something before it was cut off.
pub fn crashes_in_a_row(events: &[Recorded]) -> u32 {
    let mut crashes = 0;
    let mut is_running = false;
    for recorded in events {
        match &recorded.event {
            Event::AttemptStarted(_) => is_running = true,
            Event::AttemptInterrupted(attempt) => {
                is_running = false;
                crashes = match attempt.by {
                    InterruptedBy::Crash if attempt.progressed => 0,
                    InterruptedBy::Crash => crashes + 1,
                    InterruptedBy::Person
                    | InterruptedBy::Sigterm
                    | InterruptedBy::Sighup
                    | InterruptedBy::Output => crashes,
                };
            }
            Event::AttemptFailed(attempt) => {
                is_running = false;
                if attempt.end.last_progress.is_some() {
                    crashes = 0;
                }
            }
            Event::AttemptSucceeded(_) => {
                is_running = false;
                crashes = 0;
            }
            Event::RecoveryResolved(resolved) if resolved.is_by_person() => crashes = 0,
            _ => {}
        }
    }
    // One whose end nobody has noted yet was cut off, too.
    crashes + u32::from(is_running)
}

#[cfg(test)]
mod tests;
