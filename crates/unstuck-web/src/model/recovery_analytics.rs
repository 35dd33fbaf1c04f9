//! Recovery statistics over many runs.

use std::collections::BTreeMap;

use serde::Serialize;
use unstuck_store as store;
use utoipa::ToSchema;

/// Recovery statistics: success by level and strategy, duration, and runs saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryAnalytics {
    /// Success counts by level.
    pub by_level: Vec<StrategyOutcomeCount>,
    /// Success counts by strategy, or by level if the response was not from a strategy chain.
    pub by_strategy: Vec<StrategyOutcomeCount>,
    /// Statistics by day (UTC).
    pub by_day: BTreeMap<String, RecoveryTotalsResponse>,
    /// Totals over all days.
    #[serde(flatten)]
    pub total: RecoveryTotalsResponse,
}

impl From<store::RecoveryStatisticsReport> for RecoveryAnalytics {
    fn from(report: store::RecoveryStatisticsReport) -> Self {
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

/// How often a level or strategy helped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StrategyOutcomeCount {
    /// Level or strategy.
    pub name: String,
    /// Number of times the next attempt succeeded or failed differently.
    pub succeeded: u64,
    /// Number of times the same failure recurred.
    pub failed: u64,
}

impl From<store::StrategySuccessCount> for StrategyOutcomeCount {
    fn from(count: store::StrategySuccessCount) -> Self {
        Self {
            name: count.name,
            succeeded: count.helped,
            failed: count.did_not_help,
        }
    }
}

/// Recovery statistics of a period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryTotalsResponse {
    /// Number of sessions that succeeded after a failure.
    pub recoveries: u64,
    /// Median time from the first failure to success, in milliseconds; an upper bound.
    pub median_ms: Option<u64>,
    /// 90th percentile of that time, in milliseconds; an upper bound.
    pub p90_ms: Option<u64>,
    /// Number of runs that succeeded after a failure.
    pub runs_saved: u64,
    /// Number of runs that failed.
    pub runs_failed: u64,
}

impl From<store::RecoveryPeriodTotals> for RecoveryTotalsResponse {
    fn from(day: store::RecoveryPeriodTotals) -> Self {
        Self {
            recoveries: day.recoveries,
            median_ms: day.median_ms,
            p90_ms: day.p90_ms,
            runs_saved: day.runs_saved,
            runs_failed: day.runs_failed,
        }
    }
}
