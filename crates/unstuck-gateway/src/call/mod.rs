//! One call of a client: asked for, tried until it works or nothing helps, and answered.

mod account;
mod alive;
mod asking;
mod attempt;
mod broken;
mod correction;
mod decided;
mod give_up;
mod leave;
mod purse;
mod relay;
mod rest;
mod silence;
mod target;
mod tries;
mod trouble;
mod unfit;

pub(crate) use tries::Unfinished;
pub(crate) use trouble::Told;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CONTENT_LENGTH, HeaderValue, USER_AGENT};
use hyper::http::response::Parts;
use hyper::{HeaderMap, Method, Response};
use tokio::time::Instant;
use unstuck_core::agent::{Agent, Agents, OwnRetries};
use unstuck_core::decision::{Tokens, WaitFor};
use unstuck_core::diagnosis::WaitSource;
use unstuck_core::event::{CallHeld, CallOutcome, CallRecord, CallResumed, PassedOver};
use unstuck_core::traffic::{Ask, Held, Limits};
use unstuck_core::{Diagnosis, Kind, Layer, Timestamp};

use self::account::Account;
use self::attempt::{Opened, Tried, Trying, Whole};
use self::broken::{Broken, readable};
use self::decided::{Next, Pause};
use self::purse::Purse;
use self::relay::Relay;
use self::rest::Rested;
use self::silence::Silence;
use self::target::{Choice, Needs, Stand};
use self::tries::Tries;
use crate::answer::Answer;
use crate::clock;
use crate::lanes::{LaneKey, Patience, Permit, Waits};
use crate::ledger::Noticed;
use crate::protocol::{Asked, Endpoint, Protocol, with_model};
use crate::session::Session;
use crate::settings::StreamMode;
use crate::shared::Shared;
use crate::upstream::{Sending, own_headers};
use crate::watch::Talk;

/// An answer is expected to have no more tokens than this: clients allow far more than they get.
const USUAL_OUTPUT: u64 = 1000;

/// No upstream rests for longer by itself.
const REST: Duration = Duration::from_secs(60);
/// Nobody is held for longer.
const LONGEST_HOLD: Duration = Duration::from_secs(7 * 24 * 3600);

/// What a client sent, all of it.
pub(crate) struct Call {
    pub(crate) shared: Arc<Shared>,
    pub(crate) session: Arc<Session>,
    pub(crate) id: String,
    pub(crate) protocol: Protocol,
    pub(crate) endpoint: Endpoint,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) body: Bytes,
    pub(crate) asked: Asked,
    pub(crate) started: Instant,
    /// Until when such clients can be held, waits between tries included.
    pub(crate) held_until: Instant,
    /// When the client goes away unless it hears something, where it says so.
    pub(crate) gone_at: Option<Instant>,
    /// Which conversation of the session it belongs to.
    pub(crate) talk: Talk,
    /// How often the client has tried by itself.
    pub(crate) own_retries: u32,
    /// How its client would go about a failure by itself.
    pub(crate) own: OwnRetries,
    /// Whether it was written down that it waits for its turn.
    pub(crate) was_held: Arc<AtomicBool>,
    /// Whether it was written down that it waits, and not yet that it is sent.
    pub(crate) is_waiting: AtomicBool,
}

impl Call {
    /// Tries until it works or nothing helps, and answers.
    pub(crate) async fn run(mut self: Box<Self>) -> Response<Answer> {
        let mut account = self.account();
        if let Some(id) = self.named_conversation() {
            self.session.named_conversation(id);
        }
        if let Some(told) = self.refusal() {
            account.refused(told.status.as_u16());
            return self.say(&account, &told);
        }
        if let Some(told) = self.held_back().await {
            account.refused(told.status.as_u16());
            return self.say(&account, &told);
        }
        self.take_note();
        let needs_model = self.session.model().or_else(|| self.asked.model.clone());
        let first = self.choice().first(&self.needs(needs_model.as_deref()));
        let Some(target) = first else {
            return self.nobody(&mut account);
        };
        let mut tries = Tries::new(target, needs_model, clock::at());
        if let Some(told) = self.await_due(&mut account, &mut tries).await {
            return told;
        }
        loop {
            if !self.has_turn(&tries) && self.instead(&mut tries).is_ok() {
                continue;
            }
            let waited = Instant::now();
            let entered = self.enter(&tries).await;
            account.waited(waited.elapsed());
            let permit = match entered {
                Ok(permit) => permit,
                Err(waits) => match self.instead(&mut tries) {
                    Ok(()) => continue,
                    Err(passed) => return self.held(&mut account, &tries, waits, &passed),
                },
            };
            account.permit = Some(permit);
            tries.number += 1;
            if tries.at_target == 0 {
                tries.was_failing = self.shared.health.of(&self.url(&tries)).is_failing();
            }
            tries.at_target += 1;
            self.note(&mut account, &tries);
            self.tell_resumed();
            let tried = self.attempt(&tries).await;
            let (broken, head) = match tried {
                Tried::Whole(whole) => {
                    if self.corrects(&mut account, &mut tries, &whole.reading) {
                        continue;
                    }
                    return self.whole(&mut account, *whole);
                }
                Tried::Opened(opened) => return self.opened(account, *opened),
                Tried::Broken(broken, head) => (broken, head),
            };
            let network = self.network(&tries, &broken, head.is_some()).await;
            let next = self.after(&mut account, &mut tries, &broken, head.as_ref(), network);
            match next {
                Next::Again(wait, diagnosis) => {
                    let start = Instant::now();
                    let kind = diagnosis.kind;
                    let rested = self
                        .rest_for(&mut tries, wait.wait_for, wait.delay, kind)
                        .await;
                    account.waited(start.elapsed());
                    if rested == Rested::TimeUp {
                        let left = wait.left(start.elapsed());
                        let broken = Some(*broken);
                        return self.come_back(&mut account, &tries, broken, *diagnosis, left);
                    }
                }
                Next::ComeBack(wait, diagnosis) => {
                    let broken = Some(*broken);
                    return self.come_back(&mut account, &tries, broken, *diagnosis, wait);
                }
                Next::GiveUp(given) => return self.give_up(&mut account, *broken, given),
            }
        }
    }

    /// Waits until the first try is due, where earlier requests failed; what the client is told where that takes too long.
    async fn await_due(
        &self,
        account: &mut Account,
        tries: &mut Tries,
    ) -> Option<Response<Answer>> {
        match self.take_up(account, tries).await {
            Some(told) => Some(told),
            None => self.await_probe(account, tries).await,
        }
    }

    /// Goes on where the same request was left when its client was told to come back; what it is told where that takes too
    /// long once more.
    async fn take_up(&self, account: &mut Account, tries: &mut Tries) -> Option<Response<Answer>> {
        let unfinished = self.session.take_up(self.request_hash())?;
        tries.go_on(&unfinished);
        self.note(account, tries);
        account.record.kind = Some(unfinished.diagnosis.kind);
        let wait = Pause {
            delay: unfinished.next.since(clock::at()),
            wait_for: unfinished.wait_for,
        };
        let start = Instant::now();
        let diagnosis = unfinished.diagnosis;
        if !wait.delay.is_zero() {
            self.tell_held(unfinished.next, diagnosis.kind, WaitSource::Guess);
        }
        let rested = self.rest_for(tries, wait.wait_for, wait.delay, diagnosis.kind);
        let rested = rested.await;
        account.waited(start.elapsed());
        let is_over = rested == Rested::TimeUp;
        is_over.then(|| {
            let left = wait.left(start.elapsed());
            self.come_back(account, tries, None, diagnosis, left)
        })
    }

    /// Where answers of the session have broken off more often than its client would have tried by itself, the request waits
    /// for a turn to probe like every other that nobody would make without us; what it is told where that takes too long.
    async fn await_probe(&self, account: &mut Account, tries: &Tries) -> Option<Response<Answer>> {
        let broken = self.session.broken_streams();
        let is_patient = self.session.policy().give_up_after.is_some();
        if !is_patient || tries.before > 0 || self.own.asks_after_broken(broken, false) {
            return None;
        }
        let is_ahead = self.session.may_be_ahead(self.request_hash());
        if self.own.asks_after_broken(broken, is_ahead) {
            return None;
        }
        let start = Instant::now();
        let rested = self.rest(tries, Duration::ZERO, Kind::NetworkError, true);
        let rested = rested.await;
        account.waited(start.elapsed());
        (rested == Rested::TimeUp).then(|| {
            let pause = Pause {
                delay: Duration::ZERO,
                wait_for: WaitFor::Retry,
            };
            let sentence = "answers of this session keep breaking off";
            let diagnosis =
                Diagnosis::observed(Kind::NetworkError, Layer::Api, "broken_streams", sentence);
            self.come_back(account, tries, None, diagnosis, pause)
        })
    }

    /// Tells requests apart by what they ask for.
    fn request_hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.path, &self.body).hash(&mut hasher);
        hasher.finish()
    }

    async fn attempt(&self, tries: &Tries) -> Tried {
        let upstream = &self.shared.settings.upstreams[tries.target.upstream];
        let (path, body) = self.request_for(tries);
        let sending = Sending {
            method: &self.method,
            headers: &self.headers,
            path: &path,
            query: self.query.as_deref(),
            is_read: true,
        };
        let silence = Silence::after(&self.asked, &self.body, upstream.is_nearby);
        let limits = &self.shared.settings.limits;
        let before_fallback = silence.before_fallback(limits);
        let before_fallback =
            before_fallback.filter(|_| self.other(tries, Kind::Timeout).target.is_some());
        let trying = Trying {
            sender: &self.shared.sender,
            protocol: self.protocol,
            endpoint: self.endpoint,
            stream: self.asked.stream,
            keeps_text: self.asked.wants_json || self.shared.settings.retry_bad_output,
            buffered: upstream.stream.unwrap_or(self.shared.settings.stream)
                == StreamMode::Buffered,
            head: before_fallback.unwrap_or_else(|| silence.longest(limits)),
            first_token: before_fallback,
            limits,
        };
        match sending.whole(upstream, body) {
            Some(request) => self.in_time(pin!(trying.make(request))).await,
            None => Tried::Broken(
                Box::new(Broken::damaged(self.protocol, "the address is none")),
                None,
            ),
        }
    }

    /// A try as long as the client waits for it: what comes later reaches nobody, and silence says less than an error.
    async fn in_time(&self, trying: Pin<&mut impl Future<Output = Tried>>) -> Tried {
        let Some(gone) = self.goes_at() else {
            return trying.await;
        };
        let tried = tokio::time::timeout_at(gone, trying).await;
        tried.unwrap_or_else(|_| {
            let limit = gone.saturating_duration_since(self.started);
            let silent = Broken::silent(self.protocol, "no answer", limit);
            Tried::Broken(Box::new(silent), None)
        })
    }

    /// The bytes of the client, unless it is another model that is asked.
    fn request_for(&self, tries: &Tries) -> (String, Bytes) {
        let path = || self.path.clone();
        let body = tries.corrected.as_ref().unwrap_or(&self.body);
        match &tries.target.model {
            Some(model) if self.asked.model.as_ref() != Some(model) => {
                let changed = with_model(self.endpoint, &self.path, body, model);
                (
                    changed.path.unwrap_or_else(path),
                    changed.body.unwrap_or_else(|| body.clone()),
                )
            }
            _ => (path(), body.clone()),
        }
    }

    async fn enter(&self, tries: &Tries) -> Result<Permit, Waits> {
        let upstream = &self.shared.settings.upstreams[tries.target.upstream];
        let key = match &upstream.key {
            Some(key) => key.reveal().as_bytes(),
            None => self.shared.client_key(&self.headers),
        };
        let model = tries.target.model.as_deref().unwrap_or_default();
        let lane = self
            .shared
            .lanes
            .get(&LaneKey::new(&upstream.name, key, model));
        let ask = Ask {
            attempt: tries.attempt,
            tokens: self.asked.prompt_tokens,
        };
        let other = self.other(tries, Kind::ServerOverloaded);
        let has_other = other.target.is_some();
        let limits = &self.shared.settings.limits;
        let most = match has_other {
            true => self.left().min(limits.fallback_after),
            // An upstream that rests after it has failed is waited for; only stated limits last longer.
            false => self.left().min(limits.hold.max(REST)),
        };
        let patience = Patience { most, has_other };
        let tell = |waits: Waits| {
            let (kind, source) = match waits.why {
                Held::RateLimit => (Kind::RateLimitTimed, WaitSource::Header),
                Held::CoolDown => (Kind::RateLimit, WaitSource::Header),
                _ => (Kind::ServerOverloaded, WaitSource::Guess),
            };
            self.tell_held(waits.until, kind, source);
        };
        lane.enter(&self.session.name(), ask, patience, tell).await
    }

    /// Whether whoever is asked may be asked before somebody else: one that fails is only now and then.
    fn has_turn(&self, tries: &Tries) -> bool {
        let is_first = tries.at_target == 0 && tries.rounds == 0 && tries.before == 0;
        if !is_first || !self.choice().has_more(&tries.target, self.protocol) {
            return true;
        }
        self.shared
            .health
            .of(&self.url(tries))
            .take_turn(clock::at())
    }

    /// Writes down that the call is sent, where it was written down that it waits.
    fn tell_resumed(&self) {
        if !self.is_waiting.swap(false, Ordering::Relaxed) {
            return;
        }
        let resumed = CallResumed {
            session: self.session.setup().session.clone(),
            call: self.id.clone(),
        };
        let ledger = &self.shared.ledger;
        ledger.event(&self.session, clock::at(), resumed.into());
    }

    /// Writes down that the call waits for its turn, so that everybody can see it.
    pub(super) fn tell_held(&self, until: Timestamp, kind: Kind, source: WaitSource) {
        self.was_held.store(true, Ordering::Relaxed);
        self.is_waiting.store(true, Ordering::Relaxed);
        let held = CallHeld {
            session: self.session.setup().session.clone(),
            call: self.id.clone(),
            until,
            kind,
            source,
        };
        let ledger = &self.shared.ledger;
        ledger.event(&self.session, clock::at(), held.into());
    }

    /// Goes over to whoever stands in for an upstream that cannot be asked in time; where nobody does, who cannot.
    fn instead(&self, tries: &mut Tries) -> Result<(), Vec<PassedOver>> {
        let stand = self.other(tries, Kind::ServerOverloaded);
        self.tell_passed_over(&stand.passed_over);
        tries.turn_to(stand.target.ok_or(stand.passed_over)?);
        Ok(())
    }

    /// Who stands in for the one who is asked, after a failure of that kind.
    fn other(&self, tries: &Tries, kind: Kind) -> Stand {
        let choice = self.choice();
        if !choice.has_more(&tries.target, self.protocol) {
            return Stand::default();
        }
        let needs = self.needs(tries.model.as_deref());
        choice.after(&tries.target, &needs, &self.purse(tries), kind)
    }

    /// What may still be spent on the request.
    fn purse(&self, tries: &Tries) -> Purse<'_> {
        Purse {
            left: self.shared.left(&self.session),
            policy: self.session.policy(),
            before: tries.history.extra(),
            expected: self.expected(),
            catalog: self.shared.knowledge.catalog(),
        }
    }

    /// How many tokens the request and its answer are expected to have.
    fn expected(&self) -> Tokens {
        let most = self.asked.max_output.unwrap_or(USUAL_OUTPUT);
        Tokens {
            input: self.asked.prompt_tokens,
            cached: 0,
            output: most.min(USUAL_OUTPUT),
            requests: 1,
        }
    }

    /// Tells who could have been asked instead and was not.
    fn tell_passed_over(&self, passed: &[PassedOver]) {
        for one in passed {
            let what = Noticed::PassedOver(one.clone());
            self.shared.crier.tell(&self.session, what);
        }
    }

    fn whole(&self, account: &mut Account, whole: Whole) -> Response<Answer> {
        let Whole {
            head,
            body,
            reading,
        } = whole;
        self.is_up(account);
        account.limits = self.limits(&head);
        account.record.status = head.status.as_u16();
        account.sent(body.len());
        account.close(&reading);
        let head = self.told(head, &account.record);
        Response::from_parts(head, Answer::Whole(Some(body)))
    }

    fn opened(&self, mut account: Box<Account>, opened: Opened) -> Response<Answer> {
        self.is_up(&account);
        account.limits = self.limits(&opened.head);
        account.record.status = opened.head.status.as_u16();
        account.record.stream = true;
        if let Some(permit) = &account.permit {
            permit.saw(&account.limits);
        }
        account.head = Some(opened.head.clone());
        let mut head = self.told(opened.head.clone(), &account.record);
        // How long it becomes is known at its end: an error of ours may follow.
        head.headers.remove(CONTENT_LENGTH);
        let relay = Relay::new(
            opened,
            self.protocol,
            self.shared.settings.limits.stall,
            self.own.stream_error,
            account,
        );
        Response::from_parts(head, Answer::Made(Box::pin(relay)))
    }

    /// Whoever was asked has answered: those who wait for it hear of it if it had failed.
    fn is_up(&self, account: &Account) {
        let mut upstreams = self.shared.settings.upstreams.iter();
        let Some(upstream) = upstreams.find(|one| one.name == account.record.upstream) else {
            return;
        };
        let (url, now) = (upstream.base.to_string(), clock::at());
        if self.shared.health.of(&url).answered(now) {
            self.shared.ledger.recovered(&url, now);
        }
    }

    /// The head of an answer as the client gets it.
    fn told(&self, mut head: Parts, record: &CallRecord) -> Parts {
        own_headers(&mut head.headers);
        head.version = hyper::Version::HTTP_11;
        head.extensions = Default::default();
        self.sign(&mut head.headers, record);
        head
    }

    /// Adds what the gateway did.
    fn sign(&self, headers: &mut HeaderMap, record: &CallRecord) {
        headers.insert("x-unstuck-attempts", HeaderValue::from(record.attempts));
        let text = |text: &str| HeaderValue::from_str(text).ok();
        if let Some(name) = text(&self.session.name()) {
            headers.insert("x-unstuck-session", name);
        }
        if let Some(model) = record.model.as_deref().and_then(text) {
            headers.insert("x-unstuck-model", model);
        }
    }

    fn limits(&self, head: &Parts) -> Limits {
        Limits::read(
            self.protocol.name(),
            &readable(&head.headers),
            &clock::now(),
        )
    }

    fn note(&self, account: &mut Account, tries: &Tries) {
        let upstream = &self.shared.settings.upstreams[tries.target.upstream];
        account.record.attempts = tries.number;
        account.record.upstream.clone_from(&upstream.name);
        account.record.model.clone_from(&tries.target.model);
    }

    fn choice(&self) -> Choice<'_> {
        Choice {
            upstreams: &self.shared.settings.upstreams,
            catalog: self.shared.knowledge.catalog(),
            route_around_refusals: self.shared.settings.route_around_refusals,
        }
    }

    fn needs<'a>(&'a self, model: Option<&'a str>) -> Needs<'a> {
        Needs {
            protocol: self.protocol,
            asked: &self.asked,
            model,
        }
    }

    /// The agent's own id of the conversation that the request belongs to, where it names one.
    fn named_conversation(&self) -> Option<&str> {
        let header = self.agent()?.file().session.header.as_deref()?;
        self.headers.get(header)?.to_str().ok()
    }

    /// The agent that the client says it is.
    fn agent(&self) -> Option<&'static Agent> {
        agent_of(&self.session, &self.headers)
    }

    /// How long the client still waits.
    fn left(&self) -> Duration {
        self.deadline().saturating_duration_since(Instant::now())
    }

    /// When the client no longer waits. Signs of life keep one that would go away for as long as the policy goes on.
    fn deadline(&self) -> Instant {
        if self.sign_of_life().is_some() && self.session.policy().give_up_after.is_some() {
            return self.started + LONGEST_HOLD;
        }
        self.goes_at()
            .map_or(self.held_until, |gone| gone.min(self.held_until))
    }

    /// When a client goes away that says so and gets no signs of life.
    fn goes_at(&self) -> Option<Instant> {
        self.gone_at.filter(|_| self.sign_of_life().is_none())
    }

    fn account(&self) -> Box<Account> {
        let setup = self.session.setup();
        Box::new(Account {
            shared: Arc::clone(&self.shared),
            session: Arc::clone(&self.session),
            talk: self.talk,
            started: self.started,
            head: None,
            permit: None,
            limits: Limits::default(),
            wasted: None,
            has_tools: self.asked.tools,
            request: None,
            was_held: Arc::clone(&self.was_held),
            answer_end: None,
            is_closed: false,
            record: CallRecord {
                call: self.id.clone(),
                run: setup.run.clone(),
                session: setup.session.clone(),
                at: clock::at(),
                protocol: self.protocol.name().to_owned(),
                endpoint: self.endpoint.name().to_owned(),
                upstream: String::new(),
                asked_model: self.asked.model.clone(),
                model: None,
                stream: self.asked.stream,
                outcome: CallOutcome::Answered,
                status: 0,
                kind: None,
                attempts: 0,
                waited_ms: 0,
                first_byte_ms: 0,
                duration_ms: 0,
                sent_bytes: 0,
                tokens: None,
                cost_usd: None,
            },
        })
    }
}

/// The agent that a client is known to be, or says that it is.
pub(crate) fn agent_of(session: &Session, headers: &HeaderMap) -> Option<&'static Agent> {
    let agents = Agents::built_in();
    let known = session.setup().agent.as_deref();
    let said = || {
        let client = headers.get(USER_AGENT)?.to_str().ok()?;
        agents.of_client(client)
    };
    known.and_then(|id| agents.get(id)).or_else(said)
}

/// The version that a client says it has: what follows the slash in its first word.
pub(crate) fn version_of(headers: &HeaderMap) -> Option<&str> {
    let client = headers.get(USER_AGENT)?.to_str().ok()?;
    let (_, version) = client.split_whitespace().next()?.split_once('/')?;
    version.split('/').next()
}
