//! The results of a simulation.

use std::time::Duration;

/// The results of a simulation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Report {
    /// The events in each tenth of a second.
    pub(crate) tenths: Vec<TenthSecondCounts>,
    /// Calls that succeeded in the end.
    pub(crate) succeeded: u64,
    /// Calls that failed permanently.
    pub(crate) given_up: u64,
    /// Times from the first failure of a call to its success.
    pub(crate) recoveries: Vec<Duration>,
    /// Durations of calls, for clients outside the busy session.
    pub(crate) responses: Vec<Duration>,
}

/// The events in a tenth of a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TenthSecondCounts {
    /// Calls started by clients.
    pub(crate) offered: u32,
    /// Attempts that reached the upstream.
    pub(crate) sent: u32,
    /// Successful attempts.
    pub(crate) good: u32,
    /// Failed attempts.
    pub(crate) failed: u32,
    /// Attempts that failed at the rate limit; included in `failed`.
    pub(crate) limited: u32,
    /// Calls held by admission control.
    pub(crate) waiting: u32,
}

impl Report {
    pub(super) fn at(&mut self, millis: i64) -> &mut TenthSecondCounts {
        let at = usize::try_from(millis / 100).unwrap_or(0);
        if self.tenths.len() <= at {
            self.tenths.resize(at + 1, TenthSecondCounts::default());
        }
        &mut self.tenths[at]
    }

    /// Returns the average number per second between two times.
    pub(crate) fn per_second(
        &self,
        from: f64,
        until: f64,
        what: impl Fn(&TenthSecondCounts) -> u32,
    ) -> f64 {
        let sum: u32 = self.slice(from, until).iter().map(what).sum();
        f64::from(sum) / (until - from)
    }

    /// Returns the lowest throughput per second of any window of this length between two times.
    pub(crate) fn least_goodput(&self, window: f64, from: f64, until: f64) -> f64 {
        let starts = (0..).map(|step| from + f64::from(step) / 10.0);
        starts
            .take_while(|start| start + window <= until + 1e-9)
            .map(|start| self.per_second(start, start + window, |tenth| tenth.good))
            .fold(f64::INFINITY, f64::min)
    }

    /// Returns the seconds after `end` until throughput is back, with hardly any failures, for a second.
    pub(crate) fn time_to_recovery(&self, end: f64, goodput: f64) -> Option<f64> {
        let last = self.tenths.len() as f64 / 10.0 - 1.0;
        let starts = (0..).map(|step| f64::from(step) / 10.0);
        starts
            .take_while(|start| end + start <= last)
            .find(|start| {
                let second = |what: fn(&TenthSecondCounts) -> u32| {
                    self.per_second(end + start, end + start + 1.0, what)
                };
                let good = second(|tenth| tenth.good);
                good >= goodput && second(|tenth| tenth.failed) <= 0.05 * good
            })
    }

    /// Returns the seconds after `end` until no call is held any more.
    pub(crate) fn time_until_queue_empty(&self, end: f64) -> Option<f64> {
        let first = index(end);
        let after = self.tenths.get(first..)?.iter();
        let found = after.enumerate().find(|(_, tenth)| tenth.waiting == 0);
        found.map(|(tenths, _)| tenths as f64 / 10.0)
    }

    /// The share of calls that succeeded.
    pub(crate) fn success(&self) -> f64 {
        self.succeeded as f64 / (self.succeeded + self.given_up).max(1) as f64
    }

    fn slice(&self, from: f64, until: f64) -> &[TenthSecondCounts] {
        let until = index(until).min(self.tenths.len());
        self.tenths.get(index(from)..until).unwrap_or_default()
    }
}

/// Returns the percentile of the times.
pub(crate) fn percentile(times: &[Duration], share: f64) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let at = whole(share * sorted.len().saturating_sub(1) as f64);
    sorted.get(at).copied().unwrap_or_default()
}

fn index(seconds: f64) -> usize {
    whole(seconds * 10.0)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts from floats saturate"
)]
fn whole(number: f64) -> usize {
    number.round() as usize
}
