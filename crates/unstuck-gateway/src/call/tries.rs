//! What has been tried for one call so far.

use bytes::Bytes;
use unstuck_core::Timestamp;
use unstuck_core::decision::History;
use unstuck_core::traffic::Try;

use super::target::Target;

/// What has been tried for one call so far.
pub(crate) struct Tries {
    /// Who is asked next.
    pub(crate) target: Target,
    /// The model, by the name that the client or the session gives it.
    pub(crate) model: Option<String>,
    pub(crate) history: History,
    /// Which try comes next, for those who share the upstream.
    pub(crate) attempt: Try,
    /// The request with what was wrong with an answer, once one could not be used.
    pub(crate) corrected: Option<Bytes>,
    /// How often somebody was asked.
    pub(crate) number: u32,
}

impl Tries {
    pub(crate) fn new(target: Target, model: Option<String>, now: Timestamp) -> Self {
        Self {
            target,
            model,
            history: History::new(now),
            attempt: Try::First,
            corrected: None,
            number: 0,
        }
    }
}
