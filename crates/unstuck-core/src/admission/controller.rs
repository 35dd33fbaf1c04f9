//! Admission control for one upstream, key and model, shared by all its calls.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::quota_window::{QuotaShortage, QuotaWindow};
use super::rate_controller::RateController;
use super::rate_limit_frequency::RecentRateLimits;
use super::response_rate_limits::{RemainingQuota, ResponseRateLimits, SubscriptionUsage};
use super::state::{AdmissionControllerState, ApiAdmissionTotals};
use crate::decision::{
    CircuitBreaker, CircuitBreakerSettings, CircuitState, RetryBudgetSettings, UpstreamRetryBudget,
};
use crate::failure::FailureKind;
use crate::time::Timestamp;

/// A rate limit this short that few calls met blocks only those calls.
const BRIEF_LIMIT: Duration = Duration::from_secs(5);
/// Cool-down of all calls after a rate limit without a stated wait.
const UNSTATED_COOL_DOWN: Duration = Duration::from_secs(60);
/// Share of the usual rate with which calls restart after a cool-down, to prevent a thundering herd.
const RESTART_SHARE_AFTER_COOL_DOWN: f64 = 0.5;
/// Share of the usual rate with which calls restart after an outage.
const RESTART_SHARE_AFTER_OUTAGE: f64 = 0.4;
/// Recheck interval when all slots are taken and no better estimate exists.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The settings of an admission controller.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiAdmissionSettings {
    /// The circuit breaker; by default it probes after 1 s, later every 2 s.
    pub breaker: CircuitBreakerSettings,
    /// The retry budget; by default two retries per five first attempts, and at least one every 5 s.
    pub budget: RetryBudgetSettings,
    /// The maximum number of concurrent calls; unlimited by default.
    pub max_in_flight: Option<u32>,
}

impl Default for ApiAdmissionSettings {
    fn default() -> Self {
        Self {
            breaker: CircuitBreakerSettings {
                cool_down: Duration::from_secs(1),
                max_cool_down: Duration::from_secs(2),
                ..CircuitBreakerSettings::default()
            },
            budget: RetryBudgetSettings {
                capacity: 20.0,
                deposit: 0.4,
                floor_per_minute: 12.0,
            },
            max_in_flight: None,
        }
    }
}

/// The kind of an API attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiAttemptKind {
    /// The first attempt.
    First,
    /// A retry after a failure: it consumes the retry budget.
    #[serde(rename = "retry", alias = "again")]
    Retry,
    /// A retry after a rate limit with a stated wait: the server asked for it, so it consumes no budget.
    #[serde(rename = "as_instructed", alias = "as_told")]
    AsInstructed,
}

/// A request for admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiAdmissionRequest {
    /// The kind of attempt.
    pub attempt: ApiAttemptKind,
    /// Estimated number of tokens; 0 if unknown.
    pub tokens: u64,
}

/// The decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionDecision {
    /// The call may start now and must be reported as succeeded, failed or abandoned.
    Admit,
    /// The call may start at `until` unless something else happens before.
    ///
    /// For [`HoldReason::Concurrency`] the time is a guess: ask again whenever a call ends.
    Wait {
        /// The time of the next admission request.
        until: Timestamp,
        /// The reason.
        why: HoldReason,
    },
    /// The upstream is down; at `until` one call may probe it.
    ///
    /// The caller can use another upstream or ask again later.
    Refuse {
        /// The time of the next admission request.
        until: Timestamp,
        /// The reason.
        why: HoldReason,
    },
}

/// The reason for holding a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HoldReason {
    /// The upstream is overloaded, or the remaining quota is spread until its reset.
    #[serde(rename = "rate", alias = "pace")]
    Rate,
    /// The quota is exhausted until its reset.
    RateLimit,
    /// The server stated a wait.
    CoolDown,
    /// The upstream is down.
    Breaker,
    /// The retry budget is exhausted.
    RetryBudget,
    /// All slots are taken.
    Concurrency,
}

/// Admission controller of one upstream, key and model, shared by all sessions that use it.
#[derive(Debug, Clone)]
pub struct ApiAdmissionController {
    settings: ApiAdmissionSettings,
    breaker: CircuitBreaker,
    budget: UpstreamRetryBudget,
    rate_controller: RateController,
    recent_calls: RecentRateLimits,
    quota_windows: QuotaWindows,
    subscription: Option<SubscriptionUsage>,
    cool_down: Option<Timestamp>,
    /// The reset after which calls restart slowly.
    slow_start_at: Option<Timestamp>,
    in_flight: u32,
    /// The tokens of the calls in flight.
    tokens_in_flight: f64,
    /// The average duration of a call, in milliseconds.
    average_duration: f64,
    counts: ApiAdmissionTotals,
}

/// The tracked quotas.
#[derive(Debug, Clone, Default)]
struct QuotaWindows {
    requests: Option<QuotaWindow>,
    tokens: Option<QuotaWindow>,
    input_tokens: Option<QuotaWindow>,
    output_tokens: Option<QuotaWindow>,
}

impl ApiAdmissionController {
    /// Creates a controller without any observations.
    pub fn new(settings: ApiAdmissionSettings, now: Timestamp) -> Self {
        Self {
            breaker: CircuitBreaker::new(settings.breaker),
            budget: UpstreamRetryBudget::full(settings.budget, now),
            settings,
            rate_controller: RateController::new(now),
            recent_calls: RecentRateLimits::default(),
            quota_windows: QuotaWindows::default(),
            subscription: None,
            cool_down: None,
            slow_start_at: None,
            in_flight: 0,
            tokens_in_flight: 0.0,
            average_duration: 0.0,
            counts: ApiAdmissionTotals::default(),
        }
    }

    /// Decides about a call; if admitted, it counts as in flight.
    pub fn admit(&mut self, ask: ApiAdmissionRequest, now: Timestamp) -> AdmissionDecision {
        match self.longest_hold(ask, now) {
            None => {
                self.on_admitted(ask, now);
                AdmissionDecision::Admit
            }
            Some((until, why @ HoldReason::Breaker)) => AdmissionDecision::Refuse { until, why },
            Some((until, why)) => {
                self.spread_waking(until, why, now);
                AdmissionDecision::Wait { until, why }
            }
        }
    }

    /// Admits a call that a person wants to be tried now, whatever holds it back; it counts as in flight.
    pub fn admit_on_request(&mut self, ask: ApiAdmissionRequest, now: Timestamp) {
        self.on_admitted(ask, now);
    }

    /// Records that a call admitted on request succeeded: the limits that the server stated before are over. To be
    /// called before [`Self::on_success`].
    pub fn end_stated_limits(&mut self, now: Timestamp) {
        self.cool_down = None;
        // The slow start that was planned for the end of the limit begins now.
        self.rate_controller
            .restart(RESTART_SHARE_AFTER_COOL_DOWN, now);
        self.subscription = self.subscription.filter(|plan| !plan.is_exhausted);
        self.quota_windows = QuotaWindows::default();
    }

    /// Returns the reason and end of a hold for a call now; none if it would be admitted. Counts nothing.
    pub fn hold_reason(
        &mut self,
        ask: ApiAdmissionRequest,
        now: Timestamp,
    ) -> Option<(Timestamp, HoldReason)> {
        self.longest_hold(ask, now)
    }

    /// Records a successful call and frees its slot.
    pub fn on_success(
        &mut self,
        seen: &ResponseRateLimits,
        tokens: u64,
        took: Duration,
        now: Timestamp,
    ) {
        self.release_slot();
        self.counts.answered += 1;
        self.recent_calls.record(false);
        self.counts.tokens += tokens;
        self.average_duration += 0.1 * (took.as_millis() as f64 - self.average_duration);
        self.on_upstream_up(now);
        self.rate_controller.on_success(took, now);
        self.on_headers(seen, now);
    }

    /// Records a failed call and frees its slot. A wait stated after a rate limit holds all calls, unless it is brief
    /// and few others met one.
    pub fn on_failure(
        &mut self,
        kind: FailureKind,
        stated: Option<Duration>,
        seen: &ResponseRateLimits,
        now: Timestamp,
    ) {
        self.release_slot();
        self.counts.failed += 1;
        let is_limited = matches!(kind, FailureKind::RateLimit | FailureKind::RateLimitTimed);
        self.recent_calls.record(is_limited);
        match kind {
            FailureKind::RateLimit | FailureKind::RateLimitTimed => {
                self.on_rate_limited(kind, stated, now)
            }
            kind if CircuitBreaker::is_outage(kind) => {
                self.breaker.on_failure(now);
                self.rate_controller.on_failure(kind, now);
            }
            FailureKind::Unknown => self.breaker.on_inconclusive(now),
            _ => self.on_upstream_up(now),
        }
        self.on_headers(seen, now);
    }

    /// Records that the client disconnected, which says nothing about the upstream.
    pub fn on_abandoned(&mut self, now: Timestamp) {
        self.release_slot();
        self.counts.abandoned += 1;
        self.breaker.on_inconclusive(now);
    }

    /// Records the headers of a response before the response has ended.
    pub fn on_headers(&mut self, seen: &ResponseRateLimits, now: Timestamp) {
        let Some(told) = seen.read_at else {
            return;
        };
        let calls = f64::from(self.in_flight);
        let tokens = self.tokens_in_flight;
        let take = |known: &mut Option<QuotaWindow>, seen: Option<RemainingQuota>, on_the_way| {
            if let Some(seen) = seen {
                match known {
                    Some(known) => known.observe(&seen, told, on_the_way, now),
                    None => *known = Some(QuotaWindow::new(&seen, told, on_the_way, now)),
                }
            }
        };
        let known = &mut self.quota_windows;
        take(&mut known.requests, seen.requests, calls);
        take(&mut known.tokens, seen.tokens, tokens);
        take(&mut known.input_tokens, seen.input_tokens, tokens);
        take(&mut known.output_tokens, seen.output_tokens, 0.0);
        self.subscription = seen.plan.or(self.subscription);
    }

    /// Returns the state at a given time, for display.
    pub fn state(&self, now: Timestamp) -> AdmissionControllerState {
        let known = &self.quota_windows;
        let shown = |known: &Option<QuotaWindow>| {
            let known = known.as_ref().filter(|known| !known.is_over(now));
            known.map(|known| known.status(now))
        };
        AdmissionControllerState {
            breaker: self.breaker.state(),
            in_flight: self.in_flight,
            pace_per_second: self.rate_controller.per_second(),
            requests: shown(&known.requests),
            tokens: shown(&known.tokens),
            input_tokens: shown(&known.input_tokens),
            output_tokens: shown(&known.output_tokens),
            subscription: self.subscription.filter(|plan| now < plan.reset),
            cool_down_until: self.cool_down.filter(|until| now < *until),
            retry_budget: self.budget.tokens(now),
            average_duration_ms: self.average_duration,
            counts: self.counts,
        }
    }

    /// Returns the longest hold of a call and its end.
    fn longest_hold(
        &mut self,
        ask: ApiAdmissionRequest,
        now: Timestamp,
    ) -> Option<(Timestamp, HoldReason)> {
        let mut held: Option<(Timestamp, HoldReason)> = None;
        let mut hold = |until: Timestamp, why| {
            if until > now && held.is_none_or(|(known, _)| until > known) {
                held = Some((until, why));
            }
        };
        match self.breaker.state() {
            CircuitState::Closed { .. } => {}
            CircuitState::Open { until, .. } | CircuitState::HalfOpen { until, .. } => {
                hold(until, HoldReason::Breaker);
            }
        }
        if let Some(until) = self.cool_down {
            hold(until, HoldReason::CoolDown);
        }
        if let Some(until) = self.concurrency_hold(now) {
            hold(until, HoldReason::Concurrency);
        }
        if let Some(plan) = self.subscription.filter(|plan| plan.is_exhausted) {
            hold(plan.reset, HoldReason::RateLimit);
        }
        self.quota_windows.each(ask.tokens as f64, |known, cost| {
            match known.shortage(cost, now) {
                None => {}
                Some(QuotaShortage::UsedUp(until)) => hold(until, HoldReason::RateLimit),
                Some(QuotaShortage::Spread(until)) => hold(until, HoldReason::Rate),
            }
        });
        if let Some(until) = self.rate_controller.wait_until(now) {
            hold(until, HoldReason::Rate);
        }
        // While the rate is limited, a retry replaces another call and adds no load.
        if ask.attempt == ApiAttemptKind::Retry && !self.rate_controller.is_limiting() {
            hold(
                now.after(self.budget.time_until_retry(now)),
                HoldReason::RetryBudget,
            );
        }
        held
    }

    /// Spreads the wake-up of calls that wait for the same reset.
    fn spread_waking(&mut self, until: Timestamp, why: HoldReason, now: Timestamp) {
        let long = until.since(now) >= RECHECK_INTERVAL;
        if why == HoldReason::RateLimit && long && self.slow_start_at != Some(until) {
            self.slow_start_at = Some(until);
            self.rate_controller
                .restart(RESTART_SHARE_AFTER_COOL_DOWN, until);
        }
    }

    fn concurrency_hold(&mut self, now: Timestamp) -> Option<Timestamp> {
        let most = self.settings.max_in_flight;
        let taken = most.is_some_and(|most| self.in_flight >= most.max(1));
        if !self.rate_controller.is_full(self.in_flight) && !taken {
            return None;
        }
        let wait = self.average_duration / 1000.0 / f64::from(self.in_flight.max(1));
        let wait = Duration::try_from_secs_f64(wait).unwrap_or(RECHECK_INTERVAL);
        Some(now.after(wait.clamp(Duration::from_millis(1), RECHECK_INTERVAL)))
    }

    fn on_admitted(&mut self, ask: ApiAdmissionRequest, now: Timestamp) {
        self.breaker.admit(now);
        self.rate_controller.on_send(self.in_flight + 1, now);
        match ask.attempt {
            ApiAttemptKind::First => self.budget.on_first_attempt(now),
            ApiAttemptKind::Retry => {
                self.budget.try_spend(now);
                self.counts.retries += 1;
            }
            ApiAttemptKind::AsInstructed => self.counts.retries += 1,
        }
        let tokens = ask.tokens as f64;
        self.quota_windows
            .each_mut(tokens, |known, cost| known.consume(cost, now));
        self.in_flight += 1;
        self.tokens_in_flight += tokens;
        self.counts.admitted += 1;
    }

    /// It is unknown which call in flight it was, so its tokens count as the average.
    fn release_slot(&mut self) {
        let calls = f64::from(self.in_flight.max(1));
        self.tokens_in_flight *= 1.0 - 1.0 / calls;
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Records a sign of life: after an outage calls restart slowly.
    fn on_upstream_up(&mut self, now: Timestamp) {
        if !matches!(self.breaker.state(), CircuitState::Closed { .. }) {
            self.rate_controller
                .restart(RESTART_SHARE_AFTER_OUTAGE, now);
        }
        self.breaker.on_success(now);
    }

    fn on_rate_limited(&mut self, kind: FailureKind, stated: Option<Duration>, now: Timestamp) {
        self.counts.rate_limited += 1;
        self.on_upstream_up(now);
        let wait = match (kind, stated) {
            (_, Some(wait)) if wait <= BRIEF_LIMIT && self.recent_calls.limits_are_rare() => {
                return self.rate_controller.on_failure(kind, now);
            }
            (_, Some(wait)) => wait,
            (FailureKind::RateLimitTimed, None) => UNSTATED_COOL_DOWN,
            // The end is unknown: all it can do is send less.
            (_, None) => return self.rate_controller.on_failure(kind, now),
        };
        let until = now.after(wait);
        if self.cool_down.is_none_or(|known| until > known) {
            self.cool_down = Some(until);
            self.rate_controller
                .restart(RESTART_SHARE_AFTER_COOL_DOWN, until);
        }
    }
}

impl QuotaWindows {
    fn each(&self, tokens: f64, mut look: impl FnMut(&QuotaWindow, f64)) {
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

    fn each_mut(&mut self, tokens: f64, mut change: impl FnMut(&mut QuotaWindow, f64)) {
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
