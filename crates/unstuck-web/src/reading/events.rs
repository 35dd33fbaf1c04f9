//! The log of all runs.

use unstuck_store::{EventFilter, Order, Position};

use crate::model::{EventLine, Page, Problem};
use crate::states::States;
use crate::web::Web;

/// The events that are asked for; the filter's limit is how many a page has.
pub async fn events(web: &Web, filter: &EventFilter) -> Result<Page<EventLine>, Problem> {
    let limit = filter.limit.unwrap_or(50);
    let one_more = EventFilter {
        limit: Some(limit.saturating_add(1)),
        ..filter.clone()
    };
    let found = web.store().placed(&one_more).await?;
    let is_more = found.len() > limit;
    let mut states = States::default();
    let mut items = Vec::new();
    for placed in found.into_iter().take(limit) {
        let state = states.after(web.store(), &placed.recorded).await?;
        items.push(EventLine::of(
            placed.place.number(),
            &placed.recorded,
            state,
        ));
    }
    let last = items.last().filter(|_| is_more);
    Ok(Page {
        next: last.map(|last| last.id.to_string()),
        items,
    })
}

/// The place of the newest event.
pub async fn newest_event(web: &Web) -> Result<Position, Problem> {
    let newest = EventFilter {
        order: Order::NewestFirst,
        limit: Some(1),
        ..EventFilter::default()
    };
    Ok(web.store().events(&newest).await?.last)
}
