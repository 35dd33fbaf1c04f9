//! Recovery statistics over many runs, from the hourly counts alone.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use unstuck_core::{FailureKind, Timestamp};

use crate::outcome_statistics::quantile_ms;
use crate::rollup::{self, BUCKETS, RollupCell};

/// A filter for recovery statistics; unset fields match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveryStatisticsQuery {
    /// The earliest hour.
    pub since: Option<Timestamp>,
    /// The latest hour, exclusive.
    pub until: Option<Timestamp>,
    /// The project root.
    pub project: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The failure kind.
    pub kind: Option<FailureKind>,
}

/// The success count of a level or strategy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StrategySuccessCount {
    /// The level or strategy.
    pub name: String,
    /// The number of times the next attempt succeeded or failed differently.
    pub helped: u64,
    /// The number of times the same failure recurred.
    pub did_not_help: u64,
}

/// The recovery statistics of one day, or the totals of all days.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryPeriodTotals {
    /// The number of sessions that succeeded after a failure.
    pub recoveries: u64,
    /// The median time from the first failure to success, as an upper bound.
    pub median_ms: Option<u64>,
    /// The 90th percentile of the same time, as an upper bound.
    pub p90_ms: Option<u64>,
    /// The number of runs that succeeded after a failure.
    pub runs_saved: u64,
    /// The number of failed runs.
    pub runs_failed: u64,
}

/// The recovery statistics of many runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryStatisticsReport {
    /// Success counts by level.
    pub by_level: Vec<StrategySuccessCount>,
    /// Success counts by strategy; by level where no chain strategy was used.
    pub by_strategy: Vec<StrategySuccessCount>,
    /// Statistics by day (UTC).
    pub by_day: BTreeMap<String, RecoveryPeriodTotals>,
    /// The totals of all days.
    #[serde(flatten)]
    pub total: RecoveryPeriodTotals,
}

/// The sums collected for a report.
#[derive(Default)]
pub(crate) struct RecoveryStatisticsSums {
    levels: HashMap<&'static str, StrategySuccessCount>,
    strategies: HashMap<String, StrategySuccessCount>,
    days: BTreeMap<i64, DaySum>,
}

#[derive(Clone, Default)]
struct DaySum {
    day: RecoveryPeriodTotals,
    histogram: [u64; BUCKETS],
}

impl RecoveryStatisticsSums {
    /// Adds recovered sessions on that day since the Unix epoch.
    pub(crate) fn add_recoveries(&mut self, day: i64, cell: &RollupCell) {
        let sum = self.days.entry(day).or_default();
        sum.day.recoveries += cell.count;
        sum.add(&cell.histogram);
    }

    /// Adds any other outcome.
    pub(crate) fn add_outcome(&mut self, day: i64, strategy: &str, outcome: &str, count: u64) {
        match outcome {
            rollup::HELPED | rollup::DID_NOT_HELP => {
                let helped = outcome == rollup::HELPED;
                let level = self
                    .levels
                    .entry(rollup::strategy_level(strategy))
                    .or_default();
                level.add(helped, count);
                match self.strategies.get_mut(strategy) {
                    Some(known) => known.add(helped, count),
                    None => {
                        let new = self.strategies.entry(strategy.to_owned()).or_default();
                        new.add(helped, count);
                    }
                }
            }
            "run_recovered" => self.days.entry(day).or_default().day.runs_saved += count,
            "run_failed" => self.days.entry(day).or_default().day.runs_failed += count,
            _ => {}
        }
    }

    /// Returns the report for these sums.
    pub(crate) fn report(self) -> RecoveryStatisticsReport {
        let mut total = DaySum::default();
        for day in self.days.values() {
            total.day.recoveries += day.day.recoveries;
            total.day.runs_saved += day.day.runs_saved;
            total.day.runs_failed += day.day.runs_failed;
            total.add(&day.histogram);
        }
        let days = self.days.into_iter();
        RecoveryStatisticsReport {
            by_level: sorted_counts(self.levels),
            by_strategy: sorted_counts(self.strategies),
            by_day: days.map(|(day, sum)| (date(day), sum.finish())).collect(),
            total: total.finish(),
        }
    }
}

/// Returns the day as `2026-11-15`: the first ten characters of an RFC 3339 timestamp.
fn date(day: i64) -> String {
    let mut date = rollup::hour_start(day.saturating_mul(24)).to_string();
    date.truncate(10);
    date
}

fn sorted_counts(
    answers: HashMap<impl Into<String>, StrategySuccessCount>,
) -> Vec<StrategySuccessCount> {
    let named = answers
        .into_iter()
        .map(|(name, answer)| StrategySuccessCount {
            name: name.into(),
            ..answer
        });
    let mut named: Vec<_> = named.collect();
    named.sort_by(|a, b| a.name.cmp(&b.name));
    named
}

impl StrategySuccessCount {
    fn add(&mut self, helped: bool, count: u64) {
        if helped {
            self.helped += count
        } else {
            self.did_not_help += count
        }
    }
}

impl DaySum {
    fn add(&mut self, histogram: &[u64; BUCKETS]) {
        let buckets = self.histogram.iter_mut().zip(histogram);
        buckets.for_each(|(sum, count)| *sum += count);
    }

    fn finish(self) -> RecoveryPeriodTotals {
        RecoveryPeriodTotals {
            median_ms: quantile_ms(&self.histogram, 0.5),
            p90_ms: quantile_ms(&self.histogram, 0.9),
            ..self.day
        }
    }
}
