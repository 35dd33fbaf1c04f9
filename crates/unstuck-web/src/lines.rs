//! Events as they are told, written once for all who follow.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use unstuck_core::episode::SessionStatus;
use unstuck_core::redact::Redactor;
use unstuck_store::Placed;

use crate::model::EventLine;

/// So many are kept: all that happen while a browser comes back.
const MOST: usize = 4096;

/// The lines of the newest events, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    kept: Mutex<HashMap<u64, Arc<str>>>,
}

impl Lines {
    /// An event as it is told, without secrets. None if it cannot be written.
    pub(crate) fn of(
        &self,
        placed: &Placed,
        state: Option<SessionStatus>,
        redactor: &Redactor,
    ) -> Option<Arc<str>> {
        let id = placed.place.number();
        if let Some(line) = self.kept().get(&id) {
            return Some(Arc::clone(line));
        }
        let mut line = serde_json::to_value(EventLine::of(id, &placed.recorded, state)).ok()?;
        redactor.redact_value(&mut line);
        let line: Arc<str> = line.to_string().into();
        let mut kept = self.kept();
        if kept.len() >= MOST {
            kept.retain(|known, _| known + MOST as u64 / 2 > id);
        }
        // Somebody who reads what is long past does not push out what all others wait for.
        if kept.len() < MOST {
            kept.insert(id, Arc::clone(&line));
        }
        Some(line)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<str>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
