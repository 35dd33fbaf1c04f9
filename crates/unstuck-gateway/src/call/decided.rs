//! What is done about a try that failed: the core decides, and what it decides is carried out here.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::http::response::Parts;
use tokio::time::Instant;
use unstuck_core::decision::{
    Attempt, Breaker, Capabilities, Capability, Changed, Chosen, Decision, ModelUse, Network,
    Situation, WaitFor, decide,
};
use unstuck_core::event::{CallFailed, ModelEscalated, PassedOver};
use unstuck_core::traffic::Try;
use unstuck_core::{Category, Diagnosis, Event, Kind, Level, Timestamp};

use super::Call;
use super::account::Account;
use super::broken::Broken;
use super::target::Target;
use super::tries::Tries;
use crate::clock;
use crate::ledger::Noticed;

/// So often an upstream is asked before another one stands in for it.
const TRIES_BEFORE_FALLBACK: u32 = 3;

/// What is done next.
pub(crate) enum Next {
    /// Another try, after a wait.
    Again(Pause, Box<Diagnosis>),
    /// The client is told.
    GiveUp(GivenUp),
    /// The client is told to come back: the next try is due after a wait.
    ComeBack(Pause, Box<Diagnosis>),
}

/// A wait before the next try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pause {
    pub(crate) delay: Duration,
    pub(crate) wait_for: WaitFor,
}

impl Pause {
    /// What is left of it when so much was waited.
    pub(crate) fn left(self, waited: Duration) -> Self {
        Self {
            delay: self.delay.saturating_sub(waited),
            ..self
        }
    }
}

/// Why the client is told.
pub(crate) struct GivenUp {
    pub(crate) diagnosis: Diagnosis,
    pub(crate) reason: String,
    /// After what time the client is to come back; none where it is not.
    pub(crate) comes_back: Option<Duration>,
}

impl Call {
    /// Finds out what failed, decides what to do, and writes both down.
    pub(super) fn after(
        &self,
        account: &mut Account,
        tries: &mut Tries,
        broken: &Broken,
        head: Option<&Parts>,
        network: Network,
    ) -> Next {
        let now = clock::at();
        let mut diagnosis = self.shared.diagnose(&broken.failure);
        let seen = match (&broken.answer, head) {
            (Some((head, _)), _) => self.limits(head),
            (None, Some(head)) => self.limits(head),
            (None, None) => Default::default(),
        };
        if let Some(permit) = account.permit.take() {
            permit.failed(diagnosis.kind, diagnosis.retry_after, &seen);
        }
        if Breaker::counts(diagnosis.kind) {
            self.shared.health.of(&self.url(tries)).failed(now);
        }
        account.record.kind = Some(diagnosis.kind);
        account.request = Some(self.request_hash());
        let word = should_retry(broken);
        if word == Some(true) && diagnosis.level == Some(Level::Alternative) {
            diagnosis.level = Some(Level::Same);
        }
        self.count_own_retries(tries, diagnosis.kind, now);
        self.note_progress(account, tries, diagnosis.kind, now);
        let Some(mut decision) = self.decision(tries, &diagnosis, now, network) else {
            let reason = "nothing is known about such failures".to_owned();
            return Next::GiveUp(GivenUp {
                diagnosis,
                reason,
                comes_back: None,
            });
        };
        let refused = word == Some(false);
        let (chosen, passed_over) = self.chosen(tries, &diagnosis, &decision, refused, broken);
        self.tell_passed_over(&passed_over);
        // What is written down is how long is waited here, so that everybody can see it.
        if let (Some(wait), Chosen::Retry { delay, until }) = (chosen.wait(), &mut decision.action)
        {
            *delay = wait;
            *until = now.after(wait);
        }
        self.waits_by(&decision, now);
        let but = match chosen {
            Way::GiveUp(but) => but,
            Way::TooLong(wait) if self.comes_back_after(wait) => {
                Some("But the client does not wait that long, and is told to come back.")
            }
            Way::Late(_) => {
                Some("But the client does not wait any longer, and is told to come back.")
            }
            Way::TooLong(_) => Some("But the client does not wait that long."),
            Way::Again(_) | Way::Instead(_) | Way::Round(..) | Way::Model(..) => None,
        };
        if let Some(but) = but {
            decision.reason = format!("{} {but}", decision.reason);
        }
        let fallback = match &chosen {
            Way::Instead(target) => {
                Some(self.shared.settings.upstreams[target.upstream].name.clone())
            }
            _ => None,
        };
        let event = CallFailed {
            session: self.session.setup().session.clone(),
            call: self.id.clone(),
            number: tries.number,
            upstream: account.record.upstream.clone(),
            model: tries.target.model.clone(),
            status: broken.failure.status,
            diagnosis: diagnosis.clone(),
            decision: decision.clone(),
            fallback,
            passed_over,
            policy_hash: self.session.policy().fingerprint(),
            conversation: self.session.conversation(),
        };
        self.shared
            .ledger
            .event(&self.session, now, Event::from(Box::new(event)));
        self.take(tries, chosen, &diagnosis, decision, now)
    }

    /// Takes the time without progress from the session, however its calls are cut up: each answer of one is progress for all.
    fn note_progress(&self, account: &Account, tries: &mut Tries, kind: Kind, now: Timestamp) {
        if kind.category() == Category::Transient {
            let failing = self.session.failing(account.record.at, now);
            tries.history.started = failing.since;
            tries.history.gaps = failing.idle;
        }
        if let Some(at) = self.session.last_success() {
            tries.history.progressed(at);
        }
    }

    /// What is decided says whether the call waits, once it is written down.
    pub(super) fn waits_by(&self, decision: &Decision, now: Timestamp) {
        let waits = decision.until().is_some_and(|until| until > now);
        self.is_waiting.store(waits, Ordering::Relaxed);
    }

    /// The tries that a client has made by itself count.
    fn count_own_retries(&self, tries: &mut Tries, kind: Kind, now: Timestamp) {
        if tries.number > 1 || tries.before > 0 {
            return;
        }
        for _ in 0..self.own_retries.min(100) {
            tries.history.record(Attempt {
                kind,
                level: Level::Same,
                strategy: None,
                at: now,
                delay: Duration::ZERO,
                stated: false,
                cost: 0.0,
                extra: 0.0,
                timed: false,
                offline: false,
            });
        }
    }

    fn decision(
        &self,
        tries: &Tries,
        diagnosis: &Diagnosis,
        now: Timestamp,
        network: Network,
    ) -> Option<Decision> {
        let playbook = self.shared.knowledge.playbook();
        let policy = self.session.policy();
        let known = playbook.kind(diagnosis.kind)?;
        let mut situation =
            Situation::new(&policy, &tries.history, diagnosis, known, playbook, now);
        situation.can = Capabilities::NONE.with(Capability::Model);
        situation.model = tries.model.as_deref().map(|id| ModelUse {
            id,
            catalog: self.shared.knowledge.catalog(),
            expected: self.expected(),
        });
        situation.caps.elapsed = None;
        situation.network = network;
        // Calls of agents wait for the network for as long as agents do.
        situation.parks = network == Network::Down;
        Some(decide(&situation, self.shared.draw()))
    }

    /// What comes of a decision here: a wait must end while the client still waits, and somebody else may stand in.
    /// And who could have been asked and was not.
    fn chosen(
        &self,
        tries: &Tries,
        diagnosis: &Diagnosis,
        decision: &Decision,
        refused: bool,
        broken: &Broken,
    ) -> (Way, Vec<PassedOver>) {
        let mut passed_over = Vec::new();
        let is_late = self.goes_at().is_some_and(|gone| gone <= Instant::now());
        if is_late
            && broken.is_silent()
            && matches!(decision.action, Chosen::Retry { .. })
            && self.comes_back_after(Duration::ZERO)
        {
            let stand = self.other(tries, diagnosis.kind);
            if let Some(target) = stand.target {
                return (Way::Late(target), stand.passed_over);
            }
        }
        let mut instead = || {
            // Nobody would hear the answer.
            if is_late {
                return None;
            }
            let stand = self.other(tries, diagnosis.kind);
            passed_over.extend(stand.passed_over);
            stand.target.map(Way::Instead)
        };
        let limits = &self.shared.settings.limits;
        let way = match &decision.action {
            Chosen::Retry { .. } if refused => Way::GiveUp(Some("But the API says not to.")),
            Chosen::Retry { delay, .. } => {
                let is_long = *delay > limits.fallback_after || *delay >= self.left();
                let is_due = is_long || broken.is_silent() || self.has_had_enough(tries, *delay);
                let instead = if is_due { instead() } else { None };
                instead.unwrap_or_else(|| self.again(tries, diagnosis, decision, *delay))
            }
            Chosen::Change { changes, delay, .. } if *delay < self.left() => {
                match changes.iter().find_map(Changed::model) {
                    Some((from, to)) => match self.pays(tries, to) {
                        Ok(()) => Way::Model(from.to_owned(), to.to_owned(), *delay),
                        Err(dear) => {
                            let way = instead();
                            passed_over.insert(0, dear);
                            way.unwrap_or(Way::GiveUp(None))
                        }
                    },
                    None => instead().unwrap_or(Way::GiveUp(None)),
                }
            }
            Chosen::Stop { .. } => Way::GiveUp(None),
            Chosen::Change { .. } | Chosen::Ask { .. } => instead().unwrap_or(Way::GiveUp(None)),
        };
        (way, passed_over)
    }

    /// Whether whoever is asked has been given its chance, so that another one is asked before it is asked again.
    fn has_had_enough(&self, tries: &Tries, delay: Duration) -> bool {
        let most = match tries.rounds > 0 || tries.was_failing {
            true => 1,
            false => TRIES_BEFORE_FALLBACK,
        };
        let spent = tries.at_target_since.elapsed() + delay;
        tries.at_target >= most || spent > self.shared.settings.limits.fallback_after
    }

    /// The same is tried again after a wait, if the client waits for that long; of several upstreams the first is asked again.
    fn again(
        &self,
        tries: &Tries,
        diagnosis: &Diagnosis,
        decision: &Decision,
        delay: Duration,
    ) -> Way {
        let wait = delay.max(self.soonest(tries));
        let is_told = diagnosis.retry_after.is_some();
        // Nobody knows when the network is back: the client is held for as long as it waits.
        let ends = decision.wait_for != WaitFor::Network;
        if is_told && delay > self.shared.settings.limits.hold.min(self.left())
            || ends && wait >= self.left()
        {
            return Way::TooLong(wait);
        }
        let first = self.choice().first(&self.needs(tries.model.as_deref()));
        match first.filter(|first| first.upstream != tries.target.upstream) {
            Some(first) => Way::Round(first, wait),
            None => Way::Again(wait),
        }
    }

    /// How long the next try must wait, so that no more are made than the client would make by itself, and one.
    fn soonest(&self, tries: &Tries) -> Duration {
        if self.session.policy().give_up_after.is_none() {
            return Duration::ZERO;
        }
        let soonest = self.own_time(tries).unwrap_or_default();
        let now = clock::at();
        // Its own waits begin when the first try has failed.
        let first = tries.history.attempts.first().map_or(now, |first| first.at);
        first.after(soonest).since(now)
    }

    /// When the next try is due at the soonest, by what the client would do by itself; none once it would have given up. Each
    /// of several calls of a session would be tried by itself; one of them may be a try ahead.
    pub(super) fn own_time(&self, tries: &Tries) -> Option<Duration> {
        let is_ahead = self.session.may_be_ahead(self.request_hash());
        self.own.soonest(tries.all() + 1, is_ahead)
    }

    /// Whether the budgets pay for another model of the upstream that is asked.
    fn pays(&self, tries: &Tries, model: &str) -> Result<(), PassedOver> {
        let upstream = &self.shared.settings.upstreams[tries.target.upstream];
        let model = upstream.model(model);
        let paid = self.purse(tries).pays(model);
        paid.map_err(|unfit| PassedOver {
            upstream: upstream.name.clone(),
            model: Some(model.to_owned()),
            why: unfit.to_string(),
        })
    }

    fn take(
        &self,
        tries: &mut Tries,
        way: Way,
        diagnosis: &Diagnosis,
        decision: Decision,
        now: Timestamp,
    ) -> Next {
        let wait = match way {
            Way::GiveUp(_) => {
                return Next::GiveUp(GivenUp {
                    diagnosis: as_tried(diagnosis, &decision),
                    reason: decision.reason,
                    comes_back: None,
                });
            }
            Way::TooLong(wait) if self.comes_back_after(wait) => {
                tries.history.attempts.extend(decision.attempted(0.0));
                let pause = Pause {
                    delay: wait,
                    wait_for: decision.wait_for,
                };
                return Next::ComeBack(pause, Box::new(diagnosis.clone()));
            }
            Way::Late(target) => {
                tries.history.attempts.extend(decision.attempted(0.0));
                tries.next_target = Some(target);
                let pause = Pause {
                    delay: Duration::ZERO,
                    wait_for: WaitFor::Retry,
                };
                return Next::ComeBack(pause, Box::new(diagnosis.clone()));
            }
            Way::TooLong(_) => {
                return Next::GiveUp(GivenUp {
                    diagnosis: as_tried(diagnosis, &decision),
                    reason: decision.reason,
                    comes_back: None,
                });
            }
            Way::Again(wait) => {
                let is_told = diagnosis.retry_after.is_some()
                    && matches!(diagnosis.kind, Kind::RateLimit | Kind::RateLimitTimed);
                tries.attempt = if is_told { Try::AsTold } else { Try::Again };
                wait
            }
            Way::Instead(target) => {
                if Breaker::counts(diagnosis.kind) {
                    let usual = self.shared.settings.limits.fallback_after;
                    let health = self.shared.health.of(&self.url(tries));
                    health.left(now, (usual / 5, usual * 2));
                }
                // Whoever stands in has not been asked yet.
                tries.attempt = Try::First;
                tries.turn_to(target);
                Duration::ZERO
            }
            Way::Round(target, wait) => {
                tries.attempt = Try::Again;
                tries.rounds += 1;
                tries.turn_to(target);
                wait
            }
            Way::Model(from, to, wait) => {
                self.moved(&decision, from, &to, now);
                let upstream = &self.shared.settings.upstreams[tries.target.upstream];
                tries.target.model = Some(upstream.model(&to).to_owned());
                tries.model = Some(to);
                wait
            }
        };
        tries.history.attempts.extend(decision.attempted(0.0));
        self.shared.crier.tell(
            &self.session,
            Noticed::Retrying {
                diagnosis: Arc::new(diagnosis.clone()),
                reason: decision.reason.clone(),
                until: now.after(wait),
            },
        );
        let pause = Pause {
            delay: wait,
            wait_for: match wait.is_zero() {
                true => WaitFor::Retry,
                false => decision.wait_for,
            },
        };
        Next::Again(pause, Box::new(diagnosis.clone()))
    }

    /// The session keeps the model for its later calls.
    fn moved(&self, decision: &Decision, from: String, to: &str, now: Timestamp) {
        self.session.moved(&from, to);
        if let Some(change) = decision.escalation() {
            let session = Some(self.session.setup().session.clone());
            let event = ModelEscalated { session, change };
            self.shared.ledger.event(&self.session, now, event.into());
        }
        let to = to.to_owned();
        self.shared
            .crier
            .tell(&self.session, Noticed::Moved { from, to });
    }
}

/// What whoever supervises the client is told: where the same was tried as often as it may be, it need not be tried again.
fn as_tried(diagnosis: &Diagnosis, decision: &Decision) -> Diagnosis {
    let mut diagnosis = diagnosis.clone();
    let is_too_long = matches!(decision.action, Chosen::Retry { .. });
    if !is_too_long && diagnosis.level == Some(Level::Same) {
        diagnosis.level = Some(Level::Alternative);
    }
    diagnosis
}

/// What is done about a failure here.
enum Way {
    Again(Duration),
    Instead(Target),
    /// All were asked in vain: the first again, after a wait.
    Round(Target, Duration),
    /// The same again, if the client waited for so long.
    TooLong(Duration),
    /// The same again, by somebody else, when the client comes back: its own time ended in silence.
    Late(Target),
    Model(String, String, Duration),
    /// And what is to be said beside the decision, where that would have gone on.
    GiveUp(Option<&'static str>),
}

impl Way {
    /// How long is waited before the next try, where there is one.
    fn wait(&self) -> Option<Duration> {
        match self {
            Self::Again(wait) | Self::Round(_, wait) | Self::TooLong(wait) => Some(*wait),
            Self::Instead(_) | Self::Late(_) => Some(Duration::ZERO),
            Self::Model(..) | Self::GiveUp(_) => None,
        }
    }
}

/// What the upstream itself says about trying again.
fn should_retry(broken: &Broken) -> Option<bool> {
    match broken.failure.headers.get("x-should-retry") {
        Some("true") => Some(true),
        Some("false") => Some(false),
        _ => None,
    }
}
