//! The wait between two tries: no longer than the client waits, over early when the upstream is seen to be back, and after a
//! while only with the right to ask that all waiting calls share.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use unstuck_core::decision::Breaker;
use unstuck_core::diagnosis::WaitSource;
use unstuck_core::{Kind, Timestamp};

use super::Call;
use super::tries::Tries;
use crate::clock;

/// How often it is looked whether another process has seen the upstream come back.
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
    /// Waits until the next try may be made after a failure of that kind.
    pub(super) async fn rest(&self, tries: &Tries, wait: Duration, kind: Kind) -> Rested {
        let url = self.url(tries);
        let health = self.shared.health.of(&url);
        let (since, start) = (clock::at(), Instant::now());
        let mut until = start + wait;
        let is_down = Breaker::counts(kind);
        // While the client would try by itself, it is asked for on its own behalf.
        let is_shared = self.own.soonest(tries.all() + 1).is_none();
        let mut heard = health.listen();
        heard.mark_unchanged();
        loop {
            let deadline = self.deadline();
            if until.min(deadline) > Instant::now() {
                let slept = self.sleep(until.min(deadline), &url, since, is_down, &mut heard);
                if slept.await {
                    self.ramp(health.wave(), deadline).await;
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
                    self.ramp(health.wave(), deadline).await;
                    return self.in_the_end(deadline);
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
