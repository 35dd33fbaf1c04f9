//! What has been tried for one call so far.

use bytes::Bytes;
use tokio::time::Instant;
use unstuck_core::admission::ApiAttemptKind;
use unstuck_core::decision::{RecoveryHistory, WaitPurpose};
use unstuck_core::{Diagnosis, Timestamp};

use super::routing::UpstreamTarget;

/// What has been tried for one call so far.
pub(crate) struct AttemptState {
    /// Who is asked next.
    pub(crate) target: UpstreamTarget,
    /// The model, by the name that the client or the session gives it.
    pub(crate) model: Option<String>,
    pub(crate) history: RecoveryHistory,
    /// Which try comes next, for those who share the upstream.
    pub(crate) attempt: ApiAttemptKind,
    /// The request with what was wrong with an answer, once one could not be used.
    pub(crate) corrected_body: Option<Bytes>,
    /// How often somebody was asked.
    pub(crate) attempts: u32,
    /// How often somebody was asked for the same request before, when its client was told to come back.
    pub(crate) earlier_attempts: u32,
    /// How often the one who is asked was asked in a row, and since when.
    pub(crate) attempts_at_target: u32,
    pub(crate) at_target_since: Instant,
    /// Whether whoever is asked had failed others before.
    pub(crate) was_failing: bool,
    /// How often all who can be asked were asked in vain.
    pub(crate) rounds: u32,
    /// Who is asked when the client comes back, where that is not the first.
    pub(crate) next_target: Option<UpstreamTarget>,
}

/// What was tried in vain for a request whose client was told to come back.
#[derive(Debug, Clone)]
pub(crate) struct UnfinishedRequest {
    pub(crate) history: RecoveryHistory,
    pub(crate) attempts: u32,
    /// What failed.
    pub(crate) diagnosis: Diagnosis,
    /// When the next try is due.
    pub(crate) next_attempt_at: Timestamp,
    /// What is waited for until then.
    pub(crate) wait_for: WaitPurpose,
    /// Who is asked then, where that is not the first.
    pub(crate) target: Option<UpstreamTarget>,
}

impl AttemptState {
    pub(crate) fn new(target: UpstreamTarget, model: Option<String>, now: Timestamp) -> Self {
        Self {
            target,
            model,
            history: RecoveryHistory::new(now),
            attempt: ApiAttemptKind::First,
            corrected_body: None,
            attempts: 0,
            earlier_attempts: 0,
            attempts_at_target: 0,
            at_target_since: Instant::now(),
            was_failing: false,
            rounds: 0,
            next_target: None,
        }
    }

    /// How often somebody was asked for this request in all.
    pub(crate) fn total_attempts(&self) -> u32 {
        self.earlier_attempts.saturating_add(self.attempts)
    }

    /// Asks somebody else from now on.
    pub(crate) fn switch_target(&mut self, target: UpstreamTarget) {
        self.target = target;
        self.attempts_at_target = 0;
        self.at_target_since = Instant::now();
    }

    /// Goes on where a request was left whose client was told to come back.
    pub(crate) fn resume(&mut self, unfinished: &UnfinishedRequest) {
        self.history = unfinished.history.clone();
        self.earlier_attempts = unfinished.attempts;
        self.attempt = ApiAttemptKind::Retry;
        if let Some(target) = &unfinished.target {
            self.switch_target(target.clone());
        }
    }
}
