//! The log as lines of JSON, as long as it may be, in little memory.

use std::io::Write;

use crate::error::StoreError;
use crate::query::{EventFilter, Order};
use crate::store::Store;

/// So many events are read at once.
const PAGE: usize = 1000;

impl Store {
    /// Writes the events, the oldest first, one line of JSON each, and tells how many there were.
    ///
    /// What is written meanwhile may or may not be among them.
    pub async fn export(
        &self,
        filter: &EventFilter,
        to: &mut impl Write,
    ) -> Result<u64, StoreError> {
        let limit = filter.limit.unwrap_or(usize::MAX);
        let mut page = EventFilter {
            order: Order::OldestFirst,
            ..filter.clone()
        };
        let mut written = 0;
        loop {
            page.limit = Some(PAGE.min(limit - written));
            let found = self.events(&page).await?;
            for recorded in &found.events {
                let line = serde_json::to_string(recorded).map_err(StoreError::database)?;
                writeln!(to, "{line}").map_err(StoreError::database)?;
            }
            written += found.events.len();
            page.after = Some(found.last);
            if found.events.len() < PAGE || written == limit {
                return Ok(written as u64);
            }
        }
    }
}
