//! Questions to people.

use unstuck_store::QuestionFilter;

use crate::model::{Escalation, Page, Problem};
use crate::web::Web;

/// Which questions are asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EscalationQuery {
    /// What they must be; its limit is how many a page has.
    pub filter: QuestionFilter,
    /// The id of the last one of the page before.
    pub after: Option<String>,
}

/// The questions that are asked for, the oldest first.
pub async fn escalations(web: &Web, query: &EscalationQuery) -> Result<Page<Escalation>, Problem> {
    let limit = query.filter.limit.unwrap_or(50);
    let filter = QuestionFilter {
        limit: None,
        ..query.filter.clone()
    };
    let found = web.store().questions(&filter).await?;
    let from = match &query.after {
        None => 0,
        Some(after) => {
            let place = found.iter().position(|one| one.asked.id == *after);
            let unknown = || Problem::bad_request(format!("`after` names no question: {after}"));
            place.ok_or_else(unknown)? + 1
        }
    };
    let left = found.len() - from;
    let items: Vec<_> = found.into_iter().skip(from).take(limit).collect();
    let items: Vec<_> = items.into_iter().map(Escalation::from).collect();
    let next = items.last().filter(|_| left > limit);
    Ok(Page {
        next: next.map(|last| last.id.clone()),
        items,
    })
}

/// One question.
pub async fn escalation(web: &Web, id: &str) -> Result<Escalation, Problem> {
    let filter = QuestionFilter {
        prefix: Some(id.to_owned()),
        with_answered: true,
        ..QuestionFilter::default()
    };
    let found = web.store().questions(&filter).await?;
    let found = found.into_iter().find(|one| one.asked.id == id);
    let unknown = || {
        Problem::not_found(format!(
            "there is no question `{id}`; GET /api/escalations lists what waits"
        ))
    };
    found.map(Escalation::from).ok_or_else(unknown)
}
