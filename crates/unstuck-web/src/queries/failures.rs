//! Queries for failures and recovery statistics.

use unstuck_store::{FailureQuery, RecoveryStatisticsQuery};

use crate::model::{
    FailureAnalytics, FailureListItem, ListPage, ProblemDetails, RecoveryAnalytics,
};
use crate::server_state::WebState;

/// Returns failure statistics.
pub async fn failure_analytics(
    web: &WebState,
    query: &FailureQuery,
) -> Result<FailureAnalytics, ProblemDetails> {
    Ok(web.store().failure_analytics(query).await?.into())
}

/// Returns recovery statistics.
pub async fn recovery_analytics(
    web: &WebState,
    query: &RecoveryStatisticsQuery,
) -> Result<RecoveryAnalytics, ProblemDetails> {
    Ok(web.store().recovery_report(query).await?.into())
}

/// Returns a page of failures, the newest first.
pub async fn failures(
    web: &WebState,
    query: &FailureQuery,
    after: Option<&str>,
    limit: usize,
) -> Result<ListPage<FailureListItem>, ProblemDetails> {
    let after = after.map(str::parse).transpose();
    let after = after.map_err(|error| ProblemDetails::bad_request(format!("`after`: {error}")))?;
    let page = web.store().failure_page(query, after, limit).await?;
    Ok(ListPage {
        items: page
            .failures
            .into_iter()
            .map(FailureListItem::from)
            .collect(),
        next: page.next.map(|next| next.to_string()),
    })
}
