//! Waiting until the next try: by the clock on the wall, with a sign of life, until somebody or the network ends it.

use std::time::Duration;

use unstuck_core::decision::{Decision, RereadCost, WaitFor};
use unstuck_core::diagnosis::WaitSource;
use unstuck_core::event::{SessionParked, WaitEnded, WaitEndedBy, WaitingUntil};
use unstuck_core::{Event, Recorded, Timestamp};
use unstuck_store::EventFilter;

use super::engine::{Engine, stopped};
use super::error::RunError;
use super::lease::lost;
use super::log::Log;

/// How often it is looked whether somebody or the network has ended the wait.
const LOOK: Duration = Duration::from_secs(2);
/// How often the live line is drawn.
const DRAW: Duration = Duration::from_secs(1);

impl Engine<'_> {
    /// Notes that a wait begins, and that the session is parked if it is from now on.
    pub(super) fn note_wait(
        &mut self,
        log: &mut Log<'_, '_>,
        decision: &Decision,
        until: Timestamp,
    ) {
        let now = self.clock.at();
        let session = Some(log.recovery().spec().session.clone());
        if decision.wait_for == WaitFor::Probe && !log.recovery().is_parked() {
            let history = log.recovery().history();
            let parked = SessionParked {
                session: session.clone(),
                kind: decision.kind,
                reason: decision.reason.clone(),
                since: history.map_or(now, |history| history.progress_or_start()),
                until: decision.give_up_at,
            };
            log.note(now, parked);
        }
        log.note(
            now,
            WaitingUntil {
                session,
                until,
                reason: decision.reason.clone(),
                stated: decision.stated,
                source: Some(match decision.stated {
                    true => log.recovery().reset_source().unwrap_or(WaitSource::Guess),
                    false => WaitSource::Guess,
                }),
                wait_for: decision.wait_for,
                give_up_at: decision.give_up_at,
                reread: self.reread(log, until),
            },
        );
    }

    /// What it costs to wake the session's conversation at a moment.
    pub(super) fn reread(&self, log: &Log<'_, '_>, at: Timestamp) -> Option<RereadCost> {
        log.recovery().reread(self.knowledge.catalog(), at)
    }

    /// Waits until a moment has come, or somebody or the network ends the wait.
    pub(super) async fn wait(
        &mut self,
        log: &mut Log<'_, '_>,
        until: Timestamp,
    ) -> Result<(), RunError> {
        let clock = self.clock;
        let (mut told, mut looked) = (clock.at(), clock.at());
        loop {
            let now = clock.at();
            let left = until.since(now);
            if left.is_zero() {
                return Ok(());
            }
            if self.reporter.live() {
                self.reporter.waiting(left, until, log.recovery());
            } else if now.since(told) >= self.heartbeat {
                told = now;
                self.reporter.still_waiting(left, until, log.recovery());
            }
            if self.stdin.is_asked_to_go_on() {
                self.note_end_of_wait(log, WaitEndedBy::Person);
                return Ok(());
            }
            if now.since(looked) >= LOOK {
                looked = now;
                if self.is_wait_over(log).await? {
                    return Ok(());
                }
            }
            let look = match self.reporter.live() {
                true => DRAW,
                false => LOOK.min(self.heartbeat.max(DRAW)),
            };
            tokio::select! {
                () = clock.wait_until(now.after(left.min(look))) => {}
                () = stopped(&mut self.stop) => {
                    self.interrupted(log, None);
                    return Ok(());
                }
                () = lost(log.journal().taken_over()) => return Err(RunError::TakenOver { run: log.recovery().id().clone() }),
            }
        }
    }

    /// Whether the network is back, or somebody has written that the wait is over.
    async fn is_wait_over(&mut self, log: &mut Log<'_, '_>) -> Result<bool, RunError> {
        if log.recovery().wait_for() == WaitFor::Network && !self.network.is_offline().await {
            self.note_end_of_wait(log, WaitEndedBy::Network);
            return Ok(true);
        }
        let session = &log.recovery().spec().session;
        let filter = EventFilter {
            run: Some(log.recovery().id().clone()),
            names: vec!["wait_ended".to_owned()],
            since: log.recovery().waits_since(),
            ..EventFilter::default()
        };
        let is_meant = |one: &Recorded| matches!(&one.event, Event::WaitEnded(ended) if ended.session.as_ref().is_none_or(|of| of == session));
        let mut ended = self.store.events(&filter).await?.events;
        ended.retain(is_meant);
        log.hear(&ended);
        self.reporter.happened(&ended, log.recovery());
        Ok(!ended.is_empty())
    }

    fn note_end_of_wait(&mut self, log: &mut Log<'_, '_>, by: WaitEndedBy) {
        let session = Some(log.recovery().spec().session.clone());
        log.note(self.clock.at(), WaitEnded { session, by });
    }
}
