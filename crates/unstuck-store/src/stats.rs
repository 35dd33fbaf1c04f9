//! What can be asked about many runs together; it is answered from the hourly counts alone.

use serde::Serialize;
use unstuck_core::{Kind, Timestamp};

use crate::rollup::{self, BUCKETS};

/// What is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Metric {
    /// Attempts that ended, by `succeeded`, `to_store_error` and `interrupted`.
    #[default]
    Attempts,
    /// Attempts that answered a failure, by `answer_outcome` and `did_not_help`.
    Answers,
    /// Sessions that did what they should after they had failed; how long that took is the time since their first failure.
    Recoveries,
    /// Runs that ended or stopped, by `run_succeeded` and the like.
    Runs,
}

impl Metric {
    /// The outcomes that are counted; none for those of runs, which have a prefix.
    pub(crate) fn outcomes(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Attempts => Some(rollup::ATTEMPT_OUTCOMES),
            Self::Answers => Some(rollup::ANSWER_OUTCOMES),
            Self::Recoveries => Some(rollup::RECOVERY_OUTCOMES),
            Self::Runs => None,
        }
    }
}

/// What is told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// The hour.
    Hour,
    /// The day, in UTC.
    Day,
    /// The project.
    Project,
    /// The kind of failure.
    Kind,
    /// The model.
    Model,
    /// The strategy; the level where the answer was none of a chain.
    Strategy,
    /// The level of the answer; nothing where no answers are counted.
    Level,
    /// What came of it.
    Outcome,
}

/// A question about many runs together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatsQuery {
    /// What is counted.
    pub metric: Metric,
    /// What is told apart; all is one sum if nothing is.
    pub group_by: Vec<Dimension>,
    /// Only this project.
    pub project: Option<String>,
    /// Only this kind.
    pub kind: Option<Kind>,
    /// Only this model.
    pub model: Option<String>,
    /// From the hour of this moment on.
    pub since: Option<Timestamp>,
    /// Before the hour of this moment.
    pub until: Option<Timestamp>,
}

/// One line of the answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatsRow {
    /// The beginning of the hour or day, where they are told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// The project, where they are told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The kind, where they are told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The model, where they are told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The strategy, where they are told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// The level, where they are told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// The outcome, where they are told apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// How many.
    pub count: u64,
    /// How long they took together, in milliseconds.
    pub duration_ms: u64,
    /// What they cost together, in USD.
    pub cost_usd: f64,
    /// How many took how long; the bounds are [`BOUNDS_MS`](rollup::BOUNDS_MS).
    pub histogram: [u64; BUCKETS],
}

impl StatsRow {
    /// The duration that this share of them (from 0 to 1) did not exceed, as the upper bound of its bucket;
    /// none if it is longer than all bounds, or if there are none.
    pub fn quantile_ms(&self, share: f64) -> Option<u64> {
        quantile_ms(&self.histogram, share)
    }
}

/// The duration that this share of those in a histogram did not exceed, as the upper bound of its bucket.
pub(crate) fn quantile_ms(histogram: &[u64; BUCKETS], share: f64) -> Option<u64> {
    let count: u64 = histogram.iter().sum();
    let wanted = (share.clamp(0.0, 1.0) * count as f64).ceil() as u64;
    let mut seen = 0;
    let bucket = histogram.iter().position(|count| {
        seen += count;
        seen >= wanted.max(1)
    });
    rollup::BOUNDS_MS.get(bucket?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_bound_of_its_bucket() {
        let mut line = StatsRow {
            from: None,
            project: None,
            kind: None,
            model: None,
            strategy: None,
            level: None,
            outcome: None,
            count: 10,
            duration_ms: 5000,
            cost_usd: 0.0,
            histogram: [0; BUCKETS],
        };
        (line.histogram[1], line.histogram[3], line.histogram[11]) = (5, 4, 1);
        assert_eq!(line.quantile_ms(0.5), Some(300));
        assert_eq!(line.quantile_ms(0.9), Some(3_000));
        assert_eq!(line.quantile_ms(1.0), None);
    }
}
