//! Failures together and one by one, and how recovery went.

use unstuck_store::{FailureQuery, RecoveryQuery};

use crate::model::{Failure, FailureAnalytics, Page, Problem, RecoveryAnalytics};
use crate::web::Web;

/// What failures say together.
pub async fn failure_analytics(
    web: &Web,
    query: &FailureQuery,
) -> Result<FailureAnalytics, Problem> {
    Ok(web.store().failures(query).await?.into())
}

/// How recovery went.
pub async fn recovery_analytics(
    web: &Web,
    query: &RecoveryQuery,
) -> Result<RecoveryAnalytics, Problem> {
    Ok(web.store().recoveries(query).await?.into())
}

/// Failures one by one, the newest first.
pub async fn failures(
    web: &Web,
    query: &FailureQuery,
    after: Option<&str>,
    limit: usize,
) -> Result<Page<Failure>, Problem> {
    let after = after.map(str::parse).transpose();
    let after = after.map_err(|error| Problem::bad_request(format!("`after`: {error}")))?;
    let page = web.store().failure_page(query, after, limit).await?;
    Ok(Page {
        items: page.failures.into_iter().map(Failure::from).collect(),
        next: page.next.map(|next| next.to_string()),
    })
}
