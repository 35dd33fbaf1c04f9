//! What has been tried for one call so far.

use bytes::Bytes;
use tokio::time::Instant;
use unstuck_core::decision::{History, WaitFor};
use unstuck_core::traffic::Try;
use unstuck_core::{Diagnosis, Timestamp};

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
    /// How often somebody was asked for the same request before, when its client was told to come back.
    pub(crate) before: u32,
    /// How often the one who is asked was asked in a row, and since when.
    pub(crate) at_target: u32,
    pub(crate) at_target_since: Instant,
    /// Whether whoever is asked had failed others before.
    pub(crate) was_failing: bool,
    /// How often all who can be asked were asked in vain.
    pub(crate) rounds: u32,
    /// Who is asked when the client comes back, where that is not the first.
    pub(crate) next_target: Option<Target>,
}

/// What was tried in vain for a request whose client was told to come back.
#[derive(Debug, Clone)]
pub(crate) struct Unfinished {
    pub(crate) history: History,
    pub(crate) tries: u32,
    /// What failed.
    pub(crate) diagnosis: Diagnosis,
    /// When the next try is due.
    pub(crate) next: Timestamp,
    /// What is waited for until then.
    pub(crate) wait_for: WaitFor,
    /// Who is asked then, where that is not the first.
    pub(crate) target: Option<Target>,
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
            before: 0,
            at_target: 0,
            at_target_since: Instant::now(),
            was_failing: false,
            rounds: 0,
            next_target: None,
        }
    }

    /// How often somebody was asked for this request in all.
    pub(crate) fn all(&self) -> u32 {
        self.before.saturating_add(self.number)
    }

    /// Asks somebody else from now on.
    pub(crate) fn turn_to(&mut self, target: Target) {
        self.target = target;
        self.at_target = 0;
        self.at_target_since = Instant::now();
    }

    /// Goes on where a request was left whose client was told to come back.
    pub(crate) fn go_on(&mut self, unfinished: &Unfinished) {
        self.history = unfinished.history.clone();
        self.before = unfinished.tries;
        self.attempt = Try::Again;
        if let Some(target) = &unfinished.target {
            self.turn_to(target.clone());
        }
    }
}
