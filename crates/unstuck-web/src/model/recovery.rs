//! How recovery went over many runs.

use std::collections::BTreeMap;

use serde::Serialize;
use unstuck_store as store;
use utoipa::ToSchema;

/// How recovery went: which levels and strategies helped, how long it took, how many runs were saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryAnalytics {
    /// How often answers of each level helped.
    pub by_level: Vec<StrategyOutcomeCount>,
    /// How often each strategy helped; the level where the answer was none of a chain.
    pub by_strategy: Vec<StrategyOutcomeCount>,
    /// How it went by day (UTC).
    pub by_day: BTreeMap<String, RecoveryStats>,
    /// All days together.
    #[serde(flatten)]
    pub total: RecoveryStats,
}

impl From<store::RecoveryReport> for RecoveryAnalytics {
    fn from(report: store::RecoveryReport) -> Self {
        let all = |counts: Vec<store::StrategySuccessCount>| {
            let counts = counts.into_iter();
            counts.map(StrategyOutcomeCount::from).collect()
        };
        let days = report.by_day.into_iter();
        Self {
            by_level: all(report.by_level),
            by_strategy: all(report.by_strategy),
            by_day: days.map(|(day, count)| (day, count.into())).collect(),
            total: report.total.into(),
        }
    }
}

/// How often an answer to failures helped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StrategyOutcomeCount {
    /// The level or strategy.
    pub name: String,
    /// How often what followed succeeded, or failed in another way.
    pub helped: u64,
    /// How often the same failure came again.
    #[serde(rename = "didNotHelp")]
    pub failed: u64,
}

impl From<store::StrategySuccessCount> for StrategyOutcomeCount {
    fn from(count: store::StrategySuccessCount) -> Self {
        Self {
            name: count.name,
            helped: count.helped,
            failed: count.did_not_help,
        }
    }
}

/// How recovery went in a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryStats {
    /// How many sessions did what they should after they had failed.
    pub recoveries: u64,
    /// Half of them took no longer, from the first failure to the success, in milliseconds; an upper bound.
    pub median_ms: Option<u64>,
    /// Nine of ten took no longer, in milliseconds; an upper bound.
    pub p90_ms: Option<u64>,
    /// How many runs ended well after something had failed.
    pub runs_saved: u64,
    /// How many runs ended badly.
    pub runs_failed: u64,
}

impl From<store::RecoveryDay> for RecoveryStats {
    fn from(day: store::RecoveryDay) -> Self {
        Self {
            recoveries: day.recoveries,
            median_ms: day.median_ms,
            p90_ms: day.p90_ms,
            runs_saved: day.runs_saved,
            runs_failed: day.runs_failed,
        }
    }
}
