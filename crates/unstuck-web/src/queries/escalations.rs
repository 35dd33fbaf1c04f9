//! Queries for escalations.

use unstuck_store::{EscalationFilter, EscalationRow, EscalationStatusFilter};

use crate::model::{EscalationResponse, ListPage, ProblemDetails};
use crate::server_state::WebState;

/// Returns a page of the escalations that match.
pub async fn escalations(
    web: &WebState,
    filter: &EscalationFilter,
) -> Result<ListPage<EscalationResponse>, ProblemDetails> {
    if let Some(after) = &filter.after
        && find_escalation(web, after).await?.is_none()
    {
        let detail = format!("unknown escalation `{after}` in `after`");
        return Err(ProblemDetails::bad_request(detail));
    }
    let most = filter.limit.unwrap_or(50);
    let one_more = EscalationFilter {
        limit: Some(most.saturating_add(1)),
        ..filter.clone()
    };
    let mut found = web.store().escalations(&one_more).await?;
    let is_more = found.len() > most;
    found.truncate(most);
    let last = found.last().filter(|_| is_more);
    Ok(ListPage {
        next: last.map(|last| last.request.id.clone()),
        items: found.into_iter().map(EscalationResponse::from).collect(),
    })
}

/// Returns an escalation.
pub async fn escalation(web: &WebState, id: &str) -> Result<EscalationResponse, ProblemDetails> {
    let unknown = || {
        ProblemDetails::not_found(format!(
            "request `{id}` not found; GET /api/escalations lists pending ones"
        ))
    };
    find_escalation(web, id)
        .await?
        .map(EscalationResponse::from)
        .ok_or_else(unknown)
}

async fn find_escalation(
    web: &WebState,
    id: &str,
) -> Result<Option<EscalationRow>, ProblemDetails> {
    let filter = EscalationFilter {
        prefix: Some(id.to_owned()),
        status: EscalationStatusFilter::Any,
        ..EscalationFilter::default()
    };
    let found = web.store().escalations(&filter).await?;
    Ok(found.into_iter().find(|one| one.request.id == id))
}
