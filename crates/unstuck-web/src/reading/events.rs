//! The log of all runs.

use unstuck_store::{EventFilter, Order, Position};

use crate::model::Problem;
use crate::web::Web;

/// The place of the newest event.
pub async fn newest_event(web: &Web) -> Result<Position, Problem> {
    let newest = EventFilter {
        order: Order::NewestFirst,
        limit: Some(1),
        ..EventFilter::default()
    };
    Ok(web.store().events(&newest).await?.last)
}
