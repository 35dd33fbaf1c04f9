//! The wait between two tries: no longer than the client waits, over early when the upstream is seen to be back, and after a
//! while only with the right to ask that all waiting calls share.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use unstuck_core::decision::{Breaker, Network, WaitFor};
use unstuck_core::diagnosis::WaitSource;
use unstuck_core::network::{Symptom, is_known_host, symptom};
use unstuck_core::{Kind, Timestamp};

use super::Call;
use super::broken::Broken;
use super::tries::Tries;
use crate::clock;
use crate::health::UpstreamHealth;

/// How often it is looked whether another process has seen the upstream come back, or whether the network is back.
const LOOK: Duration = Duration::from_secs(2);
/// The time between two waves of those who go on after an outage.
const WAVE: Duration = Duration::from_secs(1);

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rested {
    /// The next try may be made.
    Over,
    /// The client does not wait any longer.
    TimeUp,
}

/// How a look at those who share an upstream ended.
enum Looked {
    /// Whoever looked may ask.
    Go,
    /// It is back.
    Back,
    /// Nobody may ask before.
    Wait(Timestamp),
}

impl Call {
    /// What a failure says about the network: whether it is gone as a whole, or the host is one that nobody knows.
    pub(super) async fn network(
        &self,
        tries: &Tries,
        broken: &Broken,
        has_answered: bool,
    ) -> Network {
        let is_timed = self.session.policy().give_up_after.is_some();
        if !is_timed || has_answered || broken.failure.status.is_some() {
            return Network::Up;
        }
        let upstream = &self.shared.settings.upstreams[tries.target.upstream];
        let said = symptom(&broken.message);
        // A connection that is kept says nothing when the network goes away.
        let may_be_gone = said.is_some() || broken.is_silent() && !upstream.is_nearby;
        if may_be_gone && self.shared.offline.is_offline().await {
            return Network::Down;
        }
        let host = upstream.base.host().unwrap_or_default();
        match said {
            Some(Symptom::Unresolved(_)) if !is_known_host(host) => Network::UnknownHost,
            Some(_) | None => Network::Up,
        }
    }

    /// Waits until the next try may be made; a wait for the network counts against nothing.
    pub(super) async fn rest_for(
        &self,
        tries: &mut Tries,
        wait_for: WaitFor,
        wait: Duration,
        kind: Kind,
    ) -> Rested {
        if wait_for != WaitFor::Network {
            // While the client would try by itself, it is asked for on its own behalf.
            let is_shared = self.own_time(tries).is_none();
            return self.rest(tries, wait, kind, is_shared).await;
        }
        let start = clock::at();
        let rested = self.await_network(tries, wait).await;
        let now = clock::at();
        tries.history.resumed(now);
        self.session.was_offline(start, now.since(start));
        rested
    }

    /// Waits until the network is back. Where it only seems to be gone, the upstream is asked now and then all the same.
    async fn await_network(&self, tries: &Tries, wait: Duration) -> Rested {
        let url = self.url(tries);
        let health = self.shared.health.of(&url);
        let (since, start) = (clock::at(), Instant::now());
        let mut ask = start + self.shared.settings.probe_every;
        loop {
            let (deadline, now) = (self.deadline(), Instant::now());
            if !self.shared.offline.is_offline().await {
                if let Some(back) = self.shared.offline.back_at().await {
                    health.came_back(back);
                }
                self.ramp(health.wave(), deadline).await;
                return self.in_the_end(deadline);
            }
            if now >= deadline {
                return Rested::TimeUp;
            }
            if now >= start + wait {
                return Rested::Over;
            }
            if now >= ask {
                match self.look(&url, since).await {
                    Looked::Go | Looked::Back => return Rested::Over,
                    Looked::Wait(next) => ask = now + next.since(clock::at()),
                }
            }
            tokio::time::sleep_until((now + LOOK).min(deadline)).await;
        }
    }

    /// Waits until the next try may be made after a failure of that kind, and for a turn to probe where these are shared.
    pub(super) async fn rest(
        &self,
        tries: &Tries,
        wait: Duration,
        kind: Kind,
        is_shared: bool,
    ) -> Rested {
        let url = self.url(tries);
        let health = self.shared.health.of(&url);
        let (mut since, start) = (clock::at(), Instant::now());
        let mut until = start + wait;
        let is_down = Breaker::counts(kind);
        let mut heard = health.listen();
        heard.mark_unchanged();
        loop {
            let deadline = self.deadline();
            if until.min(deadline) > Instant::now() {
                let slept = self.sleep(until.min(deadline), &url, since, is_down, &mut heard);
                if slept.await && self.goes_on(&health, deadline).await {
                    return self.in_the_end(deadline);
                }
            }
            if Instant::now() >= deadline {
                return Rested::TimeUp;
            }
            if !is_shared {
                return Rested::Over;
            }
            match self.look(&url, since).await {
                Looked::Go => return Rested::Over,
                Looked::Back => {
                    if self.goes_on(&health, deadline).await {
                        return self.in_the_end(deadline);
                    }
                    since = clock::at();
                }
                Looked::Wait(next) => {
                    self.tell_held(next, kind, WaitSource::Guess);
                    until = Instant::now() + next.since(clock::at());
                }
            }
        }
    }

    fn in_the_end(&self, deadline: Instant) -> Rested {
        match Instant::now() >= deadline {
            true => Rested::TimeUp,
            false => Rested::Over,
        }
    }

    /// Sleeps until a moment; whether the upstream was seen to be back before.
    async fn sleep(
        &self,
        until: Instant,
        url: &str,
        since: Timestamp,
        is_down: bool,
        heard: &mut watch::Receiver<Option<Timestamp>>,
    ) -> bool {
        if !is_down {
            tokio::time::sleep_until(until).await;
            return false;
        }
        loop {
            let look = (Instant::now() + LOOK).min(until);
            tokio::select! {
                Ok(()) = heard.changed() => return true,
                () = tokio::time::sleep_until(look) => {}
            }
            if look >= until {
                return false;
            }
            let recovered = self.shared.ledger.recovered_at(url).await;
            if let Some(at) = recovered.filter(|at| *at > since) {
                self.shared.health.of(url).came_back(at);
                return true;
            }
        }
    }

    /// Asks for the right to find out whether the upstream is back.
    async fn look(&self, url: &str, since: Timestamp) -> Looked {
        let (now, every) = (clock::at(), self.shared.settings.probe_every);
        match self.shared.ledger.take_probe(url, now, every).await {
            Some(slot) if slot.recovered.is_some_and(|at| at > since) => Looked::Back,
            Some(slot) if slot.granted => Looked::Go,
            Some(slot) => Looked::Wait(slot.next),
            None => match self.shared.health.of(url).take_probe(now, every) {
                Ok(()) => Looked::Go,
                Err(next) => Looked::Wait(next),
            },
        }
    }

    /// Waits for the turn among those who go on; whether the upstream has not failed again meanwhile.
    async fn goes_on(&self, health: &UpstreamHealth, deadline: Instant) -> bool {
        self.ramp(health.wave(), deadline).await;
        !health.is_failing()
    }

    /// Whoever waited goes on in waves, so that an upstream that has just come back is not asked by all at once.
    async fn ramp(&self, wave: u32, deadline: Instant) {
        let jitter = WAVE.mul_f64(self.shared.draw().fraction());
        let wait = WAVE.saturating_mul(wave) + jitter;
        tokio::time::sleep_until((Instant::now() + wait).min(deadline)).await;
    }

    /// The address of whoever is asked.
    pub(super) fn url(&self, tries: &Tries) -> String {
        let upstream = &self.shared.settings.upstreams[tries.target.upstream];
        upstream.base.to_string()
    }
}
