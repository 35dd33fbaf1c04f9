//! The state machine of a session, as a fold over its events.
//!
//! The driver asks [`SessionState::next_step`] for the next step, executes it, and records the resulting events. After
//! a crash the stored events are applied again and the driver continues from there: resuming uses the same code path.

mod decide;
mod next_attempt_settings;
mod repair_states;
mod stated_limit_resets;

pub use decide::RunnerDecisionContext;
pub use next_attempt_settings::NextAttempt;
pub use repair_states::{RepairRecord, RepairStates, RepairStatus};

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::agent::is_conversation_id;
use crate::decision::{
    CostEstimate, Decision, EpisodeRecoveryHistory, ModelCatalog, RecoveryAction, RereadCost,
    TokenUsage, WaitPurpose,
};
use crate::diagnosis::RetryAfterSource;
use crate::duration::to_millis;
use crate::event::{
    ApprovalSource, AttemptEnd, AttemptFailed, BudgetReached, BudgetScope, BudgetUnit, CallFailed,
    EscalationOpened, EscalationPriorAttempt, EscalationResolved, Event, EventRecord,
    InterruptionCause, RepairExecuted, RepairFailed, RunFinished, RunId, RunOutcome, RunResumed,
    SessionSpec,
};
use crate::failure::RecoveryLevel;
use crate::money::{BudgetRaises, known_cost};
use crate::time::Timestamp;

use next_attempt_settings::AttemptOverrides;
use stated_limit_resets::StatedResets;

/// The number of prior attempts that are kept: the first one and the latest ones.
const MAX_PRIOR_ATTEMPTS: usize = 6;

/// The time for which providers keep a prompt cached.
const PROMPT_CACHE_LIFETIME: Duration = Duration::from_secs(300);

/// The next step of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextSessionStep {
    /// Start the attempt that [`SessionState::next_attempt`] describes.
    Attempt,
    /// Run the check again that failed after the latest attempt: a repair ran since, and the work itself is done.
    Check,
    /// Record that the attempt in progress was interrupted; only after a crash.
    RecordInterruption,
    /// Decide what to do about the failure.
    Decide,
    /// Run the repair that [`SessionState::pending_repair`] names.
    Repair,
    /// Record that the repair in progress was interrupted; only after a crash.
    RecordInterruptedRepair,
    /// Wait until the timestamp.
    Wait(Timestamp),
    /// Finish the run with this outcome.
    Finish(RunOutcome),
    /// No step is left: the run has finished.
    Finished,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionPhase {
    Ready,
    Running,
    Failed,
    Waiting(CurrentWait),
    Repairing,
    AwaitingHuman,
    NotRetried,
    Done,
}

/// The wait in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CurrentWait {
    since: Timestamp,
    until: Timestamp,
    /// True if it continues the wait of an API call that was held when the attempt was interrupted.
    is_of_held_call: bool,
}

/// The recovery state of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionState {
    id: RunId,
    spec: SessionSpec,
    started: Timestamp,
    phase: SessionPhase,
    attempts: u32,
    /// True if the latest attempt was interrupted and will run again under its number.
    was_interrupted: bool,
    /// The number of interruptions of attempts.
    interruption_count: u32,
    /// True if only the check has to run again.
    recheck: bool,
    /// The conversation id assigned to the agent in the latest attempt.
    assigned_conversation: Option<String>,
    /// The API calls of the latest attempt that are held, and until when.
    held_calls: BTreeMap<String, Timestamp>,
    retries: u32,
    level: Option<RecoveryLevel>,
    history: Option<EpisodeRecoveryHistory>,
    overrides: AttemptOverrides,
    last_failure: Option<Box<AttemptFailed>>,
    /// The time of the latest failure.
    failed_at: Timestamp,
    /// The time when its conversation was last active.
    idle_since: Timestamp,
    /// The limit resets stated by failures.
    resets: StatedResets,
    last_end: Option<AttemptEnd>,
    usage: TokenUsage,
    /// The last reported length of its conversation, in tokens.
    context: Option<u64>,
    spent: f64,
    /// The number of attempts with usage of unknown price.
    unpriced_count: u64,
    finished: Option<RunFinished>,
    /// The latest escalation.
    last_escalation: Option<Box<EscalationOpened>>,
    /// The escalations during which it continues.
    non_blocking_escalations: BTreeSet<String>,
    /// The number of escalations.
    escalation_count: u32,
    /// The reason why a human aborted it.
    abort_reason: Option<String>,
    /// The attempts since the last resolution by a human, and why they failed.
    prior_attempts: Vec<EscalationPriorAttempt>,
    /// The budget raises that humans approved.
    budget_raises: BudgetRaises,
    /// The time of the latest event.
    last_event_at: Timestamp,
    /// The purpose of the latest wait.
    wait_for: WaitPurpose,
    /// The time at which retries end if there is no progress, if retries are bounded by time.
    give_up_at: Option<Timestamp>,
    /// True if it was announced as parked and has made no progress since.
    is_parked: bool,
}

impl SessionState {
    /// Creates the state from the event that started the session; `None` for any other event.
    pub fn from_first_event(first: &EventRecord) -> Option<Self> {
        let spec = match &first.event {
            Event::RunStarted(run) => run.sole_session()?,
            Event::SessionStarted(started) => &started.spec,
            _ => return None,
        };
        Some(Self::new(&first.run, spec, first.at))
    }

    /// Creates the initial state of a session.
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
            non_blocking_escalations: BTreeSet::new(),
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

    /// Folds all events; `None` if the starting event is missing.
    pub fn from_events<'a>(events: impl IntoIterator<Item = &'a EventRecord>) -> Option<Self> {
        let mut events = events.into_iter();
        let mut recovery = Self::from_first_event(events.next()?)?;
        events.for_each(|recorded| recovery.apply(recorded));
        Some(recovery)
    }

    /// Applies an event; events of other sessions are ignored.
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
            Event::DecisionMade(made) => self.on_decision(&made.decision, recorded.at),
            Event::RepairApproved(repair) if repair.source == ApprovalSource::Human => {
                self.overrides
                    .on_repair_approved(&repair.id, &repair.command);
            }
            Event::WaitEnded(_) if matches!(self.phase, SessionPhase::Waiting(_)) => {
                self.on_wait_ended(recorded.at);
                self.phase = SessionPhase::Ready;
            }
            // The gateway retries its held calls at once.
            Event::WaitEnded(_) => self.held_calls.clear(),
            Event::SessionParked(_) => self.is_parked = true,
            Event::RepairStarted(_) => {
                self.on_wait_ended(recorded.at);
                self.phase = SessionPhase::Repairing;
            }
            Event::RepairExecuted(repair) => self.on_repair_executed(recorded.at, repair),
            Event::RepairFailed(repair) => self.on_repair_failed(recorded.at, repair),
            Event::EscalationOpened(asked) if asked.is_non_blocking() => {
                self.non_blocking_escalations.insert(asked.id.clone());
            }
            Event::EscalationResolved(resolved) if self.is_about_other_matters(resolved) => {}
            Event::EscalationOpened(asked) => {
                self.last_escalation = Some(asked.clone());
                self.escalation_count += 1;
                self.phase = SessionPhase::AwaitingHuman;
            }
            Event::EscalationResolved(resolved) if resolved.is_by_human() => {
                self.on_escalation_resolved(resolved)
            }
            Event::RunFinished(end) => self.finished = Some(end.clone()),
            Event::SessionFinished(end) => self.finished = Some(end.to_run_finished()),
            _ => {}
        }
    }

    /// Handles a resume: the time in which it was not supervised is not time without progress.
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
        // A wait continues by wall-clock time.
        if !matches!(self.phase, SessionPhase::Waiting(_))
            && let Some(history) = &mut self.history
        {
            history.record_idle(before, at.since(before));
        }
    }

    /// Ends the current wait, early or not.
    fn on_wait_ended(&mut self, at: Timestamp) {
        self.wait_for = WaitPurpose::Retry;
        self.give_up_at = None;
        if let SessionPhase::Waiting(wait) = self.phase
            && let Some(history) = &mut self.history
        {
            if wait.is_of_held_call {
                // No retry of the history waited: the latest one may have worked for long before.
                history.record_idle(wait.since, at.since(wait.since));
            } else {
                history.record_actual_start(at);
            }
        }
    }

    /// Returns true if it answers an escalation that this session does not wait for.
    fn is_about_other_matters(&self, resolved: &EscalationResolved) -> bool {
        let id = resolved.id.as_ref();
        id.is_some_and(|id| self.non_blocking_escalations.contains(id))
    }

    /// Handles a human's resolution: it starts over with all retries, or ends.
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

    /// The next attempt shows whether the repair helped; an expensive one is not started if the repair itself failed.
    fn on_repair_executed(&mut self, at: Timestamp, repair: &RepairExecuted) {
        self.overrides.clear_repair();
        self.proceed_after_repair(at, repair.exit_code == 0 || self.spec.agent.is_none());
    }

    /// Starts the attempt, or decides again about the failure that the repair was for.
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
        self.history.get_or_insert_with(|| EpisodeRecoveryHistory {
            spent_before: spent,
            ..EpisodeRecoveryHistory::new(at)
        });
        self.phase = SessionPhase::Failed;
    }

    fn on_repair_failed(&mut self, at: Timestamp, repair: &RepairFailed) {
        let was_due = self.overrides.pending_repair() == Some(repair.id.as_str());
        if self.phase != SessionPhase::Repairing && !was_due {
            return;
        }
        self.record_prior_attempt(format!("repair `{}`", repair.command), &repair.error);
        self.overrides.clear_repair();
        // Its effects are unknown; the attempt will show them.
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

    /// Handles a failed API call; it may be held until it is retried.
    fn on_call_failed(&mut self, call: &CallFailed, at: Timestamp) {
        if self.assigned_conversation.is_none() {
            let named = call.conversation.as_ref();
            self.assigned_conversation = named.filter(|id| is_conversation_id(id)).cloned();
        }
        let progress = self.history.as_ref().and_then(|one| one.last_progress);
        self.resets.on_failure(&call.diagnosis, at, progress);
        match call.decision.action {
            // The network may be back long before the wait would end; the next attempt finds out.
            RecoveryAction::Retry { until, .. } | RecoveryAction::Change { until, .. }
                if call.fallback.is_none()
                    && call.decision.wait_purpose != WaitPurpose::Network =>
            {
                self.held_calls.insert(call.call.clone(), until);
            }
            RecoveryAction::Retry { .. }
            | RecoveryAction::Change { .. }
            | RecoveryAction::Escalate { .. }
            | RecoveryAction::Stop { .. } => {
                self.held_calls.remove(&call.call);
            }
        }
    }

    /// Returns the phase after an interruption: the wait of a held API call still applies.
    fn phase_while_held(&self, at: Timestamp) -> SessionPhase {
        match self.held_calls.values().max() {
            Some(until) if *until > at => SessionPhase::Waiting(CurrentWait {
                since: at,
                until: *until,
                is_of_held_call: true,
            }),
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
        let history = self.history.get_or_insert_with(|| EpisodeRecoveryHistory {
            spent_before: spent,
            // Failed API attempts of the gateway are included.
            ..EpisodeRecoveryHistory::new(attempt.end.failing_since.unwrap_or(at))
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
        self.prior_attempts.push(EscalationPriorAttempt {
            what,
            failure_reason: why,
        });
    }

    fn on_decision(&mut self, decision: &Decision, at: Timestamp) {
        self.level = self.level.max(decision.level);
        if let (Some(attempt), Some(history)) = (decision.to_retry_record(0.0), &mut self.history) {
            history.record(attempt);
            self.retries += 1;
        }
        self.overrides.on_decision(decision);
        self.wait_for = decision.wait_purpose;
        self.give_up_at = decision.give_up_at;
        self.phase = match decision.action {
            RecoveryAction::Retry { until, .. } | RecoveryAction::Change { until, .. } => {
                SessionPhase::Waiting(CurrentWait {
                    since: at,
                    until,
                    is_of_held_call: false,
                })
            }
            RecoveryAction::Escalate { .. } => SessionPhase::AwaitingHuman,
            RecoveryAction::Stop { .. } => SessionPhase::NotRetried,
        };
    }

    /// Returns the next step at this time.
    pub fn next_step(&self, now: Timestamp) -> NextSessionStep {
        if self.finished.is_some() {
            return NextSessionStep::Finished;
        }
        match self.phase {
            SessionPhase::Waiting(wait) if now < wait.until => NextSessionStep::Wait(wait.until),
            SessionPhase::Ready | SessionPhase::Waiting(_)
                if self.overrides.pending_repair().is_some() =>
            {
                NextSessionStep::Repair
            }
            SessionPhase::Ready if self.recheck => NextSessionStep::Check,
            SessionPhase::Ready | SessionPhase::Waiting(_) => NextSessionStep::Attempt,
            SessionPhase::Repairing => NextSessionStep::RecordInterruptedRepair,
            SessionPhase::Running => NextSessionStep::RecordInterruption,
            SessionPhase::Failed => NextSessionStep::Decide,
            SessionPhase::AwaitingHuman => NextSessionStep::Finish(RunOutcome::AwaitingHuman),
            SessionPhase::NotRetried => NextSessionStep::Finish(RunOutcome::Failed),
            SessionPhase::Done if self.last_failure.is_some() => {
                NextSessionStep::Finish(RunOutcome::Recovered)
            }
            SessionPhase::Done => NextSessionStep::Finish(RunOutcome::Succeeded),
        }
    }

    /// Returns the purpose of the current wait.
    pub fn wait_purpose(&self) -> WaitPurpose {
        self.wait_for
    }

    /// Returns the start of the current wait.
    pub fn waiting_since(&self) -> Option<Timestamp> {
        match self.phase {
            SessionPhase::Waiting(wait) => Some(wait.since),
            SessionPhase::Ready
            | SessionPhase::Running
            | SessionPhase::Failed
            | SessionPhase::Repairing
            | SessionPhase::AwaitingHuman
            | SessionPhase::NotRetried
            | SessionPhase::Done => None,
        }
    }

    /// Returns the time when its conversation was last active.
    pub fn idle_since(&self) -> Timestamp {
        self.idle_since
    }

    /// Returns the source of the reset that the latest failure waits for.
    pub fn reset_source(&self) -> Option<RetryAfterSource> {
        self.resets.current_reset().map(|reset| reset.source)
    }

    /// Returns the cost of resuming its conversation at this time: all of it is read again without a cache. `None` if
    /// no conversation continues, it was active a moment ago, or its length is unknown.
    pub fn reread_cost(&self, catalog: &ModelCatalog, at: Timestamp) -> Option<RereadCost> {
        let wakes = self.overrides.wakes_conversation();
        let is_cached = at.since(self.idle_since) < PROMPT_CACHE_LIFETIME;
        self.reread_cost_if(catalog, wakes && !is_cached)
    }

    /// Returns the cost of resuming its conversation if a human chooses to continue.
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

    /// Returns the time at which retries end if there is no progress, if retries are bounded by time.
    pub fn give_up_at(&self) -> Option<Timestamp> {
        self.give_up_at
    }

    /// True if it was announced as parked and has made no progress since.
    pub fn is_parked(&self) -> bool {
        self.is_parked
    }

    /// Returns the settings of the next attempt.
    pub fn next_attempt(&self) -> NextAttempt {
        let number = self.attempts + u32::from(!self.was_interrupted);
        self.overrides.next_attempt(number)
    }

    /// Returns the repair to run before the next attempt.
    pub fn pending_repair(&self) -> Option<&str> {
        self.overrides.pending_repair()
    }

    /// Returns the repair that the open escalation is about, if there is one.
    pub fn escalated_repair(&self) -> Option<&str> {
        self.open_escalation()?.repair.as_deref()
    }

    /// Returns the open escalation.
    pub fn open_escalation(&self) -> Option<&EscalationOpened> {
        self.last_escalation
            .as_deref()
            .filter(|_| self.is_awaiting_human())
    }

    /// Returns the id of the run.
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// Returns the session's specification.
    pub fn spec(&self) -> &SessionSpec {
        &self.spec
    }

    /// Returns the latest failure.
    pub fn last_failure(&self) -> Option<&AttemptFailed> {
        self.last_failure.as_deref()
    }

    /// Returns the end of the latest attempt.
    pub fn last_attempt_end(&self) -> Option<&AttemptEnd> {
        self.last_end.as_ref()
    }

    /// Returns the conversation id assigned to the agent in the latest attempt.
    pub fn assigned_conversation(&self) -> Option<&str> {
        self.assigned_conversation.as_deref()
    }

    /// Returns the number of attempts started.
    pub fn attempt_count(&self) -> u32 {
        self.attempts
    }

    /// Returns the number of interruptions of attempts.
    pub fn interruption_count(&self) -> u32 {
        self.interruption_count
    }

    /// True if an API call of the latest attempt is held.
    pub fn is_call_held(&self) -> bool {
        !self.held_calls.is_empty()
    }

    /// True if the latest attempt was interrupted, so that its effects are unknown.
    pub fn was_interrupted(&self) -> bool {
        self.was_interrupted
    }

    /// Returns the attempts that failed since the last resolution by a human, including the first.
    pub fn history(&self) -> Option<&EpisodeRecoveryHistory> {
        self.history.as_ref()
    }

    /// Returns the known cost so far in USD.
    pub fn spent(&self) -> f64 {
        self.spent
    }

    /// Returns the open budget escalation: its id and its reason.
    pub fn open_budget_escalation(&self) -> Option<(&str, &str)> {
        self.budget_raises.open_escalation_of(&self.spec.session)
    }

    /// Returns the cost limit in USD: that of its policy with the raises that humans approved.
    pub fn max_cost(&self, now: Timestamp) -> Option<f64> {
        let configured = self.spec.policy.max_cost?;
        let (scope, unit) = (BudgetScope::Policy, BudgetUnit::Usd);
        let session = &self.spec.session;
        Some(
            self.budget_raises
                .effective_limit(scope, unit, session, configured, now),
        )
    }

    /// Returns the policy's cost limit if it is reached.
    pub fn cost_reached(&self, now: Timestamp) -> Option<BudgetReached> {
        let (configured, limit) = (self.spec.policy.max_cost?, self.max_cost(now)?);
        let (scope, unit) = (BudgetScope::Policy, BudgetUnit::Usd);
        let reached = BudgetReached::new(scope, unit, self.spent, limit, configured);
        (self.spent >= limit).then_some(reached)
    }

    /// Returns the end of the session, if it has ended.
    pub fn run_finished(&self) -> Option<&RunFinished> {
        self.finished.as_ref()
    }

    /// True if only a human can continue it: it was escalated, or the failure was returned to the caller.
    pub fn needs_human(&self) -> bool {
        matches!(
            self.phase,
            SessionPhase::AwaitingHuman | SessionPhase::NotRetried
        )
    }

    /// True if a human requested a retry after it had ended.
    pub fn is_reopened(&self) -> bool {
        self.finished.is_some() && self.phase == SessionPhase::Ready
    }

    /// True if an escalation is open.
    pub fn is_awaiting_human(&self) -> bool {
        self.phase == SessionPhase::AwaitingHuman
    }

    /// Returns the current model, if known.
    pub fn model(&self) -> Option<&str> {
        self.overrides.model().or(self.spec.model.as_deref())
    }

    /// Returns the expected extra cost of one model over another.
    pub fn extra_cost(&self, catalog: &ModelCatalog, from: &str, to: &str) -> CostEstimate {
        catalog.cost_difference(from, to, self.expected_usage())
    }

    /// Returns the attempts since the last resolution by a human, and why they failed.
    pub fn prior_attempts(&self) -> &[EscalationPriorAttempt] {
        &self.prior_attempts
    }

    /// Returns the number of escalations.
    pub fn escalation_count(&self) -> u32 {
        self.escalation_count
    }

    /// Returns the reason why a human aborted it, if they did.
    pub fn abort_reason(&self) -> Option<&str> {
        self.abort_reason.as_deref()
    }

    /// Creates the end of the session, and of the run if it is the only session.
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

/// Counts consecutive crashes of a run's supervisor without a sign of health in between: an attempt that ended by
/// itself after some progress or succeeded, or one that had written output before it was interrupted.
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
            Event::EscalationResolved(resolved) if resolved.is_by_human() => crashes = 0,
            _ => {}
        }
    }
    // An attempt whose end has not been recorded yet was interrupted, too.
    crashes + u32::from(is_running)
}

#[cfg(test)]
mod tests;
