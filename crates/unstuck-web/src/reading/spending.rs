//! What calls of LLM APIs cost.

use unstuck_store::{SpendingQuery, SpentBy};

use crate::model::{Problem, Spending, rounded};
use crate::web::Web;

/// What was spent, by what is asked for.
pub async fn spending(web: &Web, query: &SpendingQuery) -> Result<Vec<Spending>, Problem> {
    let lines = web.store().spending(query).await?;
    Ok(lines.into_iter().map(Spending::from).collect())
}

/// What all calls of today (UTC) cost, in USD.
pub async fn spent_today(web: &Web) -> Result<f64, Problem> {
    let mut today = web.now().to_string();
    today.truncate(10);
    let midnight = format!("{today}T00:00:00Z").parse().ok();
    let query = SpendingQuery {
        by: SpentBy::Day,
        since: midnight,
        ..SpendingQuery::default()
    };
    let lines = web.store().spending(&query).await?;
    Ok(rounded(lines.iter().map(|line| line.cost_usd).sum()))
}
