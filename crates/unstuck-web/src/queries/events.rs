//! Queries for the event log of all runs.

use unstuck_store::{EventFilter, EventLogOffset, EventOrder};

use crate::model::{EventResponse, ListPage, ProblemDetails};
use crate::server_state::WebState;
use crate::session_states::SessionStateTracker;

/// Returns the events that match; the filter's limit is the page size.
pub async fn events(
    web: &WebState,
    filter: &EventFilter,
) -> Result<ListPage<EventResponse>, ProblemDetails> {
    let limit = filter.limit.unwrap_or(50);
    let one_more = EventFilter {
        limit: Some(limit.saturating_add(1)),
        ..filter.clone()
    };
    let found = web.store().log_entries(&one_more).await?;
    let is_more = found.len() > limit;
    let mut states = SessionStateTracker::default();
    let mut items = Vec::new();
    for placed in found.into_iter().take(limit) {
        let state = states.state_after(web.store(), &placed.record).await?;
        items.push(EventResponse::from_record(
            placed.offset.number(),
            &placed.record,
            state,
        ));
    }
    let last = items.last().filter(|_| is_more);
    Ok(ListPage {
        next: last.map(|last| last.id.to_string()),
        items,
    })
}

/// Returns the position of the newest event.
pub async fn newest_event(web: &WebState) -> Result<EventLogOffset, ProblemDetails> {
    let newest = EventFilter {
        order: EventOrder::NewestFirst,
        limit: Some(1),
        ..EventFilter::default()
    };
    Ok(web.store().events(&newest).await?.last)
}
