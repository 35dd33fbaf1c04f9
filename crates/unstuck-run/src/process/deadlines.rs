//! When something is due during an attempt: its limits and the ticks that the sink wants.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::ended::Limit;
use super::spec::Limits;

const TICK: Duration = Duration::from_millis(200);

/// The limits of one attempt as moments.
pub(super) struct Deadlines {
    started: Instant,
    limits: Limits,
    paused: Duration,
    last_output: Instant,
    next_tick: Option<Instant>,
}

impl Deadlines {
    /// Counts from now.
    pub(super) fn new(limits: Limits, ticks: bool) -> Self {
        let now = Instant::now();
        Self {
            started: now,
            limits,
            paused: Duration::ZERO,
            last_output: now,
            next_tick: ticks.then(|| now + TICK),
        }
    }

    /// The time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Takes note that the child wrote something.
    pub(super) fn wrote(&mut self) {
        if self.limits.idle_timeout.is_some() {
            self.last_output = Instant::now();
        }
    }

    /// Does not count a time during which the person had stopped everything.
    pub(super) fn forgive(&mut self, pause: Duration) {
        self.paused += pause;
        self.last_output += pause;
    }

    /// Limits nothing any more: the child is ending already.
    pub(super) fn lift(&mut self) {
        self.limits.timeout = None;
        self.limits.idle_timeout = None;
    }

    /// Waits until something is due.
    pub(super) async fn due(&self) {
        let limits = self.moments().map(|(at, _)| at);
        match limits.chain(self.next_tick).min() {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// The limit that is reached.
    pub(super) fn reached(&self) -> Option<Limit> {
        let now = Instant::now();
        let reached = self.moments().find(|(at, _)| *at <= now);
        reached.map(|(_, limit)| limit)
    }

    /// Whether it is time for a tick; the next one is then set.
    pub(super) fn ticks(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.next_tick.is_some_and(|at| at <= now);
        if is_due {
            self.next_tick = Some(now + TICK);
        }
        is_due
    }

    /// A moment that lies beyond what a clock can hold never comes.
    fn moments(&self) -> impl Iterator<Item = (Instant, Limit)> {
        let whole = |after| self.started.checked_add(self.paused)?.checked_add(after);
        let timeout = self.limits.timeout.and_then(whole);
        let idle = self.limits.idle_timeout;
        let idle = idle.and_then(|after| self.last_output.checked_add(after));
        timeout
            .map(|at| (at, Limit::Timeout))
            .into_iter()
            .chain(idle.map(|at| (at, Limit::IdleTimeout)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(timeout: Option<u64>, idle: Option<u64>) -> Limits {
        Limits {
            timeout: timeout.map(Duration::from_secs),
            idle_timeout: idle.map(Duration::from_secs),
            ..Limits::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn output_moves_the_idle_limit_and_not_the_other() {
        let mut deadlines = Deadlines::new(limits(Some(25), Some(10)), false);
        for _ in 0..2 {
            tokio::time::advance(Duration::from_secs(9)).await;
            deadlines.wrote();
            assert_eq!(deadlines.reached(), None);
        }
        deadlines.due().await;
        assert_eq!(deadlines.reached(), Some(Limit::Timeout));
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_in_which_the_person_stopped_everything_does_not_count() {
        let mut deadlines = Deadlines::new(limits(Some(10), Some(10)), false);
        tokio::time::advance(Duration::from_secs(60)).await;
        deadlines.forgive(Duration::from_secs(60));
        assert_eq!(deadlines.reached(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_of_eternity_is_no_limit() {
        let limits = Limits {
            timeout: Some(Duration::MAX),
            ..Limits::default()
        };
        assert_eq!(Deadlines::new(limits, false).reached(), None);
    }
}
