//! The waits of a session's held calls, and the requests of people to end them.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use unstuck_core::decision::{CallWait, WaitPurpose};
use unstuck_core::{FailureKind, Timestamp};

/// The waits of a session's held calls.
#[derive(Debug, Default)]
pub(crate) struct CallWaits {
    /// By the id of the call.
    waits: Mutex<BTreeMap<String, CallWait>>,
    /// The time of the newest request to retry at once.
    retry_requested: watch::Sender<Option<Timestamp>>,
}

impl CallWaits {
    /// Sets the wait of a call.
    pub(crate) fn set(&self, call: &str, wait: CallWait) {
        self.waits().insert(call.to_owned(), wait);
    }

    /// Sets a later end of the wait of a call, or the wait itself if it is not known yet.
    pub(crate) fn extend(&self, call: &str, until: Timestamp, kind: FailureKind) {
        let mut waits = self.waits();
        let wait = waits.entry(call.to_owned()).or_insert(CallWait {
            until,
            kind,
            wait_purpose: WaitPurpose::Retry,
            give_up_at: None,
        });
        (wait.until, wait.kind) = (until, kind);
    }

    /// Removes a call that is sent, or whose client went away.
    pub(crate) fn remove(&self, call: &str) {
        self.waits().remove(call);
    }

    /// Returns the wait of the call that is due next, among those that are not due yet.
    pub(crate) fn next(&self, now: Timestamp) -> Option<CallWait> {
        let waits = self.waits();
        let left = waits.values().filter(|wait| wait.until > now);
        left.min_by_key(|wait| wait.until).copied()
    }

    /// Ends all waits that began before a time: the held calls are retried at once.
    pub(crate) fn request_retry(&self, at: Timestamp) {
        self.retry_requested
            .send_modify(|known| *known = (*known).max(Some(at)));
    }

    /// Waits until a retry is requested at or after a time.
    pub(crate) async fn retry_requested(&self, since: Timestamp) {
        let mut requests = self.retry_requested.subscribe();
        let is_new = |at: &Option<Timestamp>| at.is_some_and(|at| at >= since);
        if requests.wait_for(is_new).await.is_err() {
            // Nobody is left to request it.
            std::future::pending().await
        }
    }

    fn waits(&self) -> MutexGuard<'_, BTreeMap<String, CallWait>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_seconds(1_790_000_000 + seconds)
    }

    #[test]
    fn the_call_that_is_due_next_is_shown_with_its_deadline() {
        let waits = CallWaits::default();
        let wait = |until| CallWait {
            until: at(until),
            kind: FailureKind::ServerError,
            wait_purpose: WaitPurpose::Network,
            give_up_at: Some(at(1800)),
        };
        waits.set("a", wait(60));
        waits.set("b", wait(5));
        assert_eq!(waits.next(at(0)), Some(wait(5)));
        assert_eq!(waits.next(at(5)), Some(wait(60)));
        waits.extend("a", at(90), FailureKind::ServerError);
        assert_eq!(waits.next(at(5)), Some(wait(90)), "the rest is kept");
        waits.remove("a");
        assert_eq!(waits.next(at(5)), None);
    }

    #[test]
    fn a_request_ends_only_waits_that_began_before_it() {
        let waits = CallWaits::default();
        waits.request_retry(at(5));
        waits.request_retry(at(3));
        assert!(waits.retry_requested(at(5)).now_or_never().is_some());
        assert!(waits.retry_requested(at(6)).now_or_never().is_none());
    }
}
