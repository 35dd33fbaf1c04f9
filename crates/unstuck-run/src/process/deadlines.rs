//! When something is due during an attempt: its limits and the ticks that the sink wants.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::process_result::TimeLimit;
use super::spec::ProcessLimits;

const TICK_INTERVAL: Duration = Duration::from_millis(200);

/// The limits of one attempt as moments.
pub(super) struct Deadlines {
    started: Instant,
    limits: ProcessLimits,
    paused: Duration,
    last_output: Instant,
    next_tick: Option<Instant>,
}

impl Deadlines {
    /// Counts from now.
    pub(super) fn new(limits: ProcessLimits, ticks: bool) -> Self {
        let now = Instant::now();
        Self {
            started: now,
            limits,
            paused: Duration::ZERO,
            last_output: now,
            next_tick: ticks.then(|| now + TICK_INTERVAL),
        }
    }

    /// The time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Takes note that the child wrote something.
    pub(super) fn note_output(&mut self) {
        if self.limits.idle_timeout.is_some() {
            self.last_output = Instant::now();
        }
    }

    /// Does not count a time during which the person had stopped everything.
    pub(super) fn exclude_pause(&mut self, pause: Duration) {
        self.paused += pause;
        self.last_output += pause;
    }

    /// Limits nothing any more: the child is ending already.
    pub(super) fn disable(&mut self) {
        self.limits.timeout = None;
        self.limits.idle_timeout = None;
    }

    /// Waits until something is due.
    pub(super) async fn wait_until_due(&self) {
        let limits = self.limit_instants().map(|(at, _)| at);
        match limits.chain(self.next_tick).min() {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// The limit that is reached.
    pub(super) fn reached_limit(&self) -> Option<TimeLimit> {
        let now = Instant::now();
        let reached = self.limit_instants().find(|(at, _)| *at <= now);
        reached.map(|(_, limit)| limit)
    }

    /// Whether it is time for a tick; the next one is then set.
    pub(super) fn take_tick(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.next_tick.is_some_and(|at| at <= now);
        if is_due {
            self.next_tick = Some(now + TICK_INTERVAL);
        }
        is_due
    }

    /// A moment that lies beyond what a clock can hold never comes.
    fn limit_instants(&self) -> impl Iterator<Item = (Instant, TimeLimit)> {
        let whole = |after| self.started.checked_add(self.paused)?.checked_add(after);
        let timeout = self.limits.timeout.and_then(whole);
        let idle = self.limits.idle_timeout;
        let idle = idle.and_then(|after| self.last_output.checked_add(after));
        timeout
            .map(|at| (at, TimeLimit::Timeout))
            .into_iter()
            .chain(idle.map(|at| (at, TimeLimit::IdleTimeout)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(timeout: Option<u64>, idle: Option<u64>) -> ProcessLimits {
        ProcessLimits {
            timeout: timeout.map(Duration::from_secs),
            idle_timeout: idle.map(Duration::from_secs),
            ..ProcessLimits::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn output_moves_the_idle_limit_and_not_the_other() {
        let mut deadlines = Deadlines::new(limits(Some(25), Some(10)), false);
        for _ in 0..2 {
            tokio::time::advance(Duration::from_secs(9)).await;
            deadlines.note_output();
            assert_eq!(deadlines.reached_limit(), None);
        }
        deadlines.wait_until_due().await;
        assert_eq!(deadlines.reached_limit(), Some(TimeLimit::Timeout));
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_in_which_the_person_stopped_everything_does_not_count() {
        let mut deadlines = Deadlines::new(limits(Some(10), Some(10)), false);
        tokio::time::advance(Duration::from_secs(60)).await;
        deadlines.exclude_pause(Duration::from_secs(60));
        assert_eq!(deadlines.reached_limit(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_of_eternity_is_no_limit() {
        let limits = ProcessLimits {
            timeout: Some(Duration::MAX),
            ..ProcessLimits::default()
        };
        assert_eq!(Deadlines::new(limits, false).reached_limit(), None);
    }
}
