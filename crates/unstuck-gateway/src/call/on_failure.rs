//! Failure handling: applies the decision of the core to a failed attempt.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::http::response::Parts;
use tokio::time::Instant;
use unstuck_core::admission::ApiAttemptKind;
use unstuck_core::decision::{
    CircuitBreaker, ConcreteAttemptChange, CurrentModel, Decision, DecisionInput, NetworkStatus,
    RecoveryAction, RetryCapabilities, RetryChangeCapability, RetryRecord, WaitPurpose, decide,
};
use unstuck_core::event::{CallFailed, ModelSwitched, SkippedUpstream};
use unstuck_core::{Category, Diagnosis, Event, FailureKind, RecoveryLevel, Timestamp};

use super::GatewayCall;
use super::call_recorder::CallRecorder;
use super::retry_state::RetryState;
use super::routing::UpstreamTarget;
use super::upstream_error::UpstreamError;
use crate::recorder::GatewaySessionEventKind;
use crate::system_clock;

/// The number of attempts at an upstream before its fallback is used.
const ATTEMPTS_BEFORE_FALLBACK: u32 = 3;

/// The next step of a call after a failed attempt.
pub(crate) enum StepAfterFailure {
    /// Retries after a pause.
    Retry(RetryPause, Box<Diagnosis>),
    /// Answers the client with the failure.
    GiveUp(GiveUpReason),
    /// Asks the client to return: the next attempt is due after a pause.
    AskToComeBack(RetryPause, Box<Diagnosis>),
}

/// A pause before the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RetryPause {
    pub(crate) delay: Duration,
    pub(crate) wait_for: WaitPurpose,
}

impl RetryPause {
    /// Returns the rest of the pause after some time was waited.
    pub(crate) fn remaining_after(self, waited: Duration) -> Self {
        Self {
            delay: self.delay.saturating_sub(waited),
            ..self
        }
    }
}

/// The reason why a call fails.
pub(crate) struct GiveUpReason {
    pub(crate) diagnosis: Diagnosis,
    pub(crate) reason: String,
    /// The delay before the client should return; `None` if it should not.
    pub(crate) come_back_after: Option<Duration>,
}

impl GatewayCall {
    /// Diagnoses a failure, decides what to do, and records both.
    pub(super) fn on_failure(
        &self,
        account: &mut CallRecorder,
        tries: &mut RetryState,
        broken: &UpstreamError,
        head: Option<&Parts>,
        network: NetworkStatus,
    ) -> StepAfterFailure {
        let now = system_clock::timestamp_now();
        let mut diagnosis = self.state.diagnose(&broken.failure);
        let seen = match (&broken.response, head) {
            (Some((head, _)), _) => self.rate_limits(head),
            (None, Some(head)) => self.rate_limits(head),
            (None, None) => Default::default(),
        };
        if let Some(permit) = account.permit.take() {
            permit.release_failed(diagnosis.kind, diagnosis.retry_after, &seen);
        }
        account.fail_probe(diagnosis.kind);
        if CircuitBreaker::is_outage(diagnosis.kind) {
            self.state
                .health
                .get(&self.upstream_url(tries))
                .record_failure(now);
        }
        account.record.kind = Some(diagnosis.kind);
        account.request = Some(self.request_hash());
        let word = should_retry(broken);
        if word == Some(true) && diagnosis.level == Some(RecoveryLevel::Alternative) {
            diagnosis.level = Some(RecoveryLevel::Same);
        }
        self.count_client_retries(tries, diagnosis.kind, now);
        self.limit_by_progress(account, tries, diagnosis.kind, now);
        let Some(mut decision) = self.decide(tries, &diagnosis, now, network) else {
            let reason = "no recovery strategy for this failure".to_owned();
            return StepAfterFailure::GiveUp(GiveUpReason {
                diagnosis,
                reason,
                come_back_after: None,
            });
        };
        let refused = word == Some(false);
        let (chosen, passed_over) =
            self.choose_action(tries, &diagnosis, &decision, refused, broken);
        self.notify_skipped(&passed_over);
        // The recorded wait is the actual one, so that everybody can see it.
        if let (Some(wait), RecoveryAction::Retry { delay, until }) =
            (chosen.wait(), &mut decision.action)
        {
            *delay = wait;
            *until = now.after(wait);
        }
        self.note_waiting(&decision, now);
        let but = match chosen {
            FailoverAction::GiveUp(but) => but,
            FailoverAction::WaitTooLong(wait) if self.should_ask_client_to_retry(wait) => {
                Some("The client timeout is shorter than the wait; told the client to retry.")
            }
            FailoverAction::FailOverOnReturn(_) => {
                Some("Client timeout reached; told the client to retry.")
            }
            FailoverAction::WaitTooLong(_) => Some("The client timeout is shorter than the wait."),
            FailoverAction::Retry(_)
            | FailoverAction::FailOver(_)
            | FailoverAction::RestartRound(..)
            | FailoverAction::SwitchModel(..) => None,
        };
        if let Some(but) = but {
            decision.reason = format!("{} {but}", decision.reason);
        }
        let fallback = match &chosen {
            FailoverAction::FailOver(target) => {
                Some(self.state.settings.upstreams[target.upstream].name.clone())
            }
            _ => None,
        };
        let event = CallFailed {
            session: self.session.setup().session.clone(),
            call: self.id.clone(),
            number: tries.attempts,
            upstream: account.record.upstream.clone(),
            model: tries.target.model.clone(),
            status: broken.failure.status,
            diagnosis: diagnosis.clone(),
            decision: decision.clone(),
            fallback,
            skipped_upstreams: passed_over,
            policy_hash: self.session.policy().fingerprint(),
            conversation: self.session.conversation(),
        };
        self.state
            .recorder
            .record_event(&self.session, now, Event::from(Box::new(event)));
        self.apply(tries, chosen, &diagnosis, decision, now)
    }

    /// Takes the time without progress from the session, not from the call: any response to one call is progress for
    /// all.
    fn limit_by_progress(
        &self,
        account: &CallRecorder,
        tries: &mut RetryState,
        kind: FailureKind,
        now: Timestamp,
    ) {
        if kind.category() == Category::Transient {
            let failing = self.session.record_outage(account.record.at, now);
            tries.history.started = failing.since;
            tries.history.idle_intervals = failing.gaps;
        }
        if let Some(at) = self.session.last_success() {
            tries.history.record_progress(at);
        }
    }

    /// Marks the call as waiting if the recorded decision is a wait.
    pub(super) fn note_waiting(&self, decision: &Decision, now: Timestamp) {
        let waits = decision.wait_until().is_some_and(|until| until > now);
        self.is_waiting.store(waits, Ordering::Relaxed);
    }

    /// Adds the retries that a client has made by itself.
    fn count_client_retries(&self, tries: &mut RetryState, kind: FailureKind, now: Timestamp) {
        if tries.attempts > 1 || tries.earlier_attempts > 0 {
            return;
        }
        for _ in 0..self.client_retries.min(100) {
            tries.history.record(RetryRecord {
                kind,
                level: RecoveryLevel::Same,
                strategy: None,
                at: now,
                delay: Duration::ZERO,
                is_stated_reset: false,
                cost: 0.0,
                extra_cost: 0.0,
                is_time_bound: false,
                waited_for_network: false,
            });
        }
    }

    fn decide(
        &self,
        tries: &RetryState,
        diagnosis: &Diagnosis,
        now: Timestamp,
        network: NetworkStatus,
    ) -> Option<Decision> {
        let playbook = self.state.knowledge.playbook();
        let policy = self.session.policy();
        let known = playbook.kind(diagnosis.kind)?;
        let mut situation =
            DecisionInput::new(&policy, &tries.history, diagnosis, known, playbook, now);
        situation.capabilities = RetryCapabilities::NONE.with(RetryChangeCapability::Model);
        situation.model = tries.model.as_deref().map(|id| CurrentModel {
            id,
            catalog: self.state.knowledge.catalog(),
            expected: self.expected_tokens(),
        });
        situation.session_limits.elapsed = None;
        situation.network = network;
        // Calls of agents wait for the network for as long as agents do.
        situation.can_park = network == NetworkStatus::Down;
        Some(decide(&situation, self.state.random_draw()))
    }

    /// Chooses the action for a decision: a wait must end while the client still waits, and a fallback may be used.
    /// Also returns the skipped upstreams.
    fn choose_action(
        &self,
        tries: &RetryState,
        diagnosis: &Diagnosis,
        decision: &Decision,
        refused: bool,
        broken: &UpstreamError,
    ) -> (FailoverAction, Vec<SkippedUpstream>) {
        let mut passed_over = Vec::new();
        let is_late = self
            .client_deadline()
            .is_some_and(|gone| gone <= Instant::now());
        if is_late
            && broken.is_timeout()
            && matches!(decision.action, RecoveryAction::Retry { .. })
            && self.should_ask_client_to_retry(Duration::ZERO)
        {
            let stand = self.select_fallback(tries, diagnosis.kind);
            if let Some(target) = stand.target {
                return (FailoverAction::FailOverOnReturn(target), stand.skipped);
            }
        }
        let mut instead = || {
            // The client would not receive the response.
            if is_late {
                return None;
            }
            let stand = self.select_fallback(tries, diagnosis.kind);
            passed_over.extend(stand.skipped);
            stand.target.map(FailoverAction::FailOver)
        };
        let limits = &self.state.settings.limits;
        let way = match &decision.action {
            RecoveryAction::Retry { .. } if refused => {
                FailoverAction::GiveUp(Some("The API disallows retries (x-should-retry: false)."))
            }
            RecoveryAction::Retry { delay, .. } => {
                let is_long = *delay > limits.fallback_after || *delay >= self.remaining_time();
                let is_due = is_long || broken.is_timeout() || self.is_chance_used(tries, *delay);
                let instead = if is_due { instead() } else { None };
                instead.unwrap_or_else(|| self.retry_same(tries, diagnosis, decision, *delay))
            }
            RecoveryAction::Change { changes, delay, .. } if *delay < self.remaining_time() => {
                match changes.iter().find_map(ConcreteAttemptChange::model_switch) {
                    Some((from, to)) => match self.check_budget(tries, to) {
                        Ok(()) => {
                            FailoverAction::SwitchModel(from.to_owned(), to.to_owned(), *delay)
                        }
                        Err(dear) => {
                            let way = instead();
                            passed_over.insert(0, dear);
                            way.unwrap_or(FailoverAction::GiveUp(None))
                        }
                    },
                    None => instead().unwrap_or(FailoverAction::GiveUp(None)),
                }
            }
            RecoveryAction::Stop { .. } => FailoverAction::GiveUp(None),
            RecoveryAction::Change { .. } | RecoveryAction::Escalate { .. } => {
                instead().unwrap_or(FailoverAction::GiveUp(None))
            }
        };
        (way, passed_over)
    }

    /// Returns true if the target had enough attempts, so that a fallback is used before it is retried.
    fn is_chance_used(&self, tries: &RetryState, delay: Duration) -> bool {
        let most = if tries.rounds > 0 || tries.was_failing {
            1
        } else {
            ATTEMPTS_BEFORE_FALLBACK
        };
        let spent = tries.at_target_since.elapsed() + delay;
        tries.attempts_at_target >= most || spent > self.state.settings.limits.fallback_after
    }

    /// Retries the same request after a wait if the client waits that long; with several upstreams, the first is used
    /// again.
    fn retry_same(
        &self,
        tries: &RetryState,
        diagnosis: &Diagnosis,
        decision: &Decision,
        delay: Duration,
    ) -> FailoverAction {
        let wait = delay.max(self.min_wait(tries));
        let is_told = diagnosis.retry_after.is_some();
        // The end of a network outage is unknown: the client is held for as long as it waits.
        let ends = decision.wait_purpose != WaitPurpose::Network;
        if is_told && delay > self.state.settings.limits.hold.min(self.remaining_time())
            || ends && wait >= self.remaining_time()
        {
            return FailoverAction::WaitTooLong(wait);
        }
        let first = self
            .selector()
            .select_first(&self.requirements(tries.model.as_deref()));
        match first.filter(|first| first.upstream != tries.target.upstream) {
            Some(first) => FailoverAction::RestartRound(first, wait),
            None => FailoverAction::Retry(wait),
        }
    }

    /// Returns the minimum wait that keeps the number of attempts to one more than the client would make by itself.
    fn min_wait(&self, tries: &RetryState) -> Duration {
        if self.session.policy().give_up_after.is_none() {
            return Duration::ZERO;
        }
        let soonest = self.client_retry_time(tries).unwrap_or_default();
        let now = system_clock::timestamp_now();
        // The client's own waits begin when the first attempt has failed.
        let first = tries.history.attempts.first().map_or(now, |first| first.at);
        first.after(soonest).since(now)
    }

    /// Returns the earliest time of the next attempt by the client's own retry schedule; `None` once the client would
    /// have given up. Each of several calls of a session would be retried; one of them may be an attempt ahead.
    pub(super) fn client_retry_time(&self, tries: &RetryState) -> Option<Duration> {
        let is_ahead = self.session.claim_request_ahead(self.request_hash());
        self.client_retry_policy
            .earliest_attempt(tries.total_attempts() + 1, is_ahead)
    }

    /// Checks whether the budgets allow another model of the current upstream.
    fn check_budget(&self, tries: &RetryState, model: &str) -> Result<(), SkippedUpstream> {
        let upstream = &self.state.settings.upstreams[tries.target.upstream];
        let model = upstream.model(model);
        let paid = self.budget(tries).check_model(model);
        paid.map_err(|unfit| SkippedUpstream {
            upstream: upstream.name.clone(),
            model: Some(model.to_owned()),
            why: unfit.to_string(),
        })
    }

    fn apply(
        &self,
        tries: &mut RetryState,
        way: FailoverAction,
        diagnosis: &Diagnosis,
        decision: Decision,
        now: Timestamp,
    ) -> StepAfterFailure {
        tries.give_up_at = decision.give_up_at;
        let wait = match way {
            FailoverAction::GiveUp(_) => {
                return StepAfterFailure::GiveUp(GiveUpReason {
                    diagnosis: with_retries_exhausted(diagnosis, &decision),
                    reason: decision.reason,
                    come_back_after: None,
                });
            }
            FailoverAction::WaitTooLong(wait) if self.should_ask_client_to_retry(wait) => {
                tries.history.attempts.extend(decision.to_retry_record(0.0));
                let pause = RetryPause {
                    delay: wait,
                    wait_for: decision.wait_purpose,
                };
                return StepAfterFailure::AskToComeBack(pause, Box::new(diagnosis.clone()));
            }
            FailoverAction::FailOverOnReturn(target) => {
                tries.history.attempts.extend(decision.to_retry_record(0.0));
                tries.next_target = Some(target);
                let pause = RetryPause {
                    delay: Duration::ZERO,
                    wait_for: WaitPurpose::Retry,
                };
                return StepAfterFailure::AskToComeBack(pause, Box::new(diagnosis.clone()));
            }
            FailoverAction::WaitTooLong(_) => {
                return StepAfterFailure::GiveUp(GiveUpReason {
                    diagnosis: with_retries_exhausted(diagnosis, &decision),
                    reason: decision.reason,
                    come_back_after: None,
                });
            }
            FailoverAction::Retry(wait) => {
                let is_told = diagnosis.retry_after.is_some()
                    && matches!(
                        diagnosis.kind,
                        FailureKind::RateLimit | FailureKind::RateLimitTimed
                    );
                tries.attempt = if is_told {
                    ApiAttemptKind::AsInstructed
                } else {
                    ApiAttemptKind::Retry
                };
                wait
            }
            FailoverAction::FailOver(target) => {
                if CircuitBreaker::is_outage(diagnosis.kind) {
                    let usual = self.state.settings.limits.fallback_after;
                    let health = self.state.health.get(&self.upstream_url(tries));
                    health.postpone_turn(now, (usual / 5, usual * 2));
                }
                // The fallback has not been tried yet.
                tries.attempt = ApiAttemptKind::First;
                tries.switch_target(target);
                Duration::ZERO
            }
            FailoverAction::RestartRound(target, wait) => {
                tries.attempt = ApiAttemptKind::Retry;
                tries.rounds += 1;
                tries.switch_target(target);
                wait
            }
            FailoverAction::SwitchModel(from, to, wait) => {
                self.record_model_switch(&decision, from, &to, now);
                let upstream = &self.state.settings.upstreams[tries.target.upstream];
                tries.target.model = Some(upstream.model(&to).to_owned());
                tries.model = Some(to);
                wait
            }
        };
        tries.history.attempts.extend(decision.to_retry_record(0.0));
        self.state.events.publish(
            &self.session,
            GatewaySessionEventKind::Retrying {
                diagnosis: Arc::new(diagnosis.clone()),
                reason: decision.reason.clone(),
                until: now.after(wait),
            },
        );
        let pause = RetryPause {
            delay: wait,
            wait_for: if wait.is_zero() {
                WaitPurpose::Retry
            } else {
                decision.wait_purpose
            },
        };
        StepAfterFailure::Retry(pause, Box::new(diagnosis.clone()))
    }

    /// Keeps the model switch for later calls of the session.
    fn record_model_switch(&self, decision: &Decision, from: String, to: &str, now: Timestamp) {
        self.session.switch_model(&from, to);
        if let Some(change) = decision.model_switch() {
            let session = Some(self.session.setup().session.clone());
            let event = ModelSwitched {
                session,
                switch: change,
            };
            self.state
                .recorder
                .record_event(&self.session, now, event.into());
        }
        let to = to.to_owned();
        self.state.events.publish(
            &self.session,
            GatewaySessionEventKind::ModelSwitched { from, to },
        );
    }
}

/// Returns the diagnosis for the client's supervisor, which need not retry what was retried to the limit here.
fn with_retries_exhausted(diagnosis: &Diagnosis, decision: &Decision) -> Diagnosis {
    let mut diagnosis = diagnosis.clone();
    let is_too_long = matches!(decision.action, RecoveryAction::Retry { .. });
    if !is_too_long && diagnosis.level == Some(RecoveryLevel::Same) {
        diagnosis.level = Some(RecoveryLevel::Alternative);
    }
    diagnosis
}

/// The gateway's action after a failure.
enum FailoverAction {
    Retry(Duration),
    FailOver(UpstreamTarget),
    /// All upstreams failed: restart with the first after a wait.
    RestartRound(UpstreamTarget, Duration),
    /// The same target, but the client does not wait that long.
    WaitTooLong(Duration),
    /// The fallback, once the client returns: its own time limit passed in silence.
    FailOverOnReturn(UpstreamTarget),
    SwitchModel(String, String, Duration),
    /// The failure, with a message if the decision was to continue.
    GiveUp(Option<&'static str>),
}

impl FailoverAction {
    /// Returns the wait before the next attempt, if there is one.
    fn wait(&self) -> Option<Duration> {
        match self {
            Self::Retry(wait) | Self::RestartRound(_, wait) | Self::WaitTooLong(wait) => {
                Some(*wait)
            }
            Self::FailOver(_) | Self::FailOverOnReturn(_) => Some(Duration::ZERO),
            Self::SwitchModel(..) | Self::GiveUp(_) => None,
        }
    }
}

/// Returns the upstream's own statement about retrying.
fn should_retry(broken: &UpstreamError) -> Option<bool> {
    match broken.failure.headers.get("x-should-retry") {
        Some("true") => Some(true),
        Some("false") => Some(false),
        _ => None,
    }
}
