//! Export of the log as JSON lines, in constant memory.

use std::io::{self, Write};

use crate::error::StoreError;
use crate::query::{EventFilter, EventOrder};
use crate::store::Store;

/// The number of events read at once.
const PAGE_SIZE: usize = 1000;

/// A failed export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The output could not be written.
    #[error("cannot write the export")]
    Write(#[source] io::Error),
}

impl Store {
    /// Writes the events as JSON lines, oldest first, and returns their number.
    ///
    /// Events written meanwhile may or may not be included.
    pub async fn export_events(
        &self,
        filter: &EventFilter,
        to: &mut impl Write,
    ) -> Result<u64, ExportError> {
        let limit = filter.limit.unwrap_or(usize::MAX);
        let mut page = EventFilter {
            order: EventOrder::OldestFirst,
            ..filter.clone()
        };
        let mut written = 0;
        loop {
            page.limit = Some(PAGE_SIZE.min(limit - written));
            let found = self.events(&page).await?;
            for recorded in &found.events {
                let line = serde_json::to_string(recorded).map_err(StoreError::database)?;
                writeln!(to, "{line}").map_err(ExportError::Write)?;
            }
            written += found.events.len();
            page.after = Some(found.last);
            if found.events.len() < PAGE_SIZE || written == limit {
                return Ok(written as u64);
            }
        }
    }
}
