//! Time samples, their medians and ratios.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Number of measurement rounds.
pub(crate) const ROUNDS: u64 = 7;

/// Minimum duration of a round, for which short work is repeated.
const MIN_ROUND: Duration = Duration::from_millis(40);

/// Returns the current monotonic time.
pub(crate) fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
    Instant::now()
}

/// Returns the seconds of one execution.
pub(crate) fn time_once<T>(work: impl FnOnce() -> T) -> f64 {
    let begin = now();
    black_box(work());
    begin.elapsed().as_secs_f64()
}

/// Returns the average seconds of a short task, repeated until the clock is precise enough.
pub(crate) fn time_repeated<T>(mut work: impl FnMut() -> T) -> f64 {
    let begin = now();
    let mut times = 0.0;
    loop {
        black_box(work());
        times += 1.0;
        let passed = begin.elapsed();
        if passed >= MIN_ROUND {
            return passed.as_secs_f64() / times;
        }
    }
}

/// The samples of all rounds.
#[derive(Debug, Default, Clone)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// Applies a function to every sample.
    pub(crate) fn map(&self, change: impl Fn(f64) -> f64) -> Self {
        self.0.iter().copied().map(change).collect()
    }

    /// Returns the ratio to other samples, round by round.
    pub(crate) fn ratio_to(&self, other: &Self) -> Self {
        self.0.iter().zip(&other.0).map(|(a, b)| a / b).collect()
    }

    /// Returns the difference to other samples, round by round.
    pub(crate) fn minus(&self, other: &Self) -> Self {
        self.0.iter().zip(&other.0).map(|(a, b)| a - b).collect()
    }

    pub(crate) fn median(&self) -> f64 {
        let sorted = self.sorted();
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => f64::NAN,
            odd if odd % 2 == 1 => sorted[middle],
            _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
        }
    }

    /// Returns the smallest and the largest sample.
    pub(crate) fn range(&self) -> (f64, f64) {
        let sorted = self.sorted();
        let end = |value: Option<&f64>| value.copied().unwrap_or(f64::NAN);
        (end(sorted.first()), end(sorted.last()))
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ratios_are_computed_by_round() {
        let samples: Samples = [4.0, 1.0, 2.0].into_iter().collect();
        assert_eq!((samples.median(), samples.range()), (2.0, (1.0, 4.0)));
        let even: Samples = [1.0, 3.0].into_iter().collect();
        assert_eq!(even.median(), 2.0);
        assert_eq!(even.ratio_to(&even).median(), 1.0);
    }
}
