//! Sessions: the conversation of one agent or client. Each has a policy, a model, a budget and a loop detector.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use unstuck_core::agent::is_conversation_id;
use unstuck_core::decision::{CallWait, SupervisionGap};
use unstuck_core::event::{ApiCallOutcome, BudgetReached, LastApiCall, RunId, SessionId};
use unstuck_core::{Diagnosis, FailureKind, RetryPolicy, Timestamp};

use crate::call::RetryLaterState;
use crate::call_waits::CallWaits;
use crate::loop_detection::{
    ApiLoopDetector, ApiLoopKind, ApiLoopSignal, ConversationId, LoopDetectionLimits,
};
use crate::protocol::{RequestFacts, ResponseSummary};
use crate::run_budget::RemainingRunBudget;
use crate::usage::CallUsage;

/// The idle time after which a client's session has ended.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// The time after a permanent failure from which a new request starts a new outage.
const NEW_OUTAGE_AFTER: Duration = Duration::from_secs(300);
/// The longest wait of a retrying client between two calls.
const MAX_CLIENT_WAIT: Duration = Duration::from_secs(60);
/// The maximum number of unfinished requests that are kept.
const MAX_UNFINISHED: usize = 32;

/// The settings of a session before its first call.
#[derive(Debug, Clone)]
pub struct GatewaySessionSetup {
    /// The name in URLs.
    pub name: String,
    /// The run that it belongs to.
    pub run: RunId,
    /// The id within that run.
    pub session: SessionId,
    /// The project root directory; empty without a project.
    pub project: String,
    /// The initial retry policy.
    pub policy: RetryPolicy,
    /// The budget in USD.
    pub budget: Option<f64>,
    /// The amount spent before, in USD.
    pub spent: f64,
    /// If set, held calls create an escalation; not needed if the session's supervisor creates one.
    pub escalates: bool,
    /// The known agent; without it the agent is detected from its calls.
    pub agent: Option<String>,
}

/// A conversation whose calls are held, since it repeats the same call with the same result.
#[derive(Debug, Clone)]
pub(crate) struct HeldConversation {
    pub(crate) signal: ApiLoopSignal,
    pub(crate) since: Timestamp,
    /// True if a human refused to release it.
    pub(crate) is_refused: bool,
}

/// A session of the gateway: the conversation of one agent or client, with its policy, model, budget and usage.
#[derive(Debug)]
pub struct GatewaySession {
    setup: GatewaySessionSetup,
    name: Arc<str>,
    call_waits: CallWaits,
    state: Mutex<GatewaySessionState>,
}

/// A session's streak of failing calls since its last success, with the idle periods in it.
#[derive(Debug, Clone)]
pub(crate) struct SessionFailureStreak {
    /// The start of the first failed call.
    pub(crate) since: Timestamp,
    /// The time of the last failure.
    last_failure: Timestamp,
    /// True if the client got a permanent failure.
    is_given_up: bool,
    /// The periods without attempts: no network, or no call.
    pub(crate) gaps: Vec<SupervisionGap>,
}

#[derive(Debug)]
struct GatewaySessionState {
    policy: Arc<RetryPolicy>,
    /// The model that the session was switched to.
    model: Option<String>,
    /// The model before the switch.
    own_model: Option<String>,
    spent: f64,
    usage: CallUsage,
    calls: u64,
    loop_detector: ApiLoopDetector,
    loop_signal: Option<ApiLoopSignal>,
    /// The conversations that repeat the same call with the same result.
    held: HashMap<ConversationId, HeldConversation>,
    /// The loop signal to be noted to the model.
    pending_note: Option<ApiLoopSignal>,
    /// The failure of the newest call; `None` after a success.
    last_failure: Option<Arc<Diagnosis>>,
    /// The time of the last complete response.
    last_success: Option<Timestamp>,
    /// The current outage of this attempt; `None` after a success.
    outage: Option<SessionFailureStreak>,
    /// True if the current attempt probes whether the API works again.
    is_probe: bool,
    /// The number of partly delivered responses that broke off since the last complete one.
    broken_streams: u32,
    /// The request that may be one attempt ahead of its client's own retries.
    request_ahead: Option<u64>,
    /// The agent's own id of the first conversation of this attempt.
    conversation: Option<String>,
    /// The result of the newest call of this attempt.
    last_call: Option<LastApiCall>,
    /// The state of requests whose clients were asked to return, newest last.
    unfinished: VecDeque<(u64, RetryLaterState)>,
    /// The approved total spending, in USD.
    allowed: f64,
    /// A day and the approved total of all sessions on it, in USD, for this session.
    raised_day: (i64, f64),
    /// The budget that blocks the calls, if any.
    budget_reached: Option<BudgetReached>,
    /// The remaining budget of the run, if it is limited.
    run_budget: Option<Arc<RemainingRunBudget>>,
    /// True once an unknown cost was reported.
    is_cost_unknown_told: bool,
    /// The number of escalations, and whether one is open.
    escalations: u32,
    is_escalation_open: bool,
    last_used: Timestamp,
}

impl GatewaySessionState {
    /// Keeps the newest loop signal; returns the first.
    fn record_signal(
        &mut self,
        talk: ConversationId,
        sign: Option<ApiLoopSignal>,
        now: Timestamp,
    ) -> Option<ApiLoopSignal> {
        let sign = sign?;
        if sign.kind == ApiLoopKind::RepeatedCall {
            let held = || HeldConversation {
                signal: sign.clone(),
                since: now,
                is_refused: false,
            };
            self.held.entry(talk).or_insert_with(held);
        }
        let is_new = self.loop_signal.is_none();
        self.loop_signal = Some(sign.clone());
        self.pending_note = Some(sign.clone());
        is_new.then_some(sign)
    }

    /// Adds the usage of a call.
    fn add_usage(&mut self, used: CallUsage) {
        self.spent += used.cost_usd.unwrap_or(0.0);
        self.usage = self.usage.plus(used);
        if let Some(purse) = &self.run_budget {
            purse.add_usage(used);
        }
    }

    /// Clears all loop state.
    fn clear_loops(&mut self) {
        self.loop_signal = None;
        self.held.clear();
        self.pending_note = None;
        self.is_escalation_open = false;
        self.loop_detector.reset();
    }
}

impl GatewaySession {
    pub(crate) fn new(
        setup: GatewaySessionSetup,
        limits: LoopDetectionLimits,
        now: Timestamp,
    ) -> Self {
        let (spent, policy) = (setup.spent, Arc::new(setup.policy.clone()));
        Self {
            name: setup.name.as_str().into(),
            call_waits: CallWaits::default(),
            setup,
            state: Mutex::new(GatewaySessionState {
                policy,
                model: None,
                own_model: None,
                spent,
                usage: CallUsage::default(),
                calls: 0,
                loop_detector: ApiLoopDetector::new(limits),
                loop_signal: None,
                held: HashMap::new(),
                pending_note: None,
                last_failure: None,
                last_success: None,
                outage: None,
                is_probe: false,
                broken_streams: 0,
                request_ahead: None,
                conversation: None,
                last_call: None,
                unfinished: VecDeque::new(),
                allowed: 0.0,
                raised_day: (0, 0.0),
                budget_reached: None,
                run_budget: None,
                is_cost_unknown_told: false,
                escalations: 0,
                is_escalation_open: false,
                last_used: now,
            }),
        }
    }

    /// Returns the name in URLs.
    pub fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// Returns the settings from before the first call.
    pub fn setup(&self) -> &GatewaySessionSetup {
        &self.setup
    }

    /// Returns the retry policy.
    pub fn policy(&self) -> Arc<RetryPolicy> {
        Arc::clone(&self.state().policy)
    }

    /// Returns the wait of the held call that is due next, if one is held.
    pub fn next_call_wait(&self, now: Timestamp) -> Option<CallWait> {
        self.call_waits.next(now)
    }

    /// Retries the calls at once that have been held since before a time, as a person requested: one attempt each.
    pub fn retry_held_calls(&self, at: Timestamp) {
        self.call_waits.request_retry(at);
    }

    /// Returns the waits of its held calls.
    pub(crate) fn call_waits(&self) -> &CallWaits {
        &self.call_waits
    }

    pub(crate) fn set_policy(&self, policy: Arc<RetryPolicy>) {
        self.state().policy = policy;
    }

    /// Returns the model that the session was switched to, if any.
    pub fn model(&self) -> Option<String> {
        self.state().model.clone()
    }

    /// Switches the model from the next call on; `None` restores the model that the client requests.
    pub fn set_model(&self, model: Option<String>) {
        self.state().model = model;
    }

    /// Switches from one model to another; switching back to the original restores the model that the client requests.
    pub fn switch_model(&self, from: &str, to: &str) {
        let mut state = self.state();
        if state.own_model.as_deref() == Some(to) {
            state.own_model = None;
            state.model = None;
        } else {
            state.own_model.get_or_insert_with(|| from.to_owned());
            state.model = Some(to.to_owned());
        }
    }

    /// Returns the known spending so far, in USD.
    pub fn spent(&self) -> f64 {
        self.state().spent
    }

    /// Returns the usage reported by all responses so far.
    pub fn usage(&self) -> CallUsage {
        self.state().usage
    }

    /// Returns the number of calls.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Returns the current loop signal, if any.
    pub fn loop_signal(&self) -> Option<ApiLoopSignal> {
        self.state().loop_signal.clone()
    }

    /// Returns the state of a conversation that repeats the same call with the same result.
    pub(crate) fn blocked_conversation(&self, talk: ConversationId) -> Option<HeldConversation> {
        self.state().held.get(&talk).cloned()
    }

    /// Refuses to release the held conversations.
    pub(crate) fn keep_conversations_blocked(&self) {
        let held = &mut self.state().held;
        held.values_mut().for_each(|one| one.is_refused = true);
    }

    /// Clears all loop state after a human has fixed the cause.
    pub fn clear_loops(&self) {
        self.state().clear_loops();
    }

    /// Returns the failure of the newest call; `None` after a success.
    pub fn last_failure(&self) -> Option<Arc<Diagnosis>> {
        self.state().last_failure.clone()
    }

    /// Returns the time of the last complete response, if any.
    pub fn last_success(&self) -> Option<Timestamp> {
        self.state().last_success
    }

    /// Returns the result of the newest call of this attempt; calls without tools are included only if there is no
    /// other.
    pub fn last_call(&self) -> Option<LastApiCall> {
        self.state().last_call.clone()
    }

    /// Starts a new attempt: earlier failures and loops are cleared.
    ///
    /// A probe of a parked session continues the outage, so that its first failure ends it.
    pub fn begin_attempt(&self, is_probe: bool) {
        let mut state = self.state();
        state.last_failure = None;
        state.is_probe = is_probe;
        // An automatic continuation gets no more time than before; after a permanent failure the continuation is
        // intended.
        let is_over = |one: &SessionFailureStreak| one.is_given_up && !is_probe;
        state.outage = state.outage.take().filter(|one| !is_over(one));
        state.request_ahead = None;
        state.conversation = None;
        state.last_call = None;
        state.budget_reached = None;
        state.clear_loops();
    }

    /// Returns the budget that blocks the calls, if any.
    pub fn budget_reached(&self) -> Option<BudgetReached> {
        self.state().budget_reached
    }

    /// Approves a total spending, in USD.
    pub fn allow_spending(&self, usd: f64) {
        let mut state = self.state();
        state.allowed = state.allowed.max(usd);
        state.budget_reached = None;
        state.is_escalation_open = false;
    }

    /// Approves continuing although all sessions of a day spent that much.
    pub(crate) fn raise_day_budget(&self, day: i64, usd: f64) {
        let mut state = self.state();
        state.raised_day = (day, usd);
        state.budget_reached = None;
        state.is_escalation_open = false;
    }

    /// Raises the spending to at least this amount in USD, for callers that know more than the calls of this session.
    pub fn raise_cost_to(&self, usd: f64) {
        let mut state = self.state();
        state.spent = state.spent.max(usd);
    }

    /// Sets the budget of the run, which calls of this session use up.
    pub fn set_run_budget(&self, purse: Option<Arc<RemainingRunBudget>>) {
        self.state().run_budget = purse;
    }

    /// Returns the budget of the run, if it is limited.
    pub(crate) fn run_budget(&self) -> Option<Arc<RemainingRunBudget>> {
        self.state().run_budget.clone()
    }

    /// Returns the spending of all sessions on a day at which this session is blocked.
    pub(crate) fn daily_spending_limit(&self, day: i64, of_all: f64) -> f64 {
        match self.state().raised_day {
            (raised, usd) if raised == day => usd.max(of_all),
            _ => of_all,
        }
    }

    /// Returns the time of the last call.
    pub fn last_used(&self) -> Timestamp {
        self.state().last_used
    }

    /// Returns the effective budget: its own or the general one, or the approved amount if that is higher.
    pub(crate) fn allowance(&self, of_each: Option<f64>) -> Option<f64> {
        let budget = self.setup.budget.or(of_each)?;
        Some(budget.max(self.state().allowed))
    }

    /// Returns the loop signal to note to the model, once.
    pub(crate) fn take_due_note(&self) -> Option<ApiLoopSignal> {
        self.state().pending_note.take()
    }

    /// Returns the number of a new escalation; `None` if one is open or escalations are disabled.
    pub(crate) fn begin_escalation(&self) -> Option<u32> {
        let mut state = self.state();
        if !self.setup.escalates || std::mem::replace(&mut state.is_escalation_open, true) {
            return None;
        }
        state.escalations += 1;
        Some(state.escalations)
    }

    /// Returns the number of the open escalation, if any.
    pub(crate) fn open_escalation(&self) -> Option<u32> {
        let state = self.state();
        state.is_escalation_open.then_some(state.escalations)
    }

    /// Records a permanent failure.
    pub(crate) fn record_give_up(&self, diagnosis: Arc<Diagnosis>) {
        self.state().last_failure = Some(diagnosis);
    }

    /// Records a call blocked by a budget; returns true for the first.
    pub(crate) fn record_budget_refusal(
        &self,
        diagnosis: Arc<Diagnosis>,
        reached: BudgetReached,
    ) -> bool {
        let mut state = self.state();
        state.last_failure = Some(diagnosis);
        state.budget_reached.replace(reached).is_none()
    }

    /// Records a call of unknown cost; returns true for the first.
    pub(crate) fn note_cost_unknown(&self) -> bool {
        !std::mem::replace(&mut self.state().is_cost_unknown_told, true)
    }

    /// Records a request; returns a new loop signal once.
    pub(crate) fn record_request(
        &self,
        asked: &RequestFacts,
        now: Timestamp,
    ) -> (ConversationId, Option<ApiLoopSignal>) {
        let mut state = self.state();
        state.calls += 1;
        // A client silent for that long starts something new.
        if state.last_used.after(IDLE_TIMEOUT) <= now {
            state.clear_loops();
        }
        state.last_used = now;
        let (talk, sign) = state.loop_detector.on_request(asked, now);
        (talk, state.record_signal(talk, sign, now))
    }

    /// Records a response; returns a new loop signal once.
    pub(crate) fn record_response(
        &self,
        talk: ConversationId,
        said: &ResponseSummary,
        used: CallUsage,
        now: Timestamp,
    ) -> Option<ApiLoopSignal> {
        let mut state = self.state();
        state.add_usage(used);
        state.last_used = now;
        state.last_failure = None;
        let sign = state.loop_detector.on_response(talk, said, now);
        state.record_signal(talk, sign, now)
    }

    /// Adds the usage of an incomplete response.
    pub(crate) fn add_usage(&self, used: CallUsage) {
        self.state().add_usage(used);
    }

    /// Keeps the state of a request whose client was asked to return.
    pub(crate) fn keep_unfinished(&self, request: u64, unfinished: RetryLaterState) {
        let left = &mut self.state().unfinished;
        left.retain(|(known, _)| *known != request);
        if left.len() >= MAX_UNFINISHED {
            left.pop_front();
        }
        left.push_back((request, unfinished));
    }

    /// Takes the state of an earlier request with the same body.
    pub(crate) fn take_unfinished(&self, request: u64) -> Option<RetryLaterState> {
        let left = &mut self.state().unfinished;
        let at = left.iter().position(|(known, _)| *known == request)?;
        left.remove(at).map(|(_, unfinished)| unfinished)
    }

    /// Records the failure of a call that started at `began`; returns the current outage, which spans all failed calls
    /// of this attempt since the last success.
    pub(crate) fn record_outage(&self, began: Timestamp, now: Timestamp) -> SessionFailureStreak {
        let mut state = self.state();
        let is_probe = state.is_probe;
        let goes_on = |known: &SessionFailureStreak| {
            let other = if known.is_given_up {
                NEW_OUTAGE_AFTER
            } else {
                IDLE_TIMEOUT
            };
            is_probe || began.since(known.last_failure) < other
        };
        let mut failing = state
            .outage
            .take()
            .filter(goes_on)
            .unwrap_or(SessionFailureStreak {
                since: began,
                last_failure: now,
                is_given_up: false,
                gaps: Vec::new(),
            });
        let (at, lasted) = (failing.last_failure, began.since(failing.last_failure));
        if lasted > MAX_CLIENT_WAIT {
            failing.gaps.push(SupervisionGap {
                at,
                duration: lasted,
            });
        }
        failing.last_failure = now;
        failing.is_given_up = false;
        state.outage = Some(failing.clone());
        failing
    }

    /// Adds a period without network, which is not charged to any call of the session.
    pub(crate) fn add_offline_gap(&self, at: Timestamp, lasted: Duration) {
        if let Some(failing) = &mut self.state().outage {
            failing.gaps.push(SupervisionGap {
                at,
                duration: lasted,
            });
        }
    }

    /// Records that the client got a permanent failure.
    pub(crate) fn mark_given_up(&self) {
        if let Some(failing) = &mut self.state().outage {
            failing.is_given_up = true;
        }
    }

    /// Returns true if a request may be one attempt ahead of its client's own retries; only one at a time may.
    pub(crate) fn claim_request_ahead(&self, request: u64) -> bool {
        *self.state().request_ahead.get_or_insert(request) == request
    }

    /// Ends a request, so that another one may be ahead.
    pub(crate) fn end_request_ahead(&self, request: u64) {
        let ahead = &mut self.state().request_ahead;
        if *ahead == Some(request) {
            *ahead = None;
        }
    }

    /// Returns the start of the current series of failed calls; `None` if the newest succeeded.
    pub fn failing_since(&self) -> Option<Timestamp> {
        self.state().outage.as_ref().map(|failing| failing.since)
    }

    /// Returns the agent's own id of the conversation of this attempt, if its requests name one. Conversations of
    /// subagents come later.
    pub fn conversation(&self) -> Option<String> {
        self.state().conversation.clone()
    }

    /// Records the conversation named by a request, if it is usable as an id.
    pub(crate) fn set_conversation(&self, id: &str) {
        if !is_conversation_id(id) {
            return;
        }
        let conversation = &mut self.state().conversation;
        if conversation.is_none() {
            *conversation = Some(id.to_owned());
        }
    }

    /// Returns the number of partly delivered responses that broke off since the last complete one. Each was a separate
    /// request of the client, in this attempt or an earlier one.
    pub(crate) fn broken_streams(&self) -> u32 {
        self.state().broken_streams
    }

    /// Records the result of a call.
    pub(crate) fn record_call_end(&self, call: LastApiCall) {
        let mut state = self.state();
        if call.outcome.is_success() {
            state.last_success = Some(call.at);
            state.outage = None;
            state.is_probe = false;
            state.broken_streams = 0;
            state.request_ahead = None;
        }
        if call.outcome == ApiCallOutcome::Truncated {
            state.broken_streams += 1;
        }
        let is_side_call = !call.has_tools;
        let known = state.last_call.as_ref();
        if !is_side_call || known.is_none_or(|known| !known.has_tools) {
            state.last_call = Some(call);
        }
    }

    /// Records a permanently failed request; returns a new loop signal once.
    pub(crate) fn record_failure(
        &self,
        talk: ConversationId,
        kind: FailureKind,
        now: Timestamp,
    ) -> Option<ApiLoopSignal> {
        let mut state = self.state();
        let sign = state.loop_detector.on_failure(talk, kind);
        state.record_signal(talk, sign, now)
    }

    fn state(&self) -> MutexGuard<'_, GatewaySessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All sessions of a gateway, by name.
#[derive(Debug, Default)]
pub(crate) struct GatewaySessions(Mutex<HashMap<Arc<str>, Arc<GatewaySession>>>);

impl GatewaySessions {
    /// Returns the session of that name, or creates it.
    pub(crate) fn get_or(
        &self,
        name: &str,
        make: impl FnOnce() -> GatewaySession,
    ) -> Arc<GatewaySession> {
        let mut known = self.lock();
        if let Some(session) = known.get(name) {
            return Arc::clone(session);
        }
        let session = Arc::new(make());
        known.insert(session.name(), Arc::clone(&session));
        session
    }

    /// Adds a session, replacing one of the same name.
    pub(crate) fn add(&self, session: GatewaySession) -> Arc<GatewaySession> {
        let session = Arc::new(session);
        self.lock().insert(session.name(), Arc::clone(&session));
        session
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<GatewaySession>> {
        self.lock().get(name).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<GatewaySession>> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<GatewaySession>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_seconds(1_790_000_000 + minute * 60)
    }

    fn session() -> GatewaySession {
        let run = RunId::new("testrun000");
        let setup = GatewaySessionSetup {
            name: "one".into(),
            session: run.session_id(1),
            run,
            project: String::new(),
            policy: RetryPolicy::default(),
            budget: None,
            spent: 0.0,
            escalates: true,
            agent: None,
        };
        GatewaySession::new(setup, LoopDetectionLimits::default(), at(0))
    }

    fn answered(session: &GatewaySession, minute: i64) {
        ended(session, minute, ApiCallOutcome::Answered);
    }

    fn ended(session: &GatewaySession, minute: i64, outcome: ApiCallOutcome) {
        session.record_call_end(LastApiCall {
            at: at(minute),
            outcome,
            kind: None,
            finish: None,
            is_empty: false,
            has_tools: true,
        });
    }

    /// Returns the length of the outage in minutes, after one more failure.
    fn failing(session: &GatewaySession, began: i64, now: i64) -> u64 {
        let failing = session.record_outage(at(began), at(now));
        let mut history = unstuck_core::decision::EpisodeRecoveryHistory::new(failing.since);
        history.idle_intervals = failing.gaps;
        history.time_without_progress(at(now)).as_secs() / 60
    }

    /// One clock runs over all calls until one succeeds, but not during periods without calls.
    #[test]
    fn consecutive_failed_calls_share_one_clock() {
        let session = session();
        assert_eq!(failing(&session, 0, 7), 7);
        assert_eq!(failing(&session, 8, 14), 14);
        assert_eq!(failing(&session, 3, 15), 15);
        session.begin_attempt(false);
        // No request for nine minutes.
        assert_eq!(failing(&session, 24, 30), 21);
        // No network for four minutes.
        session.add_offline_gap(at(30), Duration::from_secs(240));
        assert_eq!(failing(&session, 24, 36), 23);
        answered(&session, 37);
        assert_eq!(failing(&session, 38, 39), 1);
    }

    /// A client that returns long after a permanent failure gets new time; soon after, it does not.
    #[test]
    fn client_returning_late_after_give_up_gets_new_time() {
        let session = session();
        assert_eq!(failing(&session, 0, 30), 30);
        session.mark_given_up();
        assert_eq!(failing(&session, 31, 31), 31);
        session.mark_given_up();
        assert_eq!(failing(&session, 40, 40), 0);
        session.mark_given_up();
        session.begin_attempt(false);
        assert_eq!(failing(&session, 41, 41), 0);
    }

    /// A probe of a parked session gets no new time, however late it comes.
    #[test]
    fn probe_continues_the_outage_until_a_success() {
        let session = session();
        assert_eq!(failing(&session, 0, 30), 30);
        session.mark_given_up();
        session.begin_attempt(true);
        assert!(failing(&session, 36, 36) >= 30);
        session.mark_given_up();
        session.begin_attempt(true);
        answered(&session, 42);
        assert_eq!(failing(&session, 43, 44), 1);
    }

    /// A new attempt of the same agent continues the same clock.
    #[test]
    fn broken_streams_are_counted_until_a_complete_one() {
        let session = session();
        ended(&session, 0, ApiCallOutcome::Truncated);
        session.begin_attempt(false);
        ended(&session, 1, ApiCallOutcome::Failed);
        ended(&session, 2, ApiCallOutcome::Truncated);
        assert_eq!(session.broken_streams(), 2);
        answered(&session, 3);
        assert_eq!(session.broken_streams(), 0);
    }

    #[test]
    fn only_one_request_may_be_ahead() {
        let session = session();
        assert!(session.claim_request_ahead(1) && session.claim_request_ahead(1));
        assert!(!session.claim_request_ahead(2));
        session.end_request_ahead(2);
        assert!(!session.claim_request_ahead(2));
        session.end_request_ahead(1);
        assert!(session.claim_request_ahead(2));
        answered(&session, 1);
        assert!(session.claim_request_ahead(3));
    }
}
