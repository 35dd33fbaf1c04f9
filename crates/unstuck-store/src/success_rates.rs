//! Learned success rates: how often each strategy helped against each failure kind.

use std::collections::BTreeMap;
use std::time::Duration;

use unstuck_core::decision::{StrategyOutcomeTally, SuccessRates};
use unstuck_core::{FailureKind, Timestamp};

use crate::error::StoreError;
use crate::outcome_statistics::{CountedQuantity, StatisticsDimension, StatsQuery, StatsRow};
use crate::rollup;
use crate::store::Store;

/// The age limit of the data: older results say little about today's models and services.
const LOOKBACK: Duration = Duration::from_secs(90 * 86_400);

impl Store {
    /// Returns how often each strategy helped against each kind, in the last 90 days over all projects.
    pub async fn success_rates(&self, now: Timestamp) -> Result<SuccessRates, StoreError> {
        let query = StatsQuery {
            metric: CountedQuantity::Answers,
            group_by: vec![
                StatisticsDimension::Kind,
                StatisticsDimension::Strategy,
                StatisticsDimension::Outcome,
            ],
            since: Some(now.before(LOOKBACK)),
            ..StatsQuery::default()
        };
        let mut tallies = StrategyTallies::default();
        for line in self.stats(&query).await? {
            tallies.add(line);
        }
        tallies.success_rates()
    }
}

#[derive(Default)]
struct StrategyTallies(BTreeMap<FailureKind, BTreeMap<String, StrategyOutcomeTally>>);

impl StrategyTallies {
    fn add(&mut self, line: StatsRow) {
        let kind = line.kind.and_then(|name| name.parse::<FailureKind>().ok());
        // A kind that only a newer unstuck knows cannot be used for decisions here.
        let (Some(kind), Some(strategy)) = (kind, line.strategy) else {
            return;
        };
        let tally = self.0.entry(kind).or_default().entry(strategy).or_default();
        let count = u32::try_from(line.count).unwrap_or(u32::MAX);
        match line.outcome.as_deref() {
            Some(rollup::HELPED) => tally.worked = tally.worked.saturating_add(count),
            _ => tally.failed = tally.failed.saturating_add(count),
        }
    }

    /// Builds the rates from their wire form: adding outcomes one by one would take time proportional to their number.
    fn success_rates(&self) -> Result<SuccessRates, StoreError> {
        let wire = serde_json::to_value(&self.0).map_err(StoreError::database)?;
        serde_json::from_value(wire).map_err(StoreError::database)
    }
}
