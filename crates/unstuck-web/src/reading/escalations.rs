//! Questions to people.

use unstuck_store::{Question, QuestionFilter, Standing};

use crate::model::{Escalation, Page, Problem};
use crate::web::Web;

/// The questions that are asked for, a page of them.
pub async fn escalations(web: &Web, filter: &QuestionFilter) -> Result<Page<Escalation>, Problem> {
    if let Some(after) = &filter.after
        && found(web, after).await?.is_none()
    {
        let detail = format!("`after` names no question: {after}");
        return Err(Problem::bad_request(detail));
    }
    let most = filter.limit.unwrap_or(50);
    let one_more = QuestionFilter {
        limit: Some(most.saturating_add(1)),
        ..filter.clone()
    };
    let mut found = web.store().questions(&one_more).await?;
    let is_more = found.len() > most;
    found.truncate(most);
    let last = found.last().filter(|_| is_more);
    Ok(Page {
        next: last.map(|last| last.asked.id.clone()),
        items: found.into_iter().map(Escalation::from).collect(),
    })
}

/// One question.
pub async fn escalation(web: &Web, id: &str) -> Result<Escalation, Problem> {
    let unknown = || {
        Problem::not_found(format!(
            "there is no question `{id}`; GET /api/escalations lists what waits"
        ))
    };
    found(web, id)
        .await?
        .map(Escalation::from)
        .ok_or_else(unknown)
}

async fn found(web: &Web, id: &str) -> Result<Option<Question>, Problem> {
    let filter = QuestionFilter {
        prefix: Some(id.to_owned()),
        standing: Standing::Any,
        ..QuestionFilter::default()
    };
    let found = web.store().questions(&filter).await?;
    Ok(found.into_iter().find(|one| one.asked.id == id))
}
