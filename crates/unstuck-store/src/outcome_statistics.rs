//! Statistics over many runs, from the hourly counts alone.

use serde::Serialize;
use unstuck_core::{FailureKind, Timestamp};

use crate::rollup::{self, BUCKETS};

/// A counted quantity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CountedQuantity {
    /// Attempts that ended: `succeeded`, `failed` or `interrupted`.
    #[default]
    Attempts,
    /// Attempts after a failure: `helped` or `did_not_help`.
    Answers,
    /// Sessions that succeeded after a failure; the duration is the time since the first failure.
    Recoveries,
    /// Runs that ended or stopped, as `run_succeeded` and so on.
    Runs,
}

impl CountedQuantity {
    /// Returns the counted outcomes; `None` for runs, whose outcomes share a prefix.
    pub(crate) fn outcomes(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Attempts => Some(rollup::ATTEMPT_OUTCOMES),
            Self::Answers => Some(rollup::ANSWER_OUTCOMES),
            Self::Recoveries => Some(rollup::RECOVERY_OUTCOMES),
            Self::Runs => None,
        }
    }
}

/// A grouping dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StatisticsDimension {
    /// The hour.
    Hour,
    /// The day (UTC).
    Day,
    /// The project.
    Project,
    /// The failure kind.
    Kind,
    /// The model.
    Model,
    /// The strategy; the level where no chain strategy was used.
    Strategy,
    /// The recovery level; empty where no strategies are counted.
    Level,
    /// The outcome.
    Outcome,
}

/// A statistics query over many runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatsQuery {
    /// The quantity to count.
    pub metric: CountedQuantity,
    /// The grouping dimensions; empty gives a single total.
    pub group_by: Vec<StatisticsDimension>,
    /// The project root.
    pub project: Option<String>,
    /// The failure kind.
    pub kind: Option<FailureKind>,
    /// The model.
    pub model: Option<String>,
    /// The earliest hour.
    pub since: Option<Timestamp>,
    /// The latest hour, exclusive.
    pub until: Option<Timestamp>,
}

/// One group of a statistics result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatsRow {
    /// The start of the hour or day, if grouped by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    /// The project, if grouped by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The failure kind, if grouped by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The model, if grouped by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The strategy, if grouped by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// The level, if grouped by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// The outcome, if grouped by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The count.
    pub count: u64,
    /// The total duration in milliseconds.
    pub duration_ms: u64,
    /// The total cost in USD.
    pub cost_usd: f64,
    /// The duration histogram; the bounds are [`BOUNDS_MS`](rollup::BOUNDS_MS).
    pub histogram: [u64; BUCKETS],
}

impl StatsRow {
    /// Returns the duration quantile (`share` from 0 to 1) as the upper bound of its bucket; `None` if it exceeds all
    /// bounds or nothing was counted.
    pub fn quantile_ms(&self, share: f64) -> Option<u64> {
        quantile_ms(&self.histogram, share)
    }
}

/// Returns the quantile of a histogram as the upper bound of its bucket.
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
    fn quantile_is_the_upper_bound_of_its_bucket() {
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
