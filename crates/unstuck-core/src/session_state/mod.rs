//! The way from a failure to its outcome, as a fold over the events of one session.
//!
//! Whoever drives a run asks [`SessionState::next_step`] what is to be done, does it, and records what happened. After a crash
//! the stored events are recorded again, and the drive goes on from there: there is no second way.

mod decide;
mod next_attempt;
mod repair_states;
mod stated_reset;

pub use decide::DriverContext;
pub use next_attempt::NextAttempt;
pub use repair_states::{RepairRecord, RepairStates, RepairStatus};

use std::collections::BTreeMap;
use std::time::Duration;

use crate::decision::{
    Action, CostEstimate, Decision, ModelCatalog, RecoveryHistory, RereadCost, TokenUsage,
    WaitPurpose,
};
use crate::diagnosis::RetryAfterSource;
use crate::duration::to_millis;
use crate::event::{
    ApprovalSource, AttemptEnd, AttemptFailed, BudgetReached, BudgetScope, BudgetUnit, CallFailed,
    EscalationOpened, EscalationResolved, Event, EventRecord, InterruptionCause, PriorAttempt,
    RepairExecuted, RepairFailed, RunFinished, RunId, RunOutcome, RunResumed, SessionSpec,
};
use crate::failure::Level;
use crate::money::{BudgetRaises, known_cost};
use crate::time::Timestamp;

use next_attempt::AttemptOverrides;
use stated_reset::StatedResets;

/// So much of what was tried is kept: the first, and the newest.
const MAX_PRIOR_ATTEMPTS: usize = 6;

/// For so long providers keep what was sent to them.
const PROMPT_CACHE_LIFETIME: Duration = Duration::from_secs(300);

/// What the one who drives a run has to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStep {
    /// Make the attempt that [`SessionState::next_attempt`] describes.
    Attempt,
    /// Run the check again that failed after the newest attempt: a repair was run since, and the work itself is done.
    Check,
    /// Note that the attempt under way was cut off; only ever after a crash.
    RecordInterruption,
    /// Decide what to do about the failure.
    Decide,
    /// Run the repair that [`SessionState::pending_repair`] names.
    Repair,
    /// Note that the repair under way was cut off; only ever after a crash.
    RecordInterruptedRepair,
    /// Wait until the moment.
    Wait(Timestamp),
    /// Bring the run to this end.
    Finish(RunOutcome),
    /// Nothing: the run has come to its end.
    Finished,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionPhase {
    Ready,
    Running,
    Failed,
    Waiting(Timestamp),
    Repairing,
    AwaitingHuman,
    NotRetried,
    Done,
}

/// Where the recovery of a session stands.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionState {
    id: RunId,
    spec: SessionSpec,
    started: Timestamp,
    phase: SessionPhase,
    attempts: u32,
    /// Whether the newest attempt was cut off, and is to be made again under its number.
    was_interrupted: bool,
    /// How often an attempt was cut off.
    interruption_count: u32,
    /// Whether only the check is to be run again.
    recheck: bool,
    /// The conversation that the agent was told to use in the newest attempt.
    assigned_conversation: Option<String>,
    /// The API calls of the newest attempt that wait for their next try, and until when.
    held_calls: BTreeMap<String, Timestamp>,
    retries: u32,
    level: Option<Level>,
    history: Option<RecoveryHistory>,
    overrides: AttemptOverrides,
    last_failure: Option<Box<AttemptFailed>>,
    /// When the newest failure happened.
    failed_at: Timestamp,
    /// When its conversation was last at work.
    idle_since: Timestamp,
    /// What failures have stated about the reset of a limit.
    resets: StatedResets,
    last_end: Option<AttemptEnd>,
    usage: TokenUsage,
    /// How long its conversation is, in tokens, as far as that was told last.
    context: Option<u64>,
    spent: f64,
    /// How many attempts used what has no known price.
    unpriced_count: u64,
    finished: Option<RunFinished>,
    /// What a person was asked last.
    last_escalation: Option<Box<EscalationOpened>>,
    /// How many questions there were.
    escalation_count: u32,
    /// Why a person does not want it to go on.
    abort_reason: Option<String>,
    /// What was tried since a person last saw to it, and why it did not help.
    prior_attempts: Vec<PriorAttempt>,
    /// What people have allowed beyond its budgets.
    budget_raises: BudgetRaises,
    /// When something happened last.
    last_event_at: Timestamp,
    /// What the newest wait is for.
    wait_for: WaitPurpose,
    /// When it is given up if there is no progress until then, where time bounds the retries.
    give_up_at: Option<Timestamp>,
    /// Whether people were told that it is parked, and there was no progress since.
    is_parked: bool,
}

impl SessionState {
    /// Begins with the event that began the session; none if it is another event.
    pub fn from_first_event(first: &EventRecord) -> Option<Self> {
        let spec = match &first.event {
            Event::RunStarted(run) => run.sole_session()?,
            Event::SessionStarted(started) => &started.spec,
            _ => return None,
        };
        Some(Self::new(&first.run, spec, first.at))
    }

    /// Where a session stands that began like this.
    pub fn new(id: &RunId, spec: &SessionSpec, started: Timestamp) -> Self {
        Self {
            id: id.clone(),
            spec: spec.clone(),
            started,
            phase: SessionPhase::Ready,
            attempts: 0,
            was_interrupted: false,
            interruption_count: 0,
            recheck: false,
            assigned_conversation: None,
            held_calls: BTreeMap::new(),
            retries: 0,
            level: None,
            history: None,
            overrides: AttemptOverrides::new(spec),
            last_failure: None,
            failed_at: started,
            idle_since: started,
            resets: StatedResets::default(),
            last_end: None,
            usage: TokenUsage::default(),
            context: None,
            spent: 0.0,
            unpriced_count: 0,
            finished: None,
            last_escalation: None,
            escalation_count: 0,
            abort_reason: None,
            prior_attempts: Vec::new(),
            budget_raises: BudgetRaises::default(),
            last_event_at: started,
            wait_for: WaitPurpose::Retry,
            give_up_at: None,
            is_parked: false,
        }
    }

    /// The whole fold; none if there is no beginning.
    pub fn from_events<'a>(events: impl IntoIterator<Item = &'a EventRecord>) -> Option<Self> {
        let mut events = events.into_iter();
        let mut recovery = Self::from_first_event(events.next()?)?;
        events.for_each(|recorded| recovery.apply(recorded));
        Some(recovery)
    }

    /// Takes in what happened; what happened to other sessions is passed over.
    pub fn apply(&mut self, recorded: &EventRecord) {
        let about = recorded.event.session();
        if about.is_some_and(|session| *session != self.spec.session) {
            return;
        }
        self.budget_raises.apply(recorded);
        let before = std::mem::replace(&mut self.last_event_at, recorded.at);
        match &recorded.event {
            Event::RunResumed(resumed) => self.on_resumed(before, recorded.at, resumed),
            Event::SessionStarted(started) => {
                self.spec = started.spec.clone();
                self.overrides.apply_spec(&started.spec);
            }
            Event::AttemptStarted(attempt) => {
                self.attempts = attempt.number;
                self.assigned_conversation
                    .clone_from(&attempt.agent_session);
                self.was_interrupted = false;
                self.held_calls.clear();
                self.on_wait_ended(recorded.at);
                self.phase = SessionPhase::Running;
            }
            Event::AttemptInterrupted(attempt) => {
                self.was_interrupted = true;
                self.interruption_count += 1;
                self.overrides
                    .on_interrupted(attempt.agent_session.as_deref());
                self.phase = self.phase_while_held(recorded.at);
            }
            Event::CallFailed(call) => self.on_call_failed(call, recorded.at),
            Event::CallResumed(call) => {
                self.held_calls.remove(&call.call);
            }
            Event::CallFinished(call) => {
                self.held_calls.remove(&call.call);
            }
            Event::AttemptFailed(attempt) => self.on_attempt_failed(recorded.at, attempt),
            Event::AttemptSucceeded(attempt) => {
                self.on_attempt_ended(&attempt.end, recorded.at);
                self.phase = SessionPhase::Done;
            }
            Event::DecisionMade(made) => self.on_decision(&made.decision),
            Event::RepairApproved(repair) if repair.source == ApprovalSource::Human => {
                self.overrides
                    .on_repair_approved(&repair.id, &repair.command);
            }
            Event::WaitEnded(_) if matches!(self.phase, SessionPhase::Waiting(_)) => {
                self.on_wait_ended(recorded.at);
                self.phase = SessionPhase::Ready;
            }
            Event::SessionParked(_) => self.is_parked = true,
            Event::RepairStarted(_) => {
                self.on_wait_ended(recorded.at);
                self.phase = SessionPhase::Repairing;
            }
            Event::RepairExecuted(repair) => self.on_repair_executed(recorded.at, repair),
            Event::RepairFailed(repair) => self.on_repair_failed(recorded.at, repair),
            Event::EscalationOpened(asked) => {
                self.last_escalation = Some(asked.clone());
                self.escalation_count += 1;
                self.phase = SessionPhase::AwaitingHuman;
            }
            Event::EscalationResolved(resolved) if resolved.is_by_person() => {
                self.on_escalation_resolved(resolved)
            }
            Event::RunFinished(end) => self.finished = Some(end.clone()),
            Event::SessionFinished(end) => self.finished = Some(end.to_run_finished()),
            _ => {}
        }
    }

    /// It is taken up again: what nobody did meanwhile is no time without progress.
    fn on_resumed(&mut self, before: Timestamp, at: Timestamp, resumed: &RunResumed) {
        self.finished = None;
        if let Some(time) = resumed.keep_trying_ms {
            self.spec
                .policy
                .extend_give_up_after(Duration::from_millis(time));
        }
        if self.phase == SessionPhase::Running {
            self.idle_since = before;
        }
        // A wait goes on by the clock on the wall.
        if !matches!(self.phase, SessionPhase::Waiting(_))
            && let Some(history) = &mut self.history
        {
            history.record_idle(before, at.since(before));
        }
    }

    /// The wait that there was is over, at its time or not.
    fn on_wait_ended(&mut self, at: Timestamp) {
        self.wait_for = WaitPurpose::Retry;
        self.give_up_at = None;
        if matches!(self.phase, SessionPhase::Waiting(_))
            && let Some(history) = &mut self.history
        {
            history.record_actual_start(at);
        }
    }

    /// A person has seen to it: what follows is a new beginning with all its retries, or the end.
    fn on_escalation_resolved(&mut self, resolved: &EscalationResolved) {
        self.history = None;
        self.resets = StatedResets::default();
        self.is_parked = false;
        self.prior_attempts.clear();
        match resolved.answer() {
            Some(answer) if !answer.continues() => {
                self.abort_reason = Some(resolved.summary());
                self.phase = SessionPhase::NotRetried;
            }
            _ => {
                let failed = self
                    .last_failure
                    .as_ref()
                    .map(|failed| failed.diagnosis.kind);
                self.overrides.on_reopened(failed);
                self.overrides.apply_user_changes(&resolved.changes);
                self.phase = SessionPhase::Ready;
            }
        }
    }

    /// Whether it helped, the next attempt tells; one that costs money is not made where the repair itself says no.
    fn on_repair_executed(&mut self, at: Timestamp, repair: &RepairExecuted) {
        self.overrides.clear_repair();
        self.proceed_after_repair(at, repair.exit_code == 0 || self.spec.agent.is_none());
    }

    /// Either the attempt is made, or something else is decided about the failure that the repair was for.
    fn proceed_after_repair(&mut self, at: Timestamp, attempt: bool) {
        if attempt || self.last_failure.is_none() {
            let failed_check = self
                .last_failure
                .as_ref()
                .map(|failed| failed.check.is_some());
            self.recheck = failed_check == Some(true);
            self.phase = SessionPhase::Ready;
            return;
        }
        let spent = self.spent;
        self.history.get_or_insert_with(|| RecoveryHistory {
            spent_before: spent,
            ..RecoveryHistory::new(at)
        });
        self.phase = SessionPhase::Failed;
    }

    fn on_repair_failed(&mut self, at: Timestamp, repair: &RepairFailed) {
        let was_due = self.overrides.pending_repair() == Some(repair.id.as_str());
        if self.phase != SessionPhase::Repairing && !was_due {
            return;
        }
        self.record_prior_attempt(format!("the repair `{}`", repair.command), &repair.error);
        self.overrides.clear_repair();
        // Nobody knows what it had done; the attempt tells.
        self.proceed_after_repair(at, repair.was_interrupted);
    }

    fn on_attempt_ended(&mut self, end: &AttemptEnd, at: Timestamp) {
        self.idle_since = at;
        let cost = end.usage.cost_usd.unwrap_or(0.0);
        self.spent += cost;
        self.unpriced_count += u64::from(end.is_unpriced(self.spec.agent.as_deref()));
        if let Some(tokens) = end.usage.tokens {
            self.usage = tokens;
        }
        self.context = end.usage.context_len().or(self.context);
        if let Some(newest) = self.history.as_mut().and_then(|h| h.attempts.last_mut()) {
            newest.cost += cost;
        }
        self.last_end = Some(end.clone());
    }

    /// One of its API calls failed; it may wait for its next try.
    fn on_call_failed(&mut self, call: &CallFailed, at: Timestamp) {
        if self.assigned_conversation.is_none() {
            self.assigned_conversation.clone_from(&call.conversation);
        }
        let progress = self.history.as_ref().and_then(|one| one.last_progress);
        self.resets.on_failure(&call.diagnosis, at, progress);
        match call.decision.action {
            // The network may be back long before its wait would end; the next attempt finds out.
            Action::Retry { until, .. } | Action::Change { until, .. }
                if call.fallback.is_none()
                    && call.decision.wait_purpose != WaitPurpose::Network =>
            {
                self.held_calls.insert(call.call.clone(), until);
            }
            Action::Retry { .. }
            | Action::Change { .. }
            | Action::Escalate { .. }
            | Action::Stop { .. } => {
                self.held_calls.remove(&call.call);
            }
        }
    }

    /// What one of its API calls waited for when it was cut off is still waited for.
    fn phase_while_held(&self, at: Timestamp) -> SessionPhase {
        match self.held_calls.values().max() {
            Some(until) if *until > at => SessionPhase::Waiting(*until),
            _ => SessionPhase::Ready,
        }
    }

    fn on_attempt_failed(&mut self, at: Timestamp, attempt: &AttemptFailed) {
        self.on_attempt_ended(&attempt.end, at);
        self.recheck = false;
        if attempt.lost_conversation {
            self.overrides.on_conversation_lost();
            self.phase = SessionPhase::Ready;
            return;
        }
        let spent = self.spent;
        let history = self.history.get_or_insert_with(|| RecoveryHistory {
            spent_before: spent,
            // What the gateway tried in vain counts.
            ..RecoveryHistory::new(attempt.end.failing_since.unwrap_or(at))
        });
        if let Some(progress) = attempt.end.last_progress {
            self.is_parked &= progress <= history.progress_or_start();
            history.record_progress(progress);
        }
        let progress = history.last_progress;
        self.resets.on_failure(&attempt.diagnosis, at, progress);
        self.failed_at = at;
        self.record_prior_attempt(self.overrides.summary(), &attempt.diagnosis.message);
        self.overrides.on_attempt_failed(attempt);
        self.last_failure = Some(Box::new(attempt.clone()));
        self.phase = SessionPhase::Failed;
    }

    fn record_prior_attempt(&mut self, what: String, why: &str) {
        if self.prior_attempts.len() == MAX_PRIOR_ATTEMPTS {
            self.prior_attempts.remove(1);
        }
        let why = why.to_owned();
        self.prior_attempts.push(PriorAttempt {
            what,
            failure_reason: why,
        });
    }

    fn on_decision(&mut self, decision: &Decision) {
        self.level = self.level.max(decision.level);
        if let (Some(attempt), Some(history)) = (decision.to_retry_record(0.0), &mut self.history) {
            history.record(attempt);
            self.retries += 1;
        }
        self.overrides.on_decision(decision);
        self.wait_for = decision.wait_purpose;
        self.give_up_at = decision.give_up_at;
        self.phase = match decision.action {
            Action::Retry { until, .. } | Action::Change { until, .. } => {
                SessionPhase::Waiting(until)
            }
            Action::Escalate { .. } => SessionPhase::AwaitingHuman,
            Action::Stop { .. } => SessionPhase::NotRetried,
        };
    }

    /// What is to be done at this moment.
    pub fn next_step(&self, now: Timestamp) -> SessionStep {
        if self.finished.is_some() {
            return SessionStep::Finished;
        }
        match self.phase {
            SessionPhase::Waiting(until) if now < until => SessionStep::Wait(until),
            SessionPhase::Ready | SessionPhase::Waiting(_)
                if self.overrides.pending_repair().is_some() =>
            {
                SessionStep::Repair
            }
            SessionPhase::Ready if self.recheck => SessionStep::Check,
            SessionPhase::Ready | SessionPhase::Waiting(_) => SessionStep::Attempt,
            SessionPhase::Repairing => SessionStep::RecordInterruptedRepair,
            SessionPhase::Running => SessionStep::RecordInterruption,
            SessionPhase::Failed => SessionStep::Decide,
            SessionPhase::AwaitingHuman => SessionStep::Finish(RunOutcome::AwaitingHuman),
            SessionPhase::NotRetried => SessionStep::Finish(RunOutcome::Failed),
            SessionPhase::Done if self.last_failure.is_some() => {
                SessionStep::Finish(RunOutcome::Recovered)
            }
            SessionPhase::Done => SessionStep::Finish(RunOutcome::Succeeded),
        }
    }

    /// What the wait that is under way is for.
    pub fn wait_purpose(&self) -> WaitPurpose {
        self.wait_for
    }

    /// When the wait that is under way began.
    pub fn waiting_since(&self) -> Option<Timestamp> {
        let newest = self.history.as_ref()?.attempts.last()?;
        matches!(self.phase, SessionPhase::Waiting(_)).then_some(newest.at)
    }

    /// When its conversation was last at work.
    pub fn idle_since(&self) -> Timestamp {
        self.idle_since
    }

    /// Where the reset is stated that the newest failure is to be waited out until.
    pub fn reset_source(&self) -> Option<RetryAfterSource> {
        self.resets.current_reset().map(|reset| reset.source)
    }

    /// What it costs to wake its conversation at a moment: all of it is read again, and nothing is cached any more. None where
    /// no conversation continues, it was at work a moment ago, or nobody told how long it is.
    pub fn reread_cost(&self, catalog: &ModelCatalog, at: Timestamp) -> Option<RereadCost> {
        let wakes = self.overrides.wakes_conversation();
        let is_cached = at.since(self.idle_since) < PROMPT_CACHE_LIFETIME;
        self.reread_cost_if(catalog, wakes && !is_cached)
    }

    /// What it costs to wake its conversation if a person wants it to continue.
    pub fn reread_cost_when_answered(&self, catalog: &ModelCatalog) -> Option<RereadCost> {
        let failed = self
            .last_failure
            .as_ref()
            .map(|failed| failed.diagnosis.kind);
        let mut course = self.overrides.clone();
        course.on_reopened(failed);
        self.reread_cost_if(catalog, course.wakes_conversation())
    }

    fn reread_cost_if(&self, catalog: &ModelCatalog, wakes: bool) -> Option<RereadCost> {
        let tokens = self.context.filter(|_| wakes)?;
        let told = self.last_end.as_ref().and_then(|end| end.model.as_deref());
        let model = self
            .overrides
            .model()
            .or(told)
            .or(self.spec.model.as_deref());
        Some(catalog.reread_cost(model, tokens))
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
    pub fn next_attempt(&self) -> NextAttempt {
        let number = self.attempts + u32::from(!self.was_interrupted);
        self.overrides.next_attempt(number)
    }

    /// The repair that is to be run before the next attempt.
    pub fn pending_repair(&self) -> Option<&str> {
        self.overrides.pending_repair()
    }

    /// The repair that a person is asked about, if that is what they are asked.
    pub fn escalated_repair(&self) -> Option<&str> {
        self.open_escalation()?.repair.as_deref()
    }

    /// What a person is asked and has not answered.
    pub fn open_escalation(&self) -> Option<&EscalationOpened> {
        self.last_escalation
            .as_deref()
            .filter(|_| self.is_awaiting_human())
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
    pub fn last_failure(&self) -> Option<&AttemptFailed> {
        self.last_failure.as_deref()
    }

    /// How the newest attempt ended.
    pub fn last_attempt_end(&self) -> Option<&AttemptEnd> {
        self.last_end.as_ref()
    }

    /// The conversation that the agent was told to use in the newest attempt.
    pub fn assigned_conversation(&self) -> Option<&str> {
        self.assigned_conversation.as_deref()
    }

    /// How many attempts have begun.
    pub fn attempt_count(&self) -> u32 {
        self.attempts
    }

    /// How often an attempt was cut off from outside.
    pub fn interruption_count(&self) -> u32 {
        self.interruption_count
    }

    /// Whether an API call of the newest attempt waits for its next try.
    pub fn is_call_held(&self) -> bool {
        !self.held_calls.is_empty()
    }

    /// Whether the newest attempt was cut off, so that nobody knows what it did.
    pub fn was_interrupted(&self) -> bool {
        self.was_interrupted
    }

    /// How many attempts have failed since a person last saw to it, the first included.
    pub fn history(&self) -> Option<&RecoveryHistory> {
        self.history.as_ref()
    }

    /// What it has cost so far, in USD, as far as is known.
    pub fn spent(&self) -> f64 {
        self.spent
    }

    /// The question about a budget that it waits for, and why it is asked.
    pub fn open_budget_escalation(&self) -> Option<(&str, &str)> {
        self.budget_raises.open_escalation_of(&self.spec.session)
    }

    /// What it may cost in all, in USD: by its policy, and by what people have allowed since.
    pub fn max_cost(&self, now: Timestamp) -> Option<f64> {
        let configured = self.spec.policy.max_cost?;
        let (scope, unit) = (BudgetScope::Policy, BudgetUnit::Usd);
        let session = &self.spec.session;
        Some(
            self.budget_raises
                .effective_limit(scope, unit, session, configured, now),
        )
    }

    /// The limit of its policy that is used up, if it is.
    pub fn cost_reached(&self, now: Timestamp) -> Option<BudgetReached> {
        let (configured, limit) = (self.spec.policy.max_cost?, self.max_cost(now)?);
        let (scope, unit) = (BudgetScope::Policy, BudgetUnit::Usd);
        let reached = BudgetReached::new(scope, unit, self.spent, limit, configured);
        (self.spent >= limit).then_some(reached)
    }

    /// How the session came to its end, if it did.
    pub fn run_finished(&self) -> Option<&RunFinished> {
        self.finished.as_ref()
    }

    /// Whether it goes on only if a person wants it: they were asked, or the failure was passed on.
    pub fn needs_person(&self) -> bool {
        matches!(
            self.phase,
            SessionPhase::AwaitingHuman | SessionPhase::NotRetried
        )
    }

    /// Whether a person wants it to be tried again, though it had come to its end.
    pub fn is_reopened(&self) -> bool {
        self.finished.is_some() && self.phase == SessionPhase::Ready
    }

    /// Whether a person has been asked and has not seen to it.
    pub fn is_awaiting_human(&self) -> bool {
        self.phase == SessionPhase::AwaitingHuman
    }

    /// The model in use, as far as is known.
    pub fn model(&self) -> Option<&str> {
        self.overrides.model().or(self.spec.model.as_deref())
    }

    /// What one model is expected to cost more than another.
    pub fn extra_cost(&self, catalog: &ModelCatalog, from: &str, to: &str) -> CostEstimate {
        catalog.cost_difference(from, to, self.expected_usage())
    }

    /// What was tried since a person last saw to it, and why it did not help.
    pub fn prior_attempts(&self) -> &[PriorAttempt] {
        &self.prior_attempts
    }

    /// How many questions there were.
    pub fn escalation_count(&self) -> u32 {
        self.escalation_count
    }

    /// Why a person does not want it to go on, if they do not.
    pub fn abort_reason(&self) -> Option<&str> {
        self.abort_reason.as_deref()
    }

    /// The end of the session, and of the run if it is its only one.
    pub fn finish(
        &self,
        outcome: RunOutcome,
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
            cost_usd: known_cost(self.spent, self.unpriced_count),
            duration_ms: to_millis(at.since(self.started)),
        }
    }
}

/// How often a run was cut off in a row by the end of its supervisor without any sign of health in between: an attempt that
/// ended by itself after some progress or did its work, or one that had written something before it was cut off.
pub fn consecutive_crashes(events: &[EventRecord]) -> u32 {
    let mut crashes = 0;
    let mut is_running = false;
    for recorded in events {
        match &recorded.event {
            Event::AttemptStarted(_) => is_running = true,
            Event::AttemptInterrupted(attempt) => {
                is_running = false;
                crashes = match attempt.by {
                    InterruptionCause::Crash if attempt.has_output => 0,
                    InterruptionCause::Crash => crashes + 1,
                    InterruptionCause::Person
                    | InterruptionCause::Sigterm
                    | InterruptionCause::Sighup
                    | InterruptionCause::Output => crashes,
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
            Event::EscalationResolved(resolved) if resolved.is_by_person() => crashes = 0,
            _ => {}
        }
    }
    // One whose end nobody has noted yet was cut off, too.
    crashes + u32::from(is_running)
}

#[cfg(test)]
mod tests;
