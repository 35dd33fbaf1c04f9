//! What is done about a try that failed: the core decides, and what it decides is carried out here.

use std::sync::Arc;
use std::time::Duration;

use hyper::http::response::Parts;
use tokio::time::Instant;
use unstuck_core::decision::{
    Attempt, Capabilities, Capability, Changed, Chosen, Decision, ModelUse, Situation, decide,
};
use unstuck_core::event::{CallFailed, ModelEscalated, PassedOver};
use unstuck_core::traffic::Try;
use unstuck_core::{Diagnosis, Event, Kind, Level, Timestamp};

use super::Call;
use super::account::Account;
use super::broken::Broken;
use super::target::Target;
use super::tries::Tries;
use crate::clock;
use crate::ledger::Noticed;

/// What is done next.
pub(crate) enum Next {
    /// Another try, after a wait.
    Again(Duration),
    /// The client is told.
    GiveUp(GivenUp),
}

/// Why the client is told.
pub(crate) struct GivenUp {
    pub(crate) diagnosis: Diagnosis,
    pub(crate) reason: String,
}

impl Call {
    /// Finds out what failed, decides what to do, and writes both down.
    pub(super) fn after(
        &self,
        account: &mut Account,
        tries: &mut Tries,
        broken: &Broken,
        head: Option<&Parts>,
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
        account.record.kind = Some(diagnosis.kind);
        let word = should_retry(broken);
        if word == Some(true) && diagnosis.level == Some(Level::Alternative) {
            diagnosis.level = Some(Level::Same);
        }
        self.count_own_retries(tries, diagnosis.kind, now);
        let Some(mut decision) = self.decision(tries, &diagnosis, now) else {
            let reason = "nothing is known about such failures".to_owned();
            return Next::GiveUp(GivenUp { diagnosis, reason });
        };
        let refused = word == Some(false);
        let (chosen, passed_over) = self.chosen(tries, &diagnosis, &decision, refused);
        self.tell_passed_over(&passed_over);
        if let Way::GiveUp(Some(but)) = chosen {
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
        };
        self.shared
            .ledger
            .event(&self.session, now, Event::from(Box::new(event)));
        self.take(tries, chosen, &diagnosis, decision, now)
    }

    /// The tries that a client has made by itself count.
    fn count_own_retries(&self, tries: &mut Tries, kind: Kind, now: Timestamp) {
        if tries.number > 1 {
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
            });
        }
    }

    fn decision(&self, tries: &Tries, diagnosis: &Diagnosis, now: Timestamp) -> Option<Decision> {
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
    ) -> (Way, Vec<PassedOver>) {
        let mut passed_over = Vec::new();
        let is_late = self.goes_at().is_some_and(|gone| gone <= Instant::now());
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
                let instead = if is_long { instead() } else { None };
                instead.unwrap_or(match *delay >= self.left() {
                    true => Way::GiveUp(Some("But the client does not wait that long.")),
                    false => Way::Again(*delay),
                })
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
                });
            }
            Way::Again(wait) => {
                let is_told = diagnosis.retry_after.is_some()
                    && matches!(diagnosis.kind, Kind::RateLimit | Kind::RateLimitTimed);
                tries.attempt = if is_told { Try::AsTold } else { Try::Again };
                wait
            }
            Way::Instead(target) => {
                // Whoever stands in has not been asked yet.
                tries.attempt = Try::First;
                tries.target = target;
                Duration::ZERO
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
                reason: decision.reason,
                until: now.after(wait),
            },
        );
        Next::Again(wait)
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
    Model(String, String, Duration),
    /// And what is to be said beside the decision, where that would have gone on.
    GiveUp(Option<&'static str>),
}

/// What the upstream itself says about trying again.
fn should_retry(broken: &Broken) -> Option<bool> {
    match broken.failure.headers.get("x-should-retry") {
        Some("true") => Some(true),
        Some("false") => Some(false),
        _ => None,
    }
}
