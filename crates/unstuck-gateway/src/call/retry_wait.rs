//! The wait between two attempts: limited by the client's deadline, ended early when the upstream recovers, and after a
//! while only with the probe permit that all waiting calls share.

use std::future::Future;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use unstuck_core::decision::{CallWait, CircuitBreaker, NetworkStatus, WaitPurpose};
use unstuck_core::diagnosis::RetryAfterSource;
use unstuck_core::network_symptom::{NetworkSymptom, find_symptom, is_known_host};
use unstuck_core::{FailureKind, Timestamp};

use super::GatewayCall;
use super::retry_state::RetryState;
use super::upstream_error::UpstreamError;
use crate::recorder::GatewaySessionEventKind;
use crate::system_clock;
use crate::upstream_health::{UpstreamHealth, release_wave};

/// The interval for checking whether another process saw the upstream recover, or whether the network is back.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The time between two waves of calls released after an outage.
const WAVE_INTERVAL: Duration = Duration::from_secs(1);

/// The result of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RetryWaitEnd {
    /// The next attempt may be made.
    Over,
    /// The next attempt may be made: it is the probe on behalf of all calls that wait for the upstream.
    Probe,
    /// The client does not wait any longer.
    TimeUp,
}

/// The result of a probe request.
enum ProbeAnswer {
    /// The caller may probe.
    Probe,
    /// The upstream has recovered at this time.
    Recovered(Timestamp),
    /// No probe is allowed before this time.
    Wait(Timestamp),
}

impl GatewayCall {
    /// Returns the network state suggested by a failure: offline, or an unknown host.
    pub(super) async fn network_state(
        &self,
        tries: &RetryState,
        broken: &UpstreamError,
        has_answered: bool,
    ) -> NetworkStatus {
        let is_timed = self.session.policy().give_up_after.is_some();
        if !is_timed || has_answered || broken.failure.status.is_some() {
            return NetworkStatus::Up;
        }
        let upstream = &self.state.settings.upstreams[tries.target.upstream];
        let said = find_symptom(&broken.message);
        // A pooled connection gives no error when the network goes away.
        let may_be_gone = said.is_some() || broken.is_timeout() && !upstream.is_nearby;
        if may_be_gone && self.state.connectivity.is_offline().await {
            return NetworkStatus::Down;
        }
        let host = upstream.base.host().unwrap_or_default();
        match said {
            Some(NetworkSymptom::Unresolved(_)) if !is_known_host(host) => {
                NetworkStatus::UnknownHost
            }
            Some(_) | None => NetworkStatus::Up,
        }
    }

    /// Waits until the next attempt is allowed, or requested by a person; a wait for the network uses up no limit.
    pub(super) async fn wait_before_retry(
        &self,
        tries: &mut RetryState,
        wait_for: WaitPurpose,
        wait: Duration,
        kind: FailureKind,
    ) -> RetryWaitEnd {
        let start = system_clock::timestamp_now();
        let shown = CallWait {
            until: start.after(wait),
            kind,
            wait_purpose: wait_for,
            give_up_at: tries.give_up_at,
        };
        self.session.call_waits().set(&self.id, shown);
        let is_for_network = wait_for == WaitPurpose::Network;
        let waiting = async {
            if is_for_network {
                return self.await_network(tries, wait).await;
            }
            // While the client would retry by itself, the call probes on its behalf.
            let is_shared = self.client_retry_time(tries).is_none();
            self.wait_for_upstream(tries, wait, kind, is_shared).await
        };
        let rested = self.unless_requested(start, waiting).await;
        let now = system_clock::timestamp_now();
        tries.is_requested = rested.is_none();
        if is_for_network || tries.is_requested {
            tries.history.record_actual_start(now);
        }
        if is_for_network {
            self.session.add_offline_gap(start, now.since(start));
        }
        rested.unwrap_or(RetryWaitEnd::Over)
    }

    /// Waits for a probe permit, or until a person requests the attempt.
    pub(super) async fn wait_for_probe(
        &self,
        tries: &mut RetryState,
        kind: FailureKind,
    ) -> RetryWaitEnd {
        let waiting = self.wait_for_upstream(tries, Duration::ZERO, kind, true);
        let rested = self
            .unless_requested(system_clock::timestamp_now(), waiting)
            .await;
        tries.is_requested = rested.is_none();
        rested.unwrap_or(RetryWaitEnd::Over)
    }

    /// Waits; returns `None` once a person requests the next attempt at once.
    pub(super) async fn unless_requested<T>(
        &self,
        since: Timestamp,
        waiting: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::select! {
            biased;
            ended = waiting => Some(ended),
            () = self.session.call_waits().retry_requested(since) => {
                let told = GatewaySessionEventKind::RetryRequested;
                self.state.events.publish(&self.session, told);
                None
            }
        }
    }

    /// Waits until the network is back. If it only seems to be down, the upstream is still probed now and then.
    async fn await_network(&self, tries: &RetryState, wait: Duration) -> RetryWaitEnd {
        let url = self.upstream_url(tries);
        let health = self.state.health.get(&url);
        let (since, start) = (system_clock::timestamp_now(), Instant::now());
        let mut ask = start + self.state.settings.probe_every;
        loop {
            let (deadline, now) = (self.deadline(), Instant::now());
            if !self.state.connectivity.is_offline().await {
                if let Some(back) = self.state.connectivity.online_since().await {
                    health.mark_recovered(back);
                }
                let wave = self.next_wave(&url, &health).await;
                self.sleep_for_wave(wave, deadline).await;
                return self.end_of_wait(deadline);
            }
            if now >= deadline {
                return RetryWaitEnd::TimeUp;
            }
            if now >= start + wait {
                return RetryWaitEnd::Over;
            }
            if now >= ask {
                match self.request_probe(&url, since).await {
                    ProbeAnswer::Probe | ProbeAnswer::Recovered(_) => return RetryWaitEnd::Over,
                    ProbeAnswer::Wait(next) => {
                        ask = now + next.since(system_clock::timestamp_now())
                    }
                }
            }
            tokio::time::sleep_until((now + POLL_INTERVAL).min(deadline)).await;
        }
    }

    /// Waits until the next attempt is allowed after a failure of that kind, and for a probe permit where these are
    /// shared.
    async fn wait_for_upstream(
        &self,
        tries: &RetryState,
        wait: Duration,
        kind: FailureKind,
        is_shared: bool,
    ) -> RetryWaitEnd {
        let url = self.upstream_url(tries);
        let health = self.state.health.get(&url);
        let (mut since, start) = (system_clock::timestamp_now(), Instant::now());
        let mut until = start + wait;
        // A wait for the permit ends once another call got through; the wait that a rate limit states does not.
        let mut ends_on_recovery = CircuitBreaker::is_outage(kind);
        let mut heard = health.subscribe();
        heard.mark_unchanged();
        loop {
            let deadline = self.deadline();
            if until.min(deadline) > Instant::now() {
                let until = until.min(deadline);
                let slept = self.sleep_until(until, &url, since, ends_on_recovery, &mut heard);
                if slept.await && self.await_wave(&url, &health, deadline).await {
                    return self.end_of_wait(deadline);
                }
            }
            if Instant::now() >= deadline {
                return RetryWaitEnd::TimeUp;
            }
            if !is_shared {
                return RetryWaitEnd::Over;
            }
            match self.request_probe(&url, since).await {
                ProbeAnswer::Probe => return RetryWaitEnd::Probe,
                ProbeAnswer::Recovered(at) => {
                    health.mark_recovered(at);
                    if self.await_wave(&url, &health, deadline).await {
                        return self.end_of_wait(deadline);
                    }
                    since = system_clock::timestamp_now();
                }
                ProbeAnswer::Wait(next) => {
                    self.notify_held(next, kind, RetryAfterSource::Guess);
                    until = Instant::now() + next.since(system_clock::timestamp_now());
                    ends_on_recovery = true;
                }
            }
        }
    }

    fn end_of_wait(&self, deadline: Instant) -> RetryWaitEnd {
        if Instant::now() >= deadline {
            RetryWaitEnd::TimeUp
        } else {
            RetryWaitEnd::Over
        }
    }

    /// Sleeps until the given time; returns true if the upstream recovered before.
    async fn sleep_until(
        &self,
        until: Instant,
        url: &str,
        since: Timestamp,
        ends_on_recovery: bool,
        heard: &mut watch::Receiver<Option<Timestamp>>,
    ) -> bool {
        if !ends_on_recovery {
            tokio::time::sleep_until(until).await;
            return false;
        }
        loop {
            let look = (Instant::now() + POLL_INTERVAL).min(until);
            tokio::select! {
                Ok(()) = heard.changed() => return true,
                () = tokio::time::sleep_until(look) => {}
            }
            if look >= until {
                return false;
            }
            let recovered = self.state.recorder.upstream_recovered_at(url).await;
            if let Some(at) = recovered.filter(|at| *at > since) {
                self.state.health.get(url).mark_recovered(at);
                return true;
            }
        }
    }

    /// Requests the permit to probe the upstream.
    async fn request_probe(&self, url: &str, since: Timestamp) -> ProbeAnswer {
        let (now, every) = (
            system_clock::timestamp_now(),
            self.state.settings.probe_every,
        );
        match self.state.recorder.claim_probe(url, now, every).await {
            Some(slot) => match slot.recovered.filter(|at| *at > since) {
                Some(at) => ProbeAnswer::Recovered(at),
                None if slot.is_granted => ProbeAnswer::Probe,
                None => ProbeAnswer::Wait(slot.next),
            },
            None => match self.state.health.get(url).claim_probe(now, every) {
                Ok(()) => ProbeAnswer::Probe,
                Err(next) => ProbeAnswer::Wait(next),
            },
        }
    }

    /// Waits for a slot among the released calls; returns true if the upstream has not failed again meanwhile.
    async fn await_wave(&self, url: &str, health: &UpstreamHealth, deadline: Instant) -> bool {
        let wave = self.next_wave(url, health).await;
        self.sleep_for_wave(wave, deadline).await;
        !health.has_failed_again()
    }

    /// Returns the release wave of this call among the waiting calls of all processes, or of this process if they cannot
    /// be counted together in time.
    async fn next_wave(&self, url: &str, health: &UpstreamHealth) -> u32 {
        let own = health.next_wave();
        let recorder = &self.state.recorder;
        let counted = recorder.count_released_call(url, system_clock::timestamp_now());
        match tokio::time::timeout(WAVE_INTERVAL, counted).await {
            Ok(Some(position)) => release_wave(position),
            Ok(None) | Err(_) => own,
        }
    }

    /// Releases waiting calls in waves, so that a recovering upstream is not hit by all at once.
    async fn sleep_for_wave(&self, wave: u32, deadline: Instant) {
        let jitter = WAVE_INTERVAL.mul_f64(self.state.random_draw().fraction());
        let wait = WAVE_INTERVAL.saturating_mul(wave) + jitter;
        tokio::time::sleep_until((Instant::now() + wait).min(deadline)).await;
    }

    /// Returns the URL of the current target.
    pub(super) fn upstream_url(&self, tries: &RetryState) -> String {
        let upstream = &self.state.settings.upstreams[tries.target.upstream];
        upstream.base.to_string()
    }
}
