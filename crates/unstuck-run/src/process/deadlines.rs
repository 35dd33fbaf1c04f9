//! The deadlines of an attempt: its time limits and the ticks of the sink.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::process_result::ReachedTimeLimit;
use super::spec::ProcessTimeouts;

const TICK_INTERVAL: Duration = Duration::from_millis(200);

/// The limits of one attempt as instants.
pub(super) struct Deadlines {
    started: Instant,
    limits: ProcessTimeouts,
    paused: Duration,
    last_output: Instant,
    next_tick: Option<Instant>,
}

impl Deadlines {
    /// Starts the deadlines now.
    pub(super) fn new(limits: ProcessTimeouts, ticks: bool) -> Self {
        let now = Instant::now();
        Self {
            started: now,
            limits,
            paused: Duration::ZERO,
            last_output: now,
            next_tick: ticks.then(|| now + TICK_INTERVAL),
        }
    }

    /// Returns the time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Records that the child wrote output.
    pub(super) fn note_output(&mut self) {
        if self.limits.idle_timeout.is_some() {
            self.last_output = Instant::now();
        }
    }

    /// Excludes a pause during which the user had suspended everything.
    pub(super) fn exclude_pause(&mut self, pause: Duration) {
        self.paused += pause;
        self.last_output += pause;
    }

    /// Disables all limits: the child is ending already.
    pub(super) fn disable(&mut self) {
        self.limits.timeout = None;
        self.limits.idle_timeout = None;
    }

    /// Waits until a deadline is reached.
    pub(super) async fn wait_until_due(&self) {
        let limits = self.limit_instants().map(|(at, _)| at);
        match limits.chain(self.next_tick).min() {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    }

    /// Returns the limit that is reached.
    pub(super) fn reached_limit(&self) -> Option<ReachedTimeLimit> {
        let now = Instant::now();
        let reached = self.limit_instants().find(|(at, _)| *at <= now);
        reached.map(|(_, limit)| limit)
    }

    /// Returns true if a tick is due, and schedules the next one.
    pub(super) fn take_tick(&mut self) -> bool {
        let now = Instant::now();
        let is_due = self.next_tick.is_some_and(|at| at <= now);
        if is_due {
            self.next_tick = Some(now + TICK_INTERVAL);
        }
        is_due
    }

    /// Returns the instants of the limits; one beyond the range of the clock never comes.
    fn limit_instants(&self) -> impl Iterator<Item = (Instant, ReachedTimeLimit)> {
        let whole = |after| self.started.checked_add(self.paused)?.checked_add(after);
        let timeout = self.limits.timeout.and_then(whole);
        let idle = self.limits.idle_timeout;
        let idle = idle.and_then(|after| self.last_output.checked_add(after));
        timeout
            .map(|at| (at, ReachedTimeLimit::Timeout))
            .into_iter()
            .chain(idle.map(|at| (at, ReachedTimeLimit::IdleTimeout)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(timeout: Option<u64>, idle: Option<u64>) -> ProcessTimeouts {
        ProcessTimeouts {
            timeout: timeout.map(Duration::from_secs),
            idle_timeout: idle.map(Duration::from_secs),
            ..ProcessTimeouts::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn output_extends_the_idle_timeout_but_not_the_timeout() {
        let mut deadlines = Deadlines::new(limits(Some(25), Some(10)), false);
        for _ in 0..2 {
            tokio::time::advance(Duration::from_secs(9)).await;
            deadlines.note_output();
            assert_eq!(deadlines.reached_limit(), None);
        }
        deadlines.wait_until_due().await;
        assert_eq!(deadlines.reached_limit(), Some(ReachedTimeLimit::Timeout));
    }

    #[tokio::test(start_paused = true)]
    async fn suspended_time_is_not_counted() {
        let mut deadlines = Deadlines::new(limits(Some(10), Some(10)), false);
        tokio::time::advance(Duration::from_secs(60)).await;
        deadlines.exclude_pause(Duration::from_secs(60));
        assert_eq!(deadlines.reached_limit(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn infinite_limit_is_never_reached() {
        let limits = ProcessTimeouts {
            timeout: Some(Duration::MAX),
            ..ProcessTimeouts::default()
        };
        assert_eq!(Deadlines::new(limits, false).reached_limit(), None);
    }
}
