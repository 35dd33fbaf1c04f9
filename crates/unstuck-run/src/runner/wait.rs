//! Waits until the next attempt: by wall-clock time, with a heartbeat, until a human or the network ends the wait.

use std::time::Duration;

use unstuck_core::decision::{Decision, RereadCost, WaitPurpose};
use unstuck_core::diagnosis::RetryAfterSource;
use unstuck_core::event::{EarlyWaitEndCause, SessionParked, WaitEnded, WaitStarted};
use unstuck_core::{Event, EventRecord, Timestamp};
use unstuck_store::EventFilter;

use super::error::RunError;
use super::reporter::SessionWait;
use super::run_lease::wait_until_lost;
use super::session_event_log::SessionEventLog;
use super::session_runner::{SessionRunner, wait_for_stop};

/// Interval at which the end of the wait by a human or the network is checked.
const WAIT_POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Interval at which the live line is redrawn.
const REDRAW_INTERVAL: Duration = Duration::from_secs(1);

impl SessionRunner<'_> {
    /// Notes that a wait begins, and that the session is parked if it is from now on.
    pub(super) fn note_wait(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
        decision: &Decision,
        until: Timestamp,
    ) {
        let now = self.clock.timestamp();
        let session = Some(log.recovery().spec().session.clone());
        let history = log.recovery().history();
        let parked = SessionParked {
            session: session.clone(),
            kind: decision.kind,
            reason: decision.reason.clone(),
            since: history.map_or(now, |history| history.progress_or_start()),
            until: decision.give_up_at,
        };
        let is_newly_parked =
            decision.wait_purpose == WaitPurpose::Probe && !log.recovery().is_parked();
        log.note(
            now,
            WaitStarted {
                session,
                until,
                reason: decision.reason.clone(),
                is_stated: decision.is_stated_reset,
                source: Some(if decision.is_stated_reset {
                    log.recovery()
                        .reset_source()
                        .unwrap_or(RetryAfterSource::Guess)
                } else {
                    RetryAfterSource::Guess
                }),
                wait_purpose: decision.wait_purpose,
                give_up_at: decision.give_up_at,
                reread: self.reread_cost(log, until),
            },
        );
        // After the wait: whoever is notified of it sees a session that waits.
        if is_newly_parked {
            log.note(now, parked);
        }
    }

    /// Returns the cost of resuming the session's conversation at a timestamp.
    pub(super) fn reread_cost(
        &self,
        log: &SessionEventLog<'_, '_>,
        at: Timestamp,
    ) -> Option<RereadCost> {
        log.recovery().reread_cost(self.knowledge.catalog(), at)
    }

    /// Waits until a timestamp, or until a human or the network ends the wait.
    pub(super) async fn wait(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
        until: Timestamp,
    ) -> Result<(), RunError> {
        let clock = self.clock;
        let (mut told, mut looked) = (clock.timestamp(), clock.timestamp());
        loop {
            let now = clock.timestamp();
            let left = until.since(now);
            if left.is_zero() {
                return Ok(());
            }
            let wait = SessionWait::for_attempt(log.recovery(), until, now);
            if self.reporter.is_live() {
                self.reporter.on_waiting(&wait, log.recovery());
            } else if now.since(told) >= self.heartbeat {
                told = now;
                self.reporter.on_still_waiting(&wait, log.recovery());
            }
            if self.stdin.has_enter_been_pressed() {
                self.note_wait_ended(log, EarlyWaitEndCause::Person);
                return Ok(());
            }
            if now.since(looked) >= WAIT_POLL_INTERVAL {
                looked = now;
                if self.is_wait_over(log).await? {
                    return Ok(());
                }
            }
            let look = if self.reporter.is_live() {
                REDRAW_INTERVAL
            } else {
                WAIT_POLL_INTERVAL.min(self.heartbeat.max(REDRAW_INTERVAL))
            };
            tokio::select! {
                () = clock.wait_until(now.after(left.min(look))) => {}
                () = wait_for_stop(&mut self.stop) => {
                    self.note_interrupted(log, None);
                    return Ok(());
                }
                () = wait_until_lost(log.journal().takeover_signal()) => return Err(RunError::TakenOver { run: log.recovery().id().clone() }),
            }
        }
    }

    /// Returns true if the network is back, or if an event has ended the wait.
    async fn is_wait_over(&mut self, log: &mut SessionEventLog<'_, '_>) -> Result<bool, RunError> {
        if log.recovery().wait_purpose() == WaitPurpose::Network && !self.network.is_offline().await
        {
            self.note_wait_ended(log, EarlyWaitEndCause::Network);
            return Ok(true);
        }
        let session = &log.recovery().spec().session;
        let filter = EventFilter {
            run: Some(log.recovery().id().clone()),
            names: vec!["wait_ended".to_owned()],
            since: log.recovery().waiting_since(),
            ..EventFilter::default()
        };
        let is_meant = |one: &EventRecord| matches!(&one.event, Event::WaitEnded(ended) if ended.session.as_ref().is_none_or(|of| of == session));
        let mut ended = self.store.events(&filter).await?.events;
        ended.retain(is_meant);
        log.apply_external_events(&ended);
        self.reporter.on_events(&ended, log.recovery());
        Ok(!ended.is_empty())
    }

    fn note_wait_ended(&mut self, log: &mut SessionEventLog<'_, '_>, by: EarlyWaitEndCause) {
        let session = Some(log.recovery().spec().session.clone());
        log.note(self.clock.timestamp(), WaitEnded { session, by });
    }
}
