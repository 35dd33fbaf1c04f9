//! Sessions: one agent's conversation, or one client's. Each has a policy, a model, a purse and a watch over it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use unstuck_core::decision::IdleInterval;
use unstuck_core::event::{BudgetReached, CallOutcome, LastCall, RunId, SessionId};
use unstuck_core::{Diagnosis, Kind, RetryPolicy, Timestamp};

use crate::call::UnfinishedRequest;
use crate::loop_detection::{
    ApiLoopDetector, ApiLoopKind, ApiLoopSignal, ConversationId, WatchLimits,
};
use crate::protocol::{RequestFacts, ResponseSummary};
use crate::run_budget::RunBudget;
use crate::usage::CallUsage;

/// A client that has not called for so long has ended its session.
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// A client that asks again so long after it was told to stop has begun something else.
const NEW_OUTAGE_AFTER: Duration = Duration::from_secs(300);
/// Clients that try by themselves wait for no longer between two calls.
const MAX_CLIENT_WAIT: Duration = Duration::from_secs(60);
/// So many requests are kept whose clients were told to come back.
const MAX_UNFINISHED: usize = 32;

/// What a session is told before its first call.
#[derive(Debug, Clone)]
pub struct SessionSetup {
    /// Its name in addresses.
    pub name: String,
    /// The run that it belongs to.
    pub run: RunId,
    /// Its id in that run.
    pub session: SessionId,
    /// The root folder of its project; empty where there is none.
    pub project: String,
    /// How far to go, until that is changed.
    pub policy: RetryPolicy,
    /// What it may spend, in USD.
    pub budget: Option<f64>,
    /// What it had spent before, in USD.
    pub spent: f64,
    /// Whether a person is asked when its calls are held; not where whoever supervises it does.
    pub escalates: bool,
    /// The agent that it is known to be; else its calls tell.
    pub agent: Option<String>,
}

/// A conversation that repeats the same call with the same result.
#[derive(Debug, Clone)]
pub(crate) struct HeldConversation {
    pub(crate) signal: ApiLoopSignal,
    pub(crate) since: Timestamp,
    /// Whether a person does not let it go on.
    pub(crate) is_refused: bool,
}

/// A session.
#[derive(Debug)]
pub struct GatewaySession {
    setup: SessionSetup,
    name: Arc<str>,
    state: Mutex<GatewaySessionState>,
}

/// The time in which calls of a session fail and none is answered.
#[derive(Debug, Clone)]
pub(crate) struct Outage {
    /// When the first of these calls began.
    pub(crate) since: Timestamp,
    /// When one failed last.
    last_failure: Timestamp,
    /// Whether the client was told to stop.
    is_given_up: bool,
    /// When nobody tried: there was no network, or no call.
    pub(crate) gaps: Vec<IdleInterval>,
}

#[derive(Debug)]
struct GatewaySessionState {
    policy: Arc<RetryPolicy>,
    /// The model that it was moved to.
    model: Option<String>,
    /// The model that it had before it was moved.
    own_model: Option<String>,
    spent: f64,
    usage: CallUsage,
    calls: u64,
    loop_detector: ApiLoopDetector,
    loop_signal: Option<ApiLoopSignal>,
    /// The conversations that repeat the same call with the same result.
    held: HashMap<ConversationId, HeldConversation>,
    /// What shows that it goes in circles, and was not told to the model yet.
    pending_note: Option<ApiLoopSignal>,
    /// What the newest call failed of; none once another was answered.
    last_failure: Option<Arc<Diagnosis>>,
    /// When a call was last answered whole.
    last_success: Option<Timestamp>,
    /// Since when calls of this attempt fail; none once one was answered.
    outage: Option<Outage>,
    /// How many answers have broken off after some of them was passed on, since one was whole.
    broken_streams: u32,
    /// The request that may be a try ahead of what its client would ask by itself, where one is.
    request_ahead: Option<u64>,
    /// The agent's own id of the first conversation of this attempt.
    conversation: Option<String>,
    /// How the newest call of this attempt ended.
    last_call: Option<LastCall>,
    /// What was tried in vain for requests whose client was told to come back, the newest last.
    unfinished: VecDeque<(u64, UnfinishedRequest)>,
    /// What a person allowed it to spend in all, in USD.
    allowed: f64,
    /// A day, and what a person allowed all sessions to have spent on it before this one is refused, in USD.
    raised_day: (i64, f64),
    /// The budget that its calls are refused for, if they are.
    budget_reached: Option<BudgetReached>,
    /// What its run may still use, where that is limited.
    run_budget: Option<Arc<RunBudget>>,
    /// Whether it was told that what its calls cost is not known.
    is_cost_unknown_told: bool,
    /// How often a person was asked, and whether nobody has answered yet.
    escalations: u32,
    is_escalation_open: bool,
    last_used: Timestamp,
}

impl GatewaySessionState {
    /// Keeps the newest sign that it goes in circles; gives the first.
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

    /// Adds what a call used.
    fn add_usage(&mut self, used: CallUsage) {
        self.spent += used.cost_usd.unwrap_or(0.0);
        self.usage = self.usage.plus(used);
        if let Some(purse) = &self.run_budget {
            purse.add_usage(used);
        }
    }

    /// Forgets that it went in circles.
    fn clear_loops(&mut self) {
        self.loop_signal = None;
        self.held.clear();
        self.pending_note = None;
        self.is_escalation_open = false;
        self.loop_detector.reset();
    }
}

impl GatewaySession {
    pub(crate) fn new(setup: SessionSetup, limits: WatchLimits, now: Timestamp) -> Self {
        let (spent, policy) = (setup.spent, Arc::new(setup.policy.clone()));
        Self {
            name: setup.name.as_str().into(),
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

    /// Its name in addresses.
    pub fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// What it was told before its first call.
    pub fn setup(&self) -> &SessionSetup {
        &self.setup
    }

    /// How far to go.
    pub fn policy(&self) -> Arc<RetryPolicy> {
        Arc::clone(&self.state().policy)
    }

    pub(crate) fn set_policy(&self, policy: Arc<RetryPolicy>) {
        self.state().policy = policy;
    }

    /// The model that it was moved to, if it was.
    pub fn model(&self) -> Option<String> {
        self.state().model.clone()
    }

    /// Moves it to another model from its next call on; `None` moves it back to what its client asks for.
    pub fn set_model(&self, model: Option<String>) {
        self.state().model = model;
    }

    /// Moves it from one model to another; back at the one that it had at first, it gets what its client asks for.
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

    /// What it has spent so far, in USD, as far as is known.
    pub fn spent(&self) -> f64 {
        self.state().spent
    }

    /// What its calls have used so far, as the answers say.
    pub fn usage(&self) -> CallUsage {
        self.state().usage
    }

    /// How many calls it has made.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// What shows that it goes in circles, if something does.
    pub fn loop_signal(&self) -> Option<ApiLoopSignal> {
        self.state().loop_signal.clone()
    }

    /// Whether a conversation of it repeats the same call with the same result, and since when.
    pub(crate) fn held_conversation(&self, talk: ConversationId) -> Option<HeldConversation> {
        self.state().held.get(&talk).cloned()
    }

    /// A person does not let the conversations go on that are held.
    pub(crate) fn refuse_held(&self) {
        let held = &mut self.state().held;
        held.values_mut().for_each(|one| one.is_refused = true);
    }

    /// Forgets that it went in circles: a person has seen to it.
    pub fn clear_loops(&self) {
        self.state().clear_loops();
    }

    /// What its newest call failed of; none if it was answered.
    pub fn last_failure(&self) -> Option<Arc<Diagnosis>> {
        self.state().last_failure.clone()
    }

    /// When one of its calls was last answered whole; none if none was.
    pub fn last_success(&self) -> Option<Timestamp> {
        self.state().last_success
    }

    /// How its newest call since the attempt began ended; side calls without tools count only where no other was made.
    pub fn last_call(&self) -> Option<LastCall> {
        self.state().last_call.clone()
    }

    /// A new attempt begins: what failed before is over, and so are its circles.
    pub fn begin_attempt(&self) {
        let mut state = self.state();
        state.last_failure = None;
        // Whoever goes on by itself has no more time than before; after the end of it, somebody wants it to go on.
        state.outage = state.outage.take().filter(|one| !one.is_given_up);
        state.request_ahead = None;
        state.conversation = None;
        state.last_call = None;
        state.budget_reached = None;
        state.clear_loops();
    }

    /// The budget that its calls are refused for, if they are.
    pub fn budget_reached(&self) -> Option<BudgetReached> {
        self.state().budget_reached
    }

    /// A person allows it to spend so much in all, in USD.
    pub fn allow_spending(&self, usd: f64) {
        let mut state = self.state();
        state.allowed = state.allowed.max(usd);
        state.budget_reached = None;
        state.is_escalation_open = false;
    }

    /// A person lets it go on although so much was spent by all sessions of a day.
    pub(crate) fn raise_day_budget(&self, day: i64, usd: f64) {
        let mut state = self.state();
        state.raised_day = (day, usd);
        state.budget_reached = None;
        state.is_escalation_open = false;
    }

    /// What it has spent in all is at least this, in USD, as somebody knows who sees more than its calls.
    pub fn raise_spent_to(&self, usd: f64) {
        let mut state = self.state();
        state.spent = state.spent.max(usd);
    }

    /// Its calls use what its run may use.
    pub fn set_run_budget(&self, purse: Option<Arc<RunBudget>>) {
        self.state().run_budget = purse;
    }

    /// What its run may still use, where that is limited.
    pub(crate) fn run_budget(&self) -> Option<Arc<RunBudget>> {
        self.state().run_budget.clone()
    }

    /// What all sessions may have spent on a day before this one is refused.
    pub(crate) fn allowance_of_day(&self, day: i64, of_all: f64) -> f64 {
        match self.state().raised_day {
            (raised, usd) if raised == day => usd.max(of_all),
            _ => of_all,
        }
    }

    /// When it last called.
    pub fn last_used(&self) -> Timestamp {
        self.state().last_used
    }

    /// What it may spend: its own budget, or that of every session, and what was allowed beyond.
    pub(crate) fn allowance(&self, of_each: Option<f64>) -> Option<f64> {
        let budget = self.setup.budget.or(of_each)?;
        Some(budget.max(self.state().allowed))
    }

    /// The sign that is to be told to the model, once.
    pub(crate) fn take_due_note(&self) -> Option<ApiLoopSignal> {
        self.state().pending_note.take()
    }

    /// The number of the question that a person is to be asked now; none while they are asked, or where nobody is.
    pub(crate) fn begin_escalation(&self) -> Option<u32> {
        let mut state = self.state();
        if !self.setup.escalates || std::mem::replace(&mut state.is_escalation_open, true) {
            return None;
        }
        state.escalations += 1;
        Some(state.escalations)
    }

    /// The number of the question that waits for an answer; none where none does.
    pub(crate) fn open_escalation(&self) -> Option<u32> {
        let state = self.state();
        state.is_escalation_open.then_some(state.escalations)
    }

    /// A call failed for good.
    pub(crate) fn record_give_up(&self, diagnosis: Arc<Diagnosis>) {
        self.state().last_failure = Some(diagnosis);
    }

    /// A call was refused because a budget is used up; whether it is the first.
    pub(crate) fn record_budget_refusal(
        &self,
        diagnosis: Arc<Diagnosis>,
        reached: BudgetReached,
    ) -> bool {
        let mut state = self.state();
        state.last_failure = Some(diagnosis);
        state.budget_reached.replace(reached).is_none()
    }

    /// What a call cost is not known; whether it is the first.
    pub(crate) fn note_cost_unknown(&self) -> bool {
        !std::mem::replace(&mut self.state().is_cost_unknown_told, true)
    }

    /// Takes note of a request; a new sign that it goes in circles is given once.
    pub(crate) fn record_request(
        &self,
        asked: &RequestFacts,
        now: Timestamp,
    ) -> (ConversationId, Option<ApiLoopSignal>) {
        let mut state = self.state();
        state.calls += 1;
        // Whoever was silent for so long begins something new.
        if state.last_used.after(IDLE_TIMEOUT) <= now {
            state.clear_loops();
        }
        state.last_used = now;
        let (talk, sign) = state.loop_detector.on_request(asked, now);
        (talk, state.record_signal(talk, sign, now))
    }

    /// Takes note of an answer; a new sign that it goes in circles is given once.
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

    /// Takes note of what an answer used that was not taken to its end.
    pub(crate) fn add_usage(&self, used: CallUsage) {
        self.state().add_usage(used);
    }

    /// Keeps what was tried for a request whose client was told to come back.
    pub(crate) fn keep_unfinished(&self, request: u64, unfinished: UnfinishedRequest) {
        let left = &mut self.state().unfinished;
        left.retain(|(known, _)| *known != request);
        if left.len() >= MAX_UNFINISHED {
            left.pop_front();
        }
        left.push_back((request, unfinished));
    }

    /// What was tried for a request before, if its client comes back with it.
    pub(crate) fn take_unfinished(&self, request: u64) -> Option<UnfinishedRequest> {
        let left = &mut self.state().unfinished;
        let at = left.iter().position(|(known, _)| *known == request)?;
        left.remove(at).map(|(_, unfinished)| unfinished)
    }

    /// A call that began at that moment fails; since when calls of this attempt do and none is answered, however many there
    /// are.
    pub(crate) fn record_outage(&self, began: Timestamp, now: Timestamp) -> Outage {
        let known = &mut self.state().outage;
        let goes_on = |known: &Outage| {
            let other = if known.is_given_up {
                NEW_OUTAGE_AFTER
            } else {
                IDLE_TIMEOUT
            };
            began.since(known.last_failure) < other
        };
        let mut failing = known.take().filter(goes_on).unwrap_or(Outage {
            since: began,
            last_failure: now,
            is_given_up: false,
            gaps: Vec::new(),
        });
        let (at, lasted) = (failing.last_failure, began.since(failing.last_failure));
        if lasted > MAX_CLIENT_WAIT {
            failing.gaps.push(IdleInterval {
                at,
                duration: lasted,
            });
        }
        failing.last_failure = now;
        failing.is_given_up = false;
        *known = Some(failing.clone());
        failing
    }

    /// There was no network for so long, which counts against no call of the session.
    pub(crate) fn add_offline_gap(&self, at: Timestamp, lasted: Duration) {
        if let Some(failing) = &mut self.state().outage {
            failing.gaps.push(IdleInterval {
                at,
                duration: lasted,
            });
        }
    }

    /// The client was told to stop.
    pub(crate) fn mark_given_up(&self) {
        if let Some(failing) = &mut self.state().outage {
            failing.is_given_up = true;
        }
    }

    /// Whether a request may be a try ahead of what its client would ask by itself: one at a time may.
    pub(crate) fn claim_request_ahead(&self, request: u64) -> bool {
        *self.state().request_ahead.get_or_insert(request) == request
    }

    /// A request has ended, so that another one may be ahead.
    pub(crate) fn end_request_ahead(&self, request: u64) {
        let ahead = &mut self.state().request_ahead;
        if *ahead == Some(request) {
            *ahead = None;
        }
    }

    /// Since when calls of this attempt have been failing, one after the other; none if the newest was answered.
    pub fn failing_since(&self) -> Option<Timestamp> {
        self.state().outage.as_ref().map(|failing| failing.since)
    }

    /// The agent's own id of the conversation of this attempt, where its requests name one. Those of its subagents come later.
    pub fn conversation(&self) -> Option<String> {
        self.state().conversation.clone()
    }

    /// A request named the conversation that it belongs to.
    pub(crate) fn set_conversation(&self, id: &str) {
        let conversation = &mut self.state().conversation;
        if conversation.is_none() {
            *conversation = Some(id.to_owned());
        }
    }

    /// How many answers have broken off after some of them was passed on, since one was whole. Each was a request of the
    /// client's own, in this attempt or an earlier one.
    pub(crate) fn broken_streams(&self) -> u32 {
        self.state().broken_streams
    }

    /// Takes note of how a call ended.
    pub(crate) fn record_call_end(&self, call: LastCall) {
        let mut state = self.state();
        if call.outcome.is_success() {
            state.last_success = Some(call.at);
            state.outage = None;
            state.broken_streams = 0;
            state.request_ahead = None;
        }
        if call.outcome == CallOutcome::Truncated {
            state.broken_streams += 1;
        }
        let is_side_call = !call.has_tools;
        let known = state.last_call.as_ref();
        if !is_side_call || known.is_none_or(|known| !known.has_tools) {
            state.last_call = Some(call);
        }
    }

    /// Takes note that a request failed for good; a new sign that it goes in circles is given once.
    pub(crate) fn record_failure(
        &self,
        talk: ConversationId,
        kind: Kind,
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

/// All sessions of a gateway, by their names.
#[derive(Debug, Default)]
pub(crate) struct GatewaySessions(Mutex<HashMap<Arc<str>, Arc<GatewaySession>>>);

impl GatewaySessions {
    /// The session of a name, or the one that is made for it.
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

    /// Takes a session in; one of the same name is replaced.
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
        let setup = SessionSetup {
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
        GatewaySession::new(setup, WatchLimits::default(), at(0))
    }

    fn answered(session: &GatewaySession, minute: i64) {
        ended(session, minute, CallOutcome::Answered);
    }

    fn ended(session: &GatewaySession, minute: i64, outcome: CallOutcome) {
        session.record_call_end(LastCall {
            at: at(minute),
            outcome,
            kind: None,
            finish: None,
            is_empty: false,
            has_tools: true,
        });
    }

    /// How many minutes calls have failed without an answer, with one that failed just now.
    fn failing(session: &GatewaySession, began: i64, now: i64) -> u64 {
        let failing = session.record_outage(at(began), at(now));
        let mut history = unstuck_core::decision::RecoveryHistory::new(failing.since);
        history.idle_intervals = failing.gaps;
        history.time_without_progress(at(now)).as_secs() / 60
    }

    /// However the calls are cut up, one clock runs until one is answered; but not while there is none.
    #[test]
    fn calls_that_fail_one_after_the_other_share_one_clock() {
        let session = session();
        assert_eq!(failing(&session, 0, 7), 7);
        assert_eq!(failing(&session, 8, 14), 14);
        assert_eq!(failing(&session, 3, 15), 15);
        session.begin_attempt();
        // Nobody asked for nine minutes.
        assert_eq!(failing(&session, 24, 30), 21);
        // Nor was there a network for four.
        session.add_offline_gap(at(30), Duration::from_secs(240));
        assert_eq!(failing(&session, 24, 36), 23);
        answered(&session, 37);
        assert_eq!(failing(&session, 38, 39), 1);
    }

    /// Whoever was told to stop and asks again later has a new time; a little later it has not.
    #[test]
    fn whoever_was_told_to_stop_has_a_new_time_later() {
        let session = session();
        assert_eq!(failing(&session, 0, 30), 30);
        session.mark_given_up();
        assert_eq!(failing(&session, 31, 31), 31);
        session.mark_given_up();
        assert_eq!(failing(&session, 40, 40), 0);
        session.mark_given_up();
        session.begin_attempt();
        assert_eq!(failing(&session, 41, 41), 0);
    }

    /// A new attempt of the same agent goes on counting.
    #[test]
    fn answers_that_break_off_are_counted_until_one_is_whole() {
        let session = session();
        ended(&session, 0, CallOutcome::Truncated);
        session.begin_attempt();
        ended(&session, 1, CallOutcome::Failed);
        ended(&session, 2, CallOutcome::Truncated);
        assert_eq!(session.broken_streams(), 2);
        answered(&session, 3);
        assert_eq!(session.broken_streams(), 0);
    }

    #[test]
    fn one_request_at_a_time_may_be_a_try_ahead() {
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
