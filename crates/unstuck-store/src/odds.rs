//! What was learned from the past: how often each strategy helped against each kind, as decisions use it.

use std::collections::BTreeMap;
use std::time::Duration;

use unstuck_core::decision::{Odds, Tally};
use unstuck_core::{Kind, Timestamp};

use crate::error::StoreError;
use crate::rollup;
use crate::stats::{Counted, Dimension, StatsLine, StatsQuery};
use crate::store::Store;

/// What is older says little about today's models and services.
const RECENT: Duration = Duration::from_secs(90 * 86_400);

impl Store {
    /// How often each strategy helped against each kind, in the last 90 days and in all projects.
    pub async fn odds(&self, now: Timestamp) -> Result<Odds, StoreError> {
        let query = StatsQuery {
            counted: Counted::Answers,
            by: vec![Dimension::Kind, Dimension::Strategy, Dimension::Outcome],
            since: Some(now.before(RECENT)),
            ..StatsQuery::default()
        };
        let mut tallies = Tallies::default();
        for line in self.stats(&query).await? {
            tallies.add(line);
        }
        tallies.odds()
    }
}

#[derive(Default)]
struct Tallies(BTreeMap<Kind, BTreeMap<String, Tally>>);

impl Tallies {
    fn add(&mut self, line: StatsLine) {
        let kind = line.kind.and_then(|name| name.parse::<Kind>().ok());
        // A kind that only a newer unstuck knows cannot be decided about here.
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

    /// Odds are made from their wire form: counted one by one they would take as long as there were answers.
    fn odds(&self) -> Result<Odds, StoreError> {
        let wire = serde_json::to_value(&self.0).map_err(StoreError::database)?;
        serde_json::from_value(wire).map_err(StoreError::database)
    }
}
