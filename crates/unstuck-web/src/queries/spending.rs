//! Queries for usage and cost.

use unstuck_store::{CostGroupBy, SpendingQuery};

use crate::model::{ProblemDetails, UsageTotals};
use crate::server_state::WebState;

/// Returns usage grouped by the requested dimension.
pub async fn spending(
    web: &WebState,
    query: &SpendingQuery,
) -> Result<Vec<UsageTotals>, ProblemDetails> {
    let lines = web.store().spending(query).await?;
    Ok(lines.into_iter().map(UsageTotals::from).collect())
}

/// Returns the usage today (UTC), as reported by agents or measured by the gateway.
pub async fn cost_today(web: &WebState) -> Result<UsageTotals, ProblemDetails> {
    let mut today = web.now().to_string();
    today.truncate(10);
    let midnight = format!("{today}T00:00:00Z").parse().ok();
    let query = SpendingQuery {
        group_by: CostGroupBy::Day,
        since: midnight,
        ..SpendingQuery::default()
    };
    let lines = web.store().spending(&query).await?;
    let today = lines.into_iter().next().unwrap_or_default();
    Ok(UsageTotals::from(today))
}
