//! The event loop of a simulation, in virtual time and reproducible.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::report::Report;
use super::scenario::{AdmissionMode, Scenario, rounded};
use super::upstream::{SimulatedArrivalOutcome, SimulatedAttempt, Upstream};
use crate::admission::{
    ApiAdmissionController, ApiAdmissionRequest, ApiAttemptKind, NextAdmission, ResponseRateLimits,
    WaitQueue,
};
use crate::decision::{RetryPolicy, SeededRng};
use crate::failure::FailureKind;
use crate::time::Timestamp;

/// The share of random failures that are rate limits.
const LIMITED_BY_CHANCE: f64 = 0.17;
/// The time until a refusal arrives.
const REFUSED_AFTER: Duration = Duration::from_millis(20);

/// A timed event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A client starts a call or retries one.
    Ask(u32),
    /// The upstream finishes an attempt or refusals.
    Ended(Option<(u32, u32)>),
    /// A client receives the failure of its attempt.
    Failed(u32, u32, FailureKind, Option<Duration>),
    /// A client's attempt times out.
    TimedOut(u32, u32),
    /// The next held call may go.
    Wake,
    /// The upstream's number of slots changes.
    Places(u32),
}

#[derive(Debug, Clone, Default)]
struct Client {
    session: String,
    busy: bool,
    begun: i64,
    first_failure: Option<i64>,
    tries: u32,
    /// Identifies the attempt in flight.
    serial: u32,
    as_told: bool,
    sent: i64,
}

/// The state of a simulation.
pub(super) struct World {
    scenario: Scenario,
    now: Timestamp,
    events: BinaryHeap<Reverse<(i64, u64, Event)>>,
    scheduled: u64,
    dice: SeededRng,
    clients: Vec<Client>,
    upstream: Upstream,
    gate: Option<Gate>,
    report: Report,
}

/// The admission controller and its queue.
struct Gate {
    lane: ApiAdmissionController,
    line: WaitQueue<u32>,
    wake: Option<i64>,
}

impl World {
    pub(super) fn new(scenario: &Scenario, manner: &AdmissionMode) -> Self {
        let now = Timestamp::from_millis(0);
        let mut world = Self {
            now,
            events: BinaryHeap::new(),
            scheduled: 0,
            dice: SeededRng::seeded(scenario.seed),
            clients: Vec::new(),
            upstream: Upstream::new(&scenario.upstream, now),
            gate: match manner {
                AdmissionMode::Plain => None,
                AdmissionMode::Lane(settings) => Some(Gate {
                    lane: ApiAdmissionController::new(settings.clone(), now),
                    line: WaitQueue::default(),
                    wake: None,
                }),
            },
            report: Report::default(),
            scenario: scenario.clone(),
        };
        world.begin();
        world
    }

    fn begin(&mut self) {
        let clients = self.scenario.clients.clone();
        for client in 0..clients.count + clients.busy {
            let busy = client >= clients.count;
            self.clients.push(Client {
                session: if busy {
                    "busy".to_owned()
                } else {
                    client.to_string()
                },
                busy,
                ..Client::default()
            });
            let wait = if busy {
                Duration::ZERO
            } else {
                clients
                    .think
                    .mul_f64(-self.dice.next_draw().fraction().ln())
            };
            self.schedule(wait, Event::Ask(client));
        }
        if let Some(trouble) = self.scenario.trouble {
            let all = self.scenario.upstream.places;
            let left = rounded(f64::from(all) * trouble.left);
            self.schedule(trouble.from, Event::Places(left));
            self.schedule(trouble.until, Event::Places(all));
        }
    }

    pub(super) fn run(mut self) -> Report {
        let end = Timestamp::from_millis(0)
            .after(self.scenario.lasts)
            .millis();
        while let Some(Reverse((at, _, event))) = self.events.pop() {
            if at >= end {
                break;
            }
            self.now = Timestamp::from_millis(at);
            self.happens(event);
        }
        self.report
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Ask(client) => self.ask(client),
            Event::Ended(work) => self.ended(work),
            Event::Failed(client, serial, kind, stated) => {
                self.failed(client, serial, kind, stated);
            }
            Event::TimedOut(client, serial) => {
                self.failed(client, serial, FailureKind::Timeout, None)
            }
            Event::Wake => {
                if let Some(gate) = &mut self.gate {
                    gate.wake = None;
                }
                self.pump();
            }
            Event::Places(places) => {
                for lost in self.upstream.set_places(places) {
                    self.failed(lost.client, lost.serial, FailureKind::NetworkError, None);
                }
                for next in self.upstream.begins() {
                    self.works(Some(next));
                }
            }
        }
    }

    fn schedule(&mut self, wait: Duration, event: Event) {
        self.scheduled += 1;
        let at = self.now.after(wait).millis();
        self.events.push(Reverse((at, self.scheduled, event)));
    }

    fn ask(&mut self, client: u32) {
        let now = self.now.millis();
        let known = &mut self.clients[client as usize];
        if known.tries == 0 {
            known.begun = now;
            known.first_failure = None;
            self.report.at(now).offered += 1;
        }
        let attempt = match (known.tries, known.as_told) {
            (0, _) => ApiAttemptKind::First,
            (_, true) => ApiAttemptKind::AsInstructed,
            (_, false) => ApiAttemptKind::Retry,
        };
        known.tries += 1;
        match &mut self.gate {
            None => self.send(client),
            Some(gate) => {
                let ask = ApiAdmissionRequest { attempt, tokens: 0 };
                gate.line.push(&known.session, 1, ask, client);
                self.pump();
            }
        }
    }

    /// Sends the calls that are admitted, and schedules the next wake-up.
    fn pump(&mut self) {
        while let Some(gate) = &mut self.gate {
            let next = gate.line.next_admission(&mut gate.lane, self.now);
            let waiting = u32::try_from(gate.line.len()).unwrap_or(u32::MAX);
            self.report.at(self.now.millis()).waiting = waiting;
            match next {
                NextAdmission::Admit(client) => self.send(client),
                NextAdmission::Empty => return,
                NextAdmission::Wait { until, .. } => {
                    let until = until.millis();
                    if gate.wake.is_none_or(|known| until < known) {
                        gate.wake = Some(until);
                        self.schedule(Timestamp::from_millis(until).since(self.now), Event::Wake);
                    }
                    return;
                }
            }
        }
    }

    fn send(&mut self, client: u32) {
        let now = self.now;
        self.report.at(now.millis()).sent += 1;
        let known = &mut self.clients[client as usize];
        known.serial += 1;
        known.sent = now.millis();
        let serial = known.serial;
        let sent = SimulatedAttempt { client, serial };
        let failed = |kind, stated| Event::Failed(client, serial, kind, stated);
        match self.upstream.arrives(sent, now) {
            SimulatedArrivalOutcome::Begun => self.works(Some(sent)),
            SimulatedArrivalOutcome::Queued => {}
            SimulatedArrivalOutcome::Refused => {
                self.schedule(REFUSED_AFTER, failed(FailureKind::ServerOverloaded, None))
            }
            SimulatedArrivalOutcome::Unreachable => {
                self.schedule(REFUSED_AFTER, failed(FailureKind::NetworkError, None))
            }
            SimulatedArrivalOutcome::Limited(wait) => {
                self.schedule(REFUSED_AFTER, failed(FailureKind::RateLimit, Some(wait)));
            }
        }
        if let Some(timeout) = self.scenario.clients.timeout {
            self.schedule(timeout, Event::TimedOut(client, serial));
        }
    }

    /// Half of the processing time is fixed, the other half random.
    fn works(&mut self, on: Option<SimulatedAttempt>) {
        let half = self.scenario.upstream.service / 2;
        let spread = half.mul_f64(-self.dice.next_draw().fraction().ln());
        let on = on.map(|sent| (sent.client, sent.serial));
        self.schedule(half + spread, Event::Ended(on));
    }

    fn ended(&mut self, work: Option<(u32, u32)>) {
        if let Some(next) = self.upstream.ended() {
            self.works(next);
        }
        let Some((client, serial)) = work else {
            return;
        };
        if self.dice.next_draw().fraction() <= self.scenario.upstream.transient {
            let (kind, stated) = self.by_chance();
            self.failed(client, serial, kind, stated);
        } else if self.clients[client as usize].serial == serial {
            self.answered(client);
        }
    }

    /// Some random failures are brief rate limits.
    fn by_chance(&mut self) -> (FailureKind, Option<Duration>) {
        if self.dice.next_draw().fraction() <= LIMITED_BY_CHANCE {
            (FailureKind::RateLimit, Some(Duration::from_secs(1)))
        } else {
            (FailureKind::ServerError, None)
        }
    }

    fn answered(&mut self, client: u32) {
        let now = self.now.millis();
        self.report.at(now).good += 1;
        self.report.succeeded += 1;
        let seen = self.upstream.headers(self.now);
        let known = &mut self.clients[client as usize];
        let since = |moment: i64| Timestamp::from_millis(now).since(Timestamp::from_millis(moment));
        if let Some(failure) = known.first_failure {
            self.report.recoveries.push(since(failure));
        }
        if !known.busy {
            self.report.responses.push(since(known.begun));
        }
        if let Some(gate) = &mut self.gate {
            gate.lane.on_success(&seen, 0, since(known.sent), self.now);
        }
        self.thinks(client);
        self.pump();
    }

    fn failed(&mut self, client: u32, serial: u32, kind: FailureKind, stated: Option<Duration>) {
        if self.clients[client as usize].serial != serial {
            return;
        }
        let now = self.now.millis();
        let tenth = self.report.at(now);
        tenth.failed += 1;
        tenth.limited += u32::from(kind == FailureKind::RateLimit);
        let seen = match kind {
            FailureKind::RateLimit => self.upstream.headers(self.now),
            _ => ResponseRateLimits::default(),
        };
        if let Some(gate) = &mut self.gate {
            gate.lane.on_failure(kind, stated, &seen, self.now);
        }
        let known = &mut self.clients[client as usize];
        known.serial += 1;
        known.as_told = stated.is_some();
        known.first_failure = known.first_failure.or(Some(now));
        let retries = known.tries;
        let began = known.first_failure.unwrap_or(now);
        let policy = &self.scenario.policy;
        let is_over = match policy.give_up_after {
            Some(limit) => now - began >= i64::try_from(limit.as_millis()).unwrap_or(i64::MAX),
            None => retries > policy.max_retries,
        };
        if is_over {
            self.report.given_up += 1;
            self.thinks(client);
        } else {
            let wait = delay(&self.scenario.policy, retries, &mut self.dice);
            self.schedule(wait.max(stated.unwrap_or_default()), Event::Ask(client));
        }
        self.pump();
    }

    fn thinks(&mut self, client: u32) {
        let known = &mut self.clients[client as usize];
        known.tries = 0;
        known.serial += 1;
        let think = if known.busy {
            Duration::ZERO
        } else {
            self.scenario.clients.think
        };
        let spread = -self.dice.next_draw().fraction().ln();
        self.schedule(think.mul_f64(spread), Event::Ask(client));
    }
}

fn delay(policy: &RetryPolicy, retry: u32, dice: &mut SeededRng) -> Duration {
    policy.backoff().delay(retry, None, dice.next_draw())
}
