//! Queries for learned success rates.

use std::collections::BTreeMap;

use unstuck_core::FailureKind;
use unstuck_core::decision::StrategyOutcomeTally;

use crate::model::{ProblemDetails, StrategySuccessByKind};
use crate::server_state::WebState;

/// Returns the success rate of each strategy by kind, as currently used for decisions.
pub async fn success_rates(web: &WebState) -> Result<Vec<StrategySuccessByKind>, ProblemDetails> {
    let odds = web.store().success_rates(web.now()).await?;
    // The type gives access to one strategy at a time; its wire form contains all.
    let wire = serde_json::to_value(&odds).unwrap_or_default();
    let all: BTreeMap<FailureKind, BTreeMap<String, StrategyOutcomeTally>> =
        serde_json::from_value(wire).unwrap_or_default();
    let lines = all.into_iter().flat_map(|(kind, strategies)| {
        strategies
            .into_iter()
            .map(move |(strategy, tally)| StrategySuccessByKind {
                kind,
                strategy,
                succeeded: tally.worked,
                failed: tally.failed,
            })
    });
    Ok(lines.collect())
}
