//! What calls of LLM APIs cost.

use unstuck_core::RunId;
use unstuck_store::{SpendingQuery, SpentBy};

use crate::model::{Problem, Run, Spending, rounded};
use crate::web::Web;

/// What was spent, by what is asked for.
pub async fn spending(web: &Web, query: &SpendingQuery) -> Result<Vec<Spending>, Problem> {
    let lines = web.store().spending(query).await?;
    Ok(lines.into_iter().map(Spending::from).collect())
}

/// Counts what the calls of a run cost that goes on: its attempts tell what they used only when they end, and clients of
/// a gateway make none.
pub(super) async fn count_calls(web: &Web, run: &mut Run) -> Result<(), Problem> {
    if !run.driven && run.client().is_none() {
        return Ok(());
    }
    if let Some(spent) = web.store().spent_by(&RunId::new(&run.id)).await? {
        run.cost_usd = run.cost_usd.max(rounded(spent.cost_usd));
        run.tokens = run.tokens.max(spent.input_tokens + spent.output_tokens);
    }
    Ok(())
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
