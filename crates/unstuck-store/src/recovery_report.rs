//! How recovery went over many runs; answered from the hourly counts alone.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use unstuck_core::{Kind, Timestamp};

use crate::rollup::{self, BUCKETS, RollupCell};
use crate::stats::quantile_ms;

/// A question about recovery; all that is left out does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveryQuery {
    /// From the hour of this moment on.
    pub since: Option<Timestamp>,
    /// Before the hour of this moment.
    pub until: Option<Timestamp>,
    /// Only this project.
    pub project: Option<String>,
    /// Only this model.
    pub model: Option<String>,
    /// Only this kind of failure.
    pub kind: Option<Kind>,
}

/// How often an answer to failures helped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StrategySuccessCount {
    /// The level or strategy.
    pub name: String,
    /// How often what followed succeeded, or failed in another way.
    pub helped: u64,
    /// How often the same failure came again.
    pub did_not_help: u64,
}

/// How recovery went on one day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryDay {
    /// How many sessions did what they should after they had failed.
    pub recoveries: u64,
    /// Half of them took no longer, from the first failure to the success; an upper bound.
    pub median_ms: Option<u64>,
    /// Nine of ten took no longer; an upper bound.
    pub p90_ms: Option<u64>,
    /// How many runs ended well after something had failed.
    pub runs_saved: u64,
    /// How many runs ended badly.
    pub runs_failed: u64,
}

/// How recovery went.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryReport {
    /// How often answers of each level helped.
    pub by_level: Vec<StrategySuccessCount>,
    /// How often each strategy helped; the level where the answer was none of a chain.
    pub by_strategy: Vec<StrategySuccessCount>,
    /// How it went by day (UTC).
    pub by_day: BTreeMap<String, RecoveryDay>,
    /// All days together.
    #[serde(flatten)]
    pub total: RecoveryDay,
}

/// What was counted so far.
#[derive(Default)]
pub(crate) struct RecoverySums {
    levels: HashMap<&'static str, StrategySuccessCount>,
    strategies: HashMap<String, StrategySuccessCount>,
    days: BTreeMap<i64, DaySum>,
}

#[derive(Clone, Default)]
struct DaySum {
    day: RecoveryDay,
    histogram: [u64; BUCKETS],
}

impl RecoverySums {
    /// Takes in sessions that did what they should, on that day since the Unix epoch.
    pub(crate) fn add_recoveries(&mut self, day: i64, cell: &RollupCell) {
        let sum = self.days.entry(day).or_default();
        sum.day.recoveries += cell.count;
        sum.add(&cell.histogram);
    }

    /// Takes in anything else.
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

    /// What they say together.
    pub(crate) fn report(self) -> RecoveryReport {
        let mut total = DaySum::default();
        for day in self.days.values() {
            total.day.recoveries += day.day.recoveries;
            total.day.runs_saved += day.day.runs_saved;
            total.day.runs_failed += day.day.runs_failed;
            total.add(&day.histogram);
        }
        let days = self.days.into_iter();
        RecoveryReport {
            by_level: sorted_counts(self.levels),
            by_strategy: sorted_counts(self.strategies),
            by_day: days.map(|(day, sum)| (date(day), sum.finish())).collect(),
            total: total.finish(),
        }
    }
}

/// The day as it is written, `2026-11-15`: the first ten letters of an RFC 3339 moment.
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

    fn finish(self) -> RecoveryDay {
        RecoveryDay {
            median_ms: quantile_ms(&self.histogram, 0.5),
            p90_ms: quantile_ms(&self.histogram, 0.9),
            ..self.day
        }
    }
}
