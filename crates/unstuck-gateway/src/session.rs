//! Sessions: one agent's conversation, or one client's. Each has a policy, a model, a purse and a watch over it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use unstuck_core::decision::Gap;
use unstuck_core::event::{BudgetReached, CallOutcome, LastCall, RunId, SessionId};
use unstuck_core::{Diagnosis, Kind, RetryPolicy, Timestamp};

use crate::call::Unfinished;
use crate::counted::Counted;
use crate::protocol::{Asked, Said};
use crate::run_purse::RunPurse;
use crate::watch::{Sign, Talk, Watch, WatchLimits, What};

/// A client that has not called for so long has ended its session.
pub(crate) const SILENCE: Duration = Duration::from_secs(30 * 60);

/// A client that asks again so long after it was told to stop has begun something else.
const OTHER_OUTAGE: Duration = Duration::from_secs(300);
/// Clients that try by themselves wait for no longer between two calls.
const BETWEEN_CALLS: Duration = Duration::from_secs(60);
/// So many requests are kept whose clients were told to come back.
const MOST_UNFINISHED: usize = 32;

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
    pub asks: bool,
    /// The agent that it is known to be; else its calls tell.
    pub agent: Option<String>,
}

/// A conversation that repeats the same call with the same result.
#[derive(Debug, Clone)]
pub(crate) struct HeldTalk {
    pub(crate) sign: Sign,
    pub(crate) since: Timestamp,
    /// Whether a person does not let it go on.
    pub(crate) is_refused: bool,
}

/// A session.
#[derive(Debug)]
pub struct Session {
    setup: SessionSetup,
    name: Arc<str>,
    state: Mutex<State>,
}

/// The time in which calls of a session fail and none is answered.
#[derive(Debug, Clone)]
pub(crate) struct Failing {
    /// When the first of these calls began.
    pub(crate) since: Timestamp,
    /// When one failed last.
    last: Timestamp,
    /// Whether the client was told to stop.
    is_given_up: bool,
    /// When nobody tried: there was no network, or no call.
    pub(crate) idle: Vec<Gap>,
}

#[derive(Debug)]
struct State {
    policy: Arc<RetryPolicy>,
    /// The model that it was moved to.
    model: Option<String>,
    /// The model that it had before it was moved.
    own_model: Option<String>,
    spent: f64,
    seen: Counted,
    calls: u64,
    watch: Watch,
    circling: Option<Sign>,
    /// The conversations that repeat the same call with the same result.
    held: HashMap<Talk, HeldTalk>,
    /// What shows that it goes in circles, and was not told to the model yet.
    untold: Option<Sign>,
    /// What the newest call failed of; none once another was answered.
    trouble: Option<Arc<Diagnosis>>,
    /// When a call was last answered whole.
    last_success: Option<Timestamp>,
    /// Since when calls of this attempt fail; none once one was answered.
    failing: Option<Failing>,
    /// How many answers have broken off after some of them was passed on, since one was whole.
    broken_streams: u32,
    /// The request that may be a try ahead of what its client would ask by itself, where one is.
    ahead: Option<u64>,
    /// The agent's own id of the first conversation of this attempt.
    conversation: Option<String>,
    /// How the newest call of this attempt ended.
    last_call: Option<LastCall>,
    /// What was tried in vain for requests whose client was told to come back, the newest last.
    unfinished: VecDeque<(u64, Unfinished)>,
    /// What a person allowed it to spend in all, in USD.
    allowed: f64,
    /// A day, and what a person allowed all sessions to have spent on it before this one is refused, in USD.
    raised_day: (i64, f64),
    /// The budget that its calls are refused for, if they are.
    reached: Option<BudgetReached>,
    /// What its run may still use, where that is limited.
    purse: Option<Arc<RunPurse>>,
    /// Whether it was told that what its calls cost is not known.
    is_uncounted: bool,
    /// How often a person was asked, and whether nobody has answered yet.
    questions: u32,
    is_asked: bool,
    used: Timestamp,
}

impl State {
    /// Keeps the newest sign that it goes in circles; gives the first.
    fn circles(&mut self, talk: Talk, sign: Option<Sign>, now: Timestamp) -> Option<Sign> {
        let sign = sign?;
        if sign.what == What::RepeatedCall {
            let held = || HeldTalk {
                sign: sign.clone(),
                since: now,
                is_refused: false,
            };
            self.held.entry(talk).or_insert_with(held);
        }
        let is_new = self.circling.is_none();
        self.circling = Some(sign.clone());
        self.untold = Some(sign.clone());
        is_new.then_some(sign)
    }

    /// Adds what a call used.
    fn add(&mut self, used: Counted) {
        self.spent += used.cost_usd.unwrap_or(0.0);
        self.seen = self.seen.and(used);
        if let Some(purse) = &self.purse {
            purse.add(used);
        }
    }

    /// Forgets that it went in circles.
    fn let_go(&mut self) {
        self.circling = None;
        self.held.clear();
        self.untold = None;
        self.is_asked = false;
        self.watch.restart();
    }
}

impl Session {
    pub(crate) fn new(setup: SessionSetup, limits: WatchLimits, now: Timestamp) -> Self {
        let (spent, policy) = (setup.spent, Arc::new(setup.policy.clone()));
        Self {
            name: setup.name.as_str().into(),
            setup,
            state: Mutex::new(State {
                policy,
                model: None,
                own_model: None,
                spent,
                seen: Counted::default(),
                calls: 0,
                watch: Watch::new(limits),
                circling: None,
                held: HashMap::new(),
                untold: None,
                trouble: None,
                last_success: None,
                failing: None,
                broken_streams: 0,
                ahead: None,
                conversation: None,
                last_call: None,
                unfinished: VecDeque::new(),
                allowed: 0.0,
                raised_day: (0, 0.0),
                reached: None,
                purse: None,
                is_uncounted: false,
                questions: 0,
                is_asked: false,
                used: now,
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
    pub fn move_to(&self, model: Option<String>) {
        self.state().model = model;
    }

    /// Moves it from one model to another; back at the one that it had at first, it gets what its client asks for.
    pub fn moved(&self, from: &str, to: &str) {
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
    pub fn counted(&self) -> Counted {
        self.state().seen
    }

    /// How many calls it has made.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// What shows that it goes in circles, if something does.
    pub fn circling(&self) -> Option<Sign> {
        self.state().circling.clone()
    }

    /// Whether a conversation of it repeats the same call with the same result, and since when.
    pub(crate) fn held(&self, talk: Talk) -> Option<HeldTalk> {
        self.state().held.get(&talk).cloned()
    }

    /// A person does not let the conversations go on that are held.
    pub(crate) fn refuse_held(&self) {
        let held = &mut self.state().held;
        held.values_mut().for_each(|one| one.is_refused = true);
    }

    /// Forgets that it went in circles: a person has seen to it.
    pub fn let_go(&self) {
        self.state().let_go();
    }

    /// What its newest call failed of; none if it was answered.
    pub fn trouble(&self) -> Option<Arc<Diagnosis>> {
        self.state().trouble.clone()
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
    pub fn begin_anew(&self) {
        let mut state = self.state();
        state.trouble = None;
        // Whoever goes on by itself has no more time than before; after the end of it, somebody wants it to go on.
        state.failing = state.failing.take().filter(|one| !one.is_given_up);
        state.ahead = None;
        state.conversation = None;
        state.last_call = None;
        state.reached = None;
        state.let_go();
    }

    /// The budget that its calls are refused for, if they are.
    pub fn budget_reached(&self) -> Option<BudgetReached> {
        self.state().reached
    }

    /// A person allows it to spend so much in all, in USD.
    pub fn allow(&self, usd: f64) {
        let mut state = self.state();
        state.allowed = state.allowed.max(usd);
        state.reached = None;
        state.is_asked = false;
    }

    /// A person lets it go on although so much was spent by all sessions of a day.
    pub(crate) fn raise_day(&self, day: i64, usd: f64) {
        let mut state = self.state();
        state.raised_day = (day, usd);
        state.reached = None;
        state.is_asked = false;
    }

    /// What it has spent in all is at least this, in USD, as somebody knows who sees more than its calls.
    pub fn spent_at_least(&self, usd: f64) {
        let mut state = self.state();
        state.spent = state.spent.max(usd);
    }

    /// Its calls use what its run may use.
    pub fn use_purse(&self, purse: Option<Arc<RunPurse>>) {
        self.state().purse = purse;
    }

    /// What its run may still use, where that is limited.
    pub(crate) fn purse(&self) -> Option<Arc<RunPurse>> {
        self.state().purse.clone()
    }

    /// What all sessions may have spent on a day before this one is refused.
    pub(crate) fn allowance_of_day(&self, day: i64, of_all: f64) -> f64 {
        match self.state().raised_day {
            (raised, usd) if raised == day => usd.max(of_all),
            _ => of_all,
        }
    }

    /// When it last called.
    pub fn used(&self) -> Timestamp {
        self.state().used
    }

    /// What it may spend: its own budget, or that of every session, and what was allowed beyond.
    pub(crate) fn allowance(&self, of_each: Option<f64>) -> Option<f64> {
        let budget = self.setup.budget.or(of_each)?;
        Some(budget.max(self.state().allowed))
    }

    /// The sign that is to be told to the model, once.
    pub(crate) fn due_note(&self) -> Option<Sign> {
        self.state().untold.take()
    }

    /// The number of the question that a person is to be asked now; none while they are asked, or where nobody is.
    pub(crate) fn question(&self) -> Option<u32> {
        let mut state = self.state();
        if !self.setup.asks || std::mem::replace(&mut state.is_asked, true) {
            return None;
        }
        state.questions += 1;
        Some(state.questions)
    }

    /// The number of the question that waits for an answer; none where none does.
    pub(crate) fn asked_question(&self) -> Option<u32> {
        let state = self.state();
        state.is_asked.then_some(state.questions)
    }

    /// A call failed for good.
    pub(crate) fn gave_up(&self, diagnosis: Arc<Diagnosis>) {
        self.state().trouble = Some(diagnosis);
    }

    /// A call was refused because a budget is used up; whether it is the first.
    pub(crate) fn refused(&self, diagnosis: Arc<Diagnosis>, reached: BudgetReached) -> bool {
        let mut state = self.state();
        state.trouble = Some(diagnosis);
        state.reached.replace(reached).is_none()
    }

    /// What a call cost is not known; whether it is the first.
    pub(crate) fn is_first_uncounted(&self) -> bool {
        !std::mem::replace(&mut self.state().is_uncounted, true)
    }

    /// Takes note of a request; a new sign that it goes in circles is given once.
    pub(crate) fn asked(&self, asked: &Asked, now: Timestamp) -> (Talk, Option<Sign>) {
        let mut state = self.state();
        state.calls += 1;
        // Whoever was silent for so long begins something new.
        if state.used.after(SILENCE) <= now {
            state.let_go();
        }
        state.used = now;
        let (talk, sign) = state.watch.asked(asked, now);
        (talk, state.circles(talk, sign, now))
    }

    /// Takes note of an answer; a new sign that it goes in circles is given once.
    pub(crate) fn answered(
        &self,
        talk: Talk,
        said: &Said,
        used: Counted,
        now: Timestamp,
    ) -> Option<Sign> {
        let mut state = self.state();
        state.add(used);
        state.used = now;
        state.trouble = None;
        let sign = state.watch.answered(talk, said, now);
        state.circles(talk, sign, now)
    }

    /// Takes note of what an answer used that was not taken to its end.
    pub(crate) fn count(&self, used: Counted) {
        self.state().add(used);
    }

    /// Keeps what was tried for a request whose client was told to come back.
    pub(crate) fn leave(&self, request: u64, unfinished: Unfinished) {
        let left = &mut self.state().unfinished;
        left.retain(|(known, _)| *known != request);
        if left.len() >= MOST_UNFINISHED {
            left.pop_front();
        }
        left.push_back((request, unfinished));
    }

    /// What was tried for a request before, if its client comes back with it.
    pub(crate) fn take_up(&self, request: u64) -> Option<Unfinished> {
        let left = &mut self.state().unfinished;
        let at = left.iter().position(|(known, _)| *known == request)?;
        left.remove(at).map(|(_, unfinished)| unfinished)
    }

    /// A call that began at that moment fails; since when calls of this attempt do and none is answered, however many there
    /// are.
    pub(crate) fn failing(&self, began: Timestamp, now: Timestamp) -> Failing {
        let known = &mut self.state().failing;
        let goes_on = |known: &Failing| {
            let other = match known.is_given_up {
                true => OTHER_OUTAGE,
                false => SILENCE,
            };
            began.since(known.last) < other
        };
        let mut failing = known.take().filter(goes_on).unwrap_or(Failing {
            since: began,
            last: now,
            is_given_up: false,
            idle: Vec::new(),
        });
        let (at, lasted) = (failing.last, began.since(failing.last));
        if lasted > BETWEEN_CALLS {
            failing.idle.push(Gap { at, lasted });
        }
        failing.last = now;
        failing.is_given_up = false;
        *known = Some(failing.clone());
        failing
    }

    /// There was no network for so long, which counts against no call of the session.
    pub(crate) fn was_offline(&self, at: Timestamp, lasted: Duration) {
        if let Some(failing) = &mut self.state().failing {
            failing.idle.push(Gap { at, lasted });
        }
    }

    /// The client was told to stop.
    pub(crate) fn told_to_stop(&self) {
        if let Some(failing) = &mut self.state().failing {
            failing.is_given_up = true;
        }
    }

    /// Whether a request may be a try ahead of what its client would ask by itself: one at a time may.
    pub(crate) fn may_be_ahead(&self, request: u64) -> bool {
        *self.state().ahead.get_or_insert(request) == request
    }

    /// A request has ended, so that another one may be ahead.
    pub(crate) fn request_ended(&self, request: u64) {
        let ahead = &mut self.state().ahead;
        if *ahead == Some(request) {
            *ahead = None;
        }
    }

    /// Since when calls of this attempt have been failing, one after the other; none if the newest was answered.
    pub fn failing_since(&self) -> Option<Timestamp> {
        self.state().failing.as_ref().map(|failing| failing.since)
    }

    /// The agent's own id of the conversation of this attempt, where its requests name one. Those of its subagents come later.
    pub fn conversation(&self) -> Option<String> {
        self.state().conversation.clone()
    }

    /// A request named the conversation that it belongs to.
    pub(crate) fn named_conversation(&self, id: &str) {
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
    pub(crate) fn ended(&self, call: LastCall) {
        let mut state = self.state();
        if call.outcome.is_success() {
            state.last_success = Some(call.at);
            state.failing = None;
            state.broken_streams = 0;
            state.ahead = None;
        }
        if call.outcome == CallOutcome::Cut {
            state.broken_streams += 1;
        }
        let is_side_call = !call.has_tools;
        let known = state.last_call.as_ref();
        if !is_side_call || known.is_none_or(|known| !known.has_tools) {
            state.last_call = Some(call);
        }
    }

    /// Takes note that a request failed for good; a new sign that it goes in circles is given once.
    pub(crate) fn failed(&self, talk: Talk, kind: Kind, now: Timestamp) -> Option<Sign> {
        let mut state = self.state();
        let sign = state.watch.failed(talk, kind);
        state.circles(talk, sign, now)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All sessions of a gateway, by their names.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<HashMap<Arc<str>, Arc<Session>>>);

impl Sessions {
    /// The session of a name, or the one that is made for it.
    pub(crate) fn get_or(&self, name: &str, make: impl FnOnce() -> Session) -> Arc<Session> {
        let mut known = self.known();
        if let Some(session) = known.get(name) {
            return Arc::clone(session);
        }
        let session = Arc::new(make());
        known.insert(session.name(), Arc::clone(&session));
        session
    }

    /// Takes a session in; one of the same name is replaced.
    pub(crate) fn add(&self, session: Session) -> Arc<Session> {
        let session = Arc::new(session);
        self.known().insert(session.name(), Arc::clone(&session));
        session
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<Session>> {
        self.known().get(name).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        self.known().values().cloned().collect()
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Session>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_seconds(1_790_000_000 + minute * 60)
    }

    fn session() -> Session {
        let run = RunId::new("testrun000");
        let setup = SessionSetup {
            name: "one".into(),
            session: run.session(1),
            run,
            project: String::new(),
            policy: RetryPolicy::default(),
            budget: None,
            spent: 0.0,
            asks: true,
            agent: None,
        };
        Session::new(setup, WatchLimits::default(), at(0))
    }

    fn answered(session: &Session, minute: i64) {
        ended(session, minute, CallOutcome::Answered);
    }

    fn ended(session: &Session, minute: i64, outcome: CallOutcome) {
        session.ended(LastCall {
            at: at(minute),
            outcome,
            kind: None,
            finish: None,
            is_empty: false,
            has_tools: true,
        });
    }

    /// How many minutes calls have failed without an answer, with one that failed just now.
    fn failing(session: &Session, began: i64, now: i64) -> u64 {
        let failing = session.failing(at(began), at(now));
        let mut history = unstuck_core::decision::History::new(failing.since);
        history.gaps = failing.idle;
        history.without_progress(at(now)).as_secs() / 60
    }

    /// However the calls are cut up, one clock runs until one is answered; but not while there is none.
    #[test]
    fn calls_that_fail_one_after_the_other_share_one_clock() {
        let session = session();
        assert_eq!(failing(&session, 0, 7), 7);
        assert_eq!(failing(&session, 8, 14), 14);
        assert_eq!(failing(&session, 3, 15), 15);
        session.begin_anew();
        // Nobody asked for nine minutes.
        assert_eq!(failing(&session, 24, 30), 21);
        // Nor was there a network for four.
        session.was_offline(at(30), Duration::from_secs(240));
        assert_eq!(failing(&session, 24, 36), 23);
        answered(&session, 37);
        assert_eq!(failing(&session, 38, 39), 1);
    }

    /// Whoever was told to stop and asks again later has a new time; a little later it has not.
    #[test]
    fn whoever_was_told_to_stop_has_a_new_time_later() {
        let session = session();
        assert_eq!(failing(&session, 0, 30), 30);
        session.told_to_stop();
        assert_eq!(failing(&session, 31, 31), 31);
        session.told_to_stop();
        assert_eq!(failing(&session, 40, 40), 0);
        session.told_to_stop();
        session.begin_anew();
        assert_eq!(failing(&session, 41, 41), 0);
    }

    /// A new attempt of the same agent goes on counting.
    #[test]
    fn answers_that_break_off_are_counted_until_one_is_whole() {
        let session = session();
        ended(&session, 0, CallOutcome::Cut);
        session.begin_anew();
        ended(&session, 1, CallOutcome::Failed);
        ended(&session, 2, CallOutcome::Cut);
        assert_eq!(session.broken_streams(), 2);
        answered(&session, 3);
        assert_eq!(session.broken_streams(), 0);
    }

    #[test]
    fn one_request_at_a_time_may_be_a_try_ahead() {
        let session = session();
        assert!(session.may_be_ahead(1) && session.may_be_ahead(1));
        assert!(!session.may_be_ahead(2));
        session.request_ended(2);
        assert!(!session.may_be_ahead(2));
        session.request_ended(1);
        assert!(session.may_be_ahead(2));
        answered(&session, 1);
        assert!(session.may_be_ahead(3));
    }
}
