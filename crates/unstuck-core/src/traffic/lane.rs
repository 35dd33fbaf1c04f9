//! One upstream, key and model, and all the calls that share it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::allowance::{Allowance, Short};
use super::limits::{Limits, Plan, Window};
use super::pacer::Pacer;
use super::recent::Recent;
use super::state::{Counts, LaneState};
use crate::decision::{Breaker, BreakerSettings, BreakerState, Budget, BudgetSettings};
use crate::failure::Kind;
use crate::moment::Timestamp;

/// A rate limit that is over so soon, and that hardly anybody met, holds only whoever met it.
const BRIEF: Duration = Duration::from_secs(5);
/// How long everybody waits for a limit whose end nobody stated.
const UNSTATED: Duration = Duration::from_secs(60);
/// The share of the usual rate with which calls begin again after a cool-down, so that not all wake at once.
const AFTER_COOL_DOWN: f64 = 0.5;
/// The same after an outage.
const AFTER_OUTAGE: f64 = 0.4;
/// How soon to look again when all places are taken, where nothing better is known.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How a lane behaves.
#[derive(Debug, Clone, PartialEq)]
pub struct LaneSettings {
    /// When nobody asks the upstream any more; by default it is asked again after 1 s, later every 2 s.
    pub breaker: BreakerSettings,
    /// How many retries there may be; by default two for five first tries, and one every 5 s in any case.
    pub budget: BudgetSettings,
    /// The most calls at the same time; not limited by default.
    pub max_in_flight: Option<u32>,
}

impl Default for LaneSettings {
    fn default() -> Self {
        Self {
            breaker: BreakerSettings {
                cool_down: Duration::from_secs(1),
                max_cool_down: Duration::from_secs(2),
                ..BreakerSettings::default()
            },
            budget: BudgetSettings {
                capacity: 20.0,
                deposit: 0.4,
                floor_per_minute: 12.0,
            },
            max_in_flight: None,
        }
    }
}

/// Which try of a call it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Try {
    /// The first.
    First,
    /// Another after a failure: it draws on the retry budget.
    #[serde(rename = "again")]
    Again,
    /// Another after a rate limit whose wait the server stated: it was asked to come again, so it draws on nothing.
    #[serde(rename = "as_told")]
    AsTold,
}

/// What somebody wants to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Which try of the call it is.
    pub attempt: Try,
    /// About how many tokens it has; 0 if that is not known.
    pub tokens: u64,
}

/// Whether a call may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It goes now, and must be reported as answered, failed or abandoned.
    Go,
    /// It may go at the moment, if nothing else happens before.
    ///
    /// For [`Held::Concurrency`] the moment is a guess: whenever a call ends is the time to ask again.
    Wait {
        /// When to ask again.
        until: Timestamp,
        /// What holds it.
        why: Held,
    },
    /// The upstream is down; at the moment one call may find out whether it is back.
    ///
    /// Whoever has another upstream goes there; whoever has time asks again.
    Refuse {
        /// When to ask again.
        until: Timestamp,
        /// What holds it.
        why: Held,
    },
}

/// What holds a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// The upstream is overloaded, or what is left of a limit is spread until its reset.
    #[serde(rename = "pace")]
    Pace,
    /// Nothing is left of a limit before its reset.
    RateLimit,
    /// The server stated a wait.
    CoolDown,
    /// The upstream is down.
    Breaker,
    /// There were too many retries.
    RetryBudget,
    /// All places are taken.
    Concurrency,
}

/// One upstream, key and model, shared by all sessions that use it.
#[derive(Debug, Clone)]
pub struct Lane {
    settings: LaneSettings,
    breaker: Breaker,
    budget: Budget,
    pacer: Pacer,
    recent: Recent,
    allowances: Allowances,
    plan: Option<Plan>,
    cool_down: Option<Timestamp>,
    /// The reset after which calls begin again slowly.
    waking: Option<Timestamp>,
    in_flight: u32,
    /// The tokens of the calls on their way.
    tokens_in_flight: f64,
    /// How long a call takes on average, in milliseconds.
    usual_took: f64,
    counts: Counts,
}

/// The accounts of what is limited.
#[derive(Debug, Clone, Default)]
struct Allowances {
    requests: Option<Allowance>,
    tokens: Option<Allowance>,
    input_tokens: Option<Allowance>,
    output_tokens: Option<Allowance>,
}

impl Lane {
    /// A lane about which nothing is known yet.
    pub fn new(settings: LaneSettings, now: Timestamp) -> Self {
        Self {
            breaker: Breaker::new(settings.breaker),
            budget: Budget::full(settings.budget, now),
            settings,
            pacer: Pacer::new(now),
            recent: Recent::default(),
            allowances: Allowances::default(),
            plan: None,
            cool_down: None,
            waking: None,
            in_flight: 0,
            tokens_in_flight: 0.0,
            usual_took: 0.0,
            counts: Counts::default(),
        }
    }

    /// Whether a call may go now; if so, it counts as on its way.
    pub fn admit(&mut self, ask: Ask, now: Timestamp) -> Admission {
        match self.held(ask, now) {
            None => {
                self.go(ask, now);
                Admission::Go
            }
            Some((until, why @ Held::Breaker)) => Admission::Refuse { until, why },
            Some((until, why)) => {
                self.spread_waking(until, why, now);
                Admission::Wait { until, why }
            }
        }
    }

    /// What would hold a call now, and until when; none if it might go. Nothing is counted.
    pub fn holds(&mut self, ask: Ask, now: Timestamp) -> Option<(Timestamp, Held)> {
        self.held(ask, now)
    }

    /// A call was answered: it frees its place.
    pub fn answered(&mut self, seen: &Limits, tokens: u64, took: Duration, now: Timestamp) {
        self.ended();
        self.counts.answered += 1;
        self.recent.note(false);
        self.counts.tokens += tokens;
        self.usual_took += 0.1 * (took.as_millis() as f64 - self.usual_took);
        self.is_up(now);
        self.pacer.through(took, now);
        self.saw(seen, now);
    }

    /// A call failed: it frees its place. What the server stated as a wait after a rate limit holds for everybody, unless
    /// it is brief and hardly anybody else met one.
    pub fn failed(&mut self, kind: Kind, stated: Option<Duration>, seen: &Limits, now: Timestamp) {
        self.ended();
        self.counts.failed += 1;
        let is_limited = matches!(kind, Kind::RateLimit | Kind::RateLimitTimed);
        self.recent.note(is_limited);
        match kind {
            Kind::RateLimit | Kind::RateLimitTimed => self.limited(kind, stated, now),
            kind if Breaker::counts(kind) => {
                self.breaker.failed(now);
                self.pacer.failed(kind, now);
            }
            Kind::Unknown => self.breaker.said_nothing(now),
            _ => self.is_up(now),
        }
        self.saw(seen, now);
    }

    /// The client went away: that says nothing about the upstream.
    pub fn abandoned(&mut self, now: Timestamp) {
        self.ended();
        self.counts.abandoned += 1;
        self.breaker.said_nothing(now);
    }

    /// Takes in what the headers of an answer say before the answer has ended.
    pub fn saw(&mut self, seen: &Limits, now: Timestamp) {
        let Some(told) = seen.at else {
            return;
        };
        let calls = f64::from(self.in_flight);
        let tokens = self.tokens_in_flight;
        let take = |known: &mut Option<Allowance>, seen: Option<Window>, on_the_way| {
            if let Some(seen) = seen {
                match known {
                    Some(known) => known.observe(&seen, told, on_the_way, now),
                    None => *known = Some(Allowance::new(&seen, told, on_the_way, now)),
                }
            }
        };
        let known = &mut self.allowances;
        take(&mut known.requests, seen.requests, calls);
        take(&mut known.tokens, seen.tokens, tokens);
        take(&mut known.input_tokens, seen.input_tokens, tokens);
        take(&mut known.output_tokens, seen.output_tokens, 0.0);
        self.plan = seen.plan.or(self.plan);
    }

    /// How the lane is at a moment, for people.
    pub fn state(&self, now: Timestamp) -> LaneState {
        let known = &self.allowances;
        let shown = |known: &Option<Allowance>| {
            let known = known.as_ref().filter(|known| !known.is_over(now));
            known.map(|known| known.shown(now))
        };
        LaneState {
            breaker: self.breaker.state(),
            in_flight: self.in_flight,
            pace_per_second: self.pacer.per_second(),
            requests: shown(&known.requests),
            tokens: shown(&known.tokens),
            input_tokens: shown(&known.input_tokens),
            output_tokens: shown(&known.output_tokens),
            plan: self.plan.filter(|plan| now < plan.reset),
            cool_down_until: self.cool_down.filter(|until| now < *until),
            retry_budget: self.budget.tokens(now),
            usual_took_ms: self.usual_took,
            counts: self.counts,
        }
    }

    /// What holds a call longest, and until when.
    fn held(&mut self, ask: Ask, now: Timestamp) -> Option<(Timestamp, Held)> {
        let mut held: Option<(Timestamp, Held)> = None;
        let mut hold = |until: Timestamp, why| {
            if until > now && held.is_none_or(|(known, _)| until > known) {
                held = Some((until, why));
            }
        };
        match self.breaker.state() {
            BreakerState::Closed { .. } => {}
            BreakerState::Open { until, .. } | BreakerState::HalfOpen { until, .. } => {
                hold(until, Held::Breaker);
            }
        }
        if let Some(until) = self.cool_down {
            hold(until, Held::CoolDown);
        }
        if let Some(until) = self.places_taken(now) {
            hold(until, Held::Concurrency);
        }
        if let Some(plan) = self.plan.filter(|plan| plan.spent) {
            hold(plan.reset, Held::RateLimit);
        }
        self.allowances.each(ask.tokens as f64, |known, cost| {
            match known.short(cost, now) {
                None => {}
                Some(Short::UsedUp(until)) => hold(until, Held::RateLimit),
                Some(Short::Spread(until)) => hold(until, Held::Pace),
            }
        });
        if let Some(until) = self.pacer.wait(now) {
            hold(until, Held::Pace);
        }
        // While the rate is limited, a retry takes the place of another call and adds nothing to the load.
        if ask.attempt == Try::Again && !self.pacer.is_pacing() {
            hold(now.after(self.budget.wait(now)), Held::RetryBudget);
        }
        held
    }

    /// All who wait for the same reset would go in the same instant.
    fn spread_waking(&mut self, until: Timestamp, why: Held, now: Timestamp) {
        let long = until.since(now) >= LOOK_AGAIN;
        if why == Held::RateLimit && long && self.waking != Some(until) {
            self.waking = Some(until);
            self.pacer.restart(AFTER_COOL_DOWN, until);
        }
    }

    fn places_taken(&mut self, now: Timestamp) -> Option<Timestamp> {
        let most = self.settings.max_in_flight;
        let taken = most.is_some_and(|most| self.in_flight >= most.max(1));
        if !self.pacer.is_full(self.in_flight) && !taken {
            return None;
        }
        let wait = self.usual_took / 1000.0 / f64::from(self.in_flight.max(1));
        let wait = Duration::try_from_secs_f64(wait).unwrap_or(LOOK_AGAIN);
        Some(now.after(wait.clamp(Duration::from_millis(1), LOOK_AGAIN)))
    }

    fn go(&mut self, ask: Ask, now: Timestamp) {
        self.breaker.admit(now);
        self.pacer.go(self.in_flight + 1, now);
        match ask.attempt {
            Try::First => self.budget.first_try(now),
            Try::Again => {
                self.budget.spend(now);
                self.counts.retries += 1;
            }
            Try::AsTold => self.counts.retries += 1,
        }
        let tokens = ask.tokens as f64;
        self.allowances
            .each_mut(tokens, |known, cost| known.take(cost, now));
        self.in_flight += 1;
        self.tokens_in_flight += tokens;
        self.counts.admitted += 1;
    }

    /// Which of the calls on their way it was is not known, so its tokens count as the average.
    fn ended(&mut self) {
        let calls = f64::from(self.in_flight.max(1));
        self.tokens_in_flight *= 1.0 - 1.0 / calls;
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// The upstream was heard: after an outage calls begin again slowly.
    fn is_up(&mut self, now: Timestamp) {
        if !matches!(self.breaker.state(), BreakerState::Closed { .. }) {
            self.pacer.restart(AFTER_OUTAGE, now);
        }
        self.breaker.succeeded(now);
    }

    fn limited(&mut self, kind: Kind, stated: Option<Duration>, now: Timestamp) {
        self.counts.rate_limited += 1;
        self.is_up(now);
        let wait = match (kind, stated) {
            (_, Some(wait)) if wait <= BRIEF && self.recent.limits_are_rare() => {
                return self.pacer.failed(kind, now);
            }
            (_, Some(wait)) => wait,
            (Kind::RateLimitTimed, None) => UNSTATED,
            // Nobody knows how long: sending less is all that can be done.
            (_, None) => return self.pacer.failed(kind, now),
        };
        let until = now.after(wait);
        if self.cool_down.is_none_or(|known| until > known) {
            self.cool_down = Some(until);
            self.pacer.restart(AFTER_COOL_DOWN, until);
        }
    }
}

impl Allowances {
    fn each(&self, tokens: f64, mut look: impl FnMut(&Allowance, f64)) {
        for (known, cost) in [
            (&self.requests, 1.0),
            (&self.tokens, tokens),
            (&self.input_tokens, tokens),
            (&self.output_tokens, 0.0),
        ] {
            if let Some(known) = known {
                look(known, cost);
            }
        }
    }

    fn each_mut(&mut self, tokens: f64, mut change: impl FnMut(&mut Allowance, f64)) {
        for (known, cost) in [
            (&mut self.requests, 1.0),
            (&mut self.tokens, tokens),
            (&mut self.input_tokens, tokens),
            (&mut self.output_tokens, 0.0),
        ] {
            if let Some(known) = known {
                change(known, cost);
            }
        }
    }
}
