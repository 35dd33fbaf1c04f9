//! Taking a run up again: after a crash, after a stop, or when a person has seen to what was asked.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state folder, out of the agents' reach"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use unstuck_core::duration::in_millis;
use unstuck_core::event::{Event, Outcome, RecoveryEscalated, RecoveryResolved, RunResumed};
use unstuck_core::{Recorded, Recovery, RunId, Timestamp};
use unstuck_store::StoreError;

use super::announce::Scribe;
use super::answer;
use super::engine::{Engine, stopped};
use super::error::RunError;
use super::finished::Finished;
use super::input::Input;
use super::journal::Journal;
use super::lease::{Held, lost};
use super::log::Log;
use crate::process::{ProcessId, Stdin};

/// How long is waited for what a dead supervisor left behind to be ended.
const LEFTOVERS: Duration = Duration::from_secs(10);
/// How often is looked whether a person has answered.
pub(super) const LOOK: Duration = Duration::from_millis(100);

impl Engine<'_> {
    /// Takes a run up again and brings it to its end; a person may say how long it is tried from now on, and which settings
    /// of the project, by their hash, they have accepted.
    pub async fn resume(
        &mut self,
        run: &RunId,
        keep_trying: Option<Duration>,
        project_settings: Option<String>,
    ) -> Result<Finished, RunError> {
        let held = Held::claim(self.store, run, self.clock).await?;
        let events = self.store.load(run).await?;
        let refuse = |why: &str| RunError::NotResumable {
            run: run.clone(),
            why: why.to_owned(),
        };
        leftovers_ended(&events).await;
        let journal = Journal::again(self.place(), &events, held);
        let journal = journal.ok_or_else(|| refuse("it has no beginning"))?;
        let journal = journal.announcing(self.announcer);
        let log = Log::again(&journal, &events);
        let mut log = log.ok_or_else(|| refuse("it is a pipeline"))?;
        if let Some(why) = why_not(log.recovery()) {
            return Err(refuse(&why));
        }
        if let Some((question, reason)) = log.recovery().waits_for_money() {
            return Err(RunError::waits_for_money(run, question, reason));
        }
        self.find_input(&log)?;
        let after = match log.recovery().finished() {
            Some(end) => end.reason.clone(),
            None => "the process that drove it ended".to_owned(),
        };
        let (now, pid) = (self.clock.at(), std::process::id());
        log.note(
            now,
            RunResumed {
                keep_trying_ms: keep_trying.map(in_millis),
                project_settings,
                ..RunResumed::as_it_was(after, pid)
            },
        );
        if log.recovery().is_asked() {
            let session = log.recovery().spec().session.clone();
            log.note(now, RecoveryResolved::by_hand(Some(session)));
        }
        self.drive(&mut log).await?;
        let (end, child) = (log.recovery().finished().cloned(), log.child());
        journal.close(end, child).await
    }

    /// Waits until a person has seen to what was asked, or somebody stops it.
    pub(super) async fn wait_for_person(&mut self, log: &mut Log<'_, '_>) -> Result<(), RunError> {
        self.flush(log).await?;
        let run = log.recovery().id().clone();
        while log.recovery().is_asked() {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = stopped(&mut self.stop) => {
                    self.interrupted(log, None);
                    return Ok(());
                }
                () = lost(log.journal().taken_over()) => return Err(RunError::TakenOver { run }),
            }
            let Some(asked) = log.recovery().question() else {
                break;
            };
            // Nobody can answer what the store does not hold.
            let journal = log.journal();
            if journal.is_ahead_of_store() && !journal.catch_up_with_store().await? {
                continue;
            }
            let scribe = Scribe {
                store: self.store,
                announcer: self.announcer,
            };
            lapse_one(&scribe, &run, asked, self.clock.at()).await?;
            if !self.store.waits(&run, &asked.id).await? {
                let session = log.recovery().spec().session.clone();
                let answers = log.journal().answers(&session).await?;
                log.hear(&answers);
            }
        }
        Ok(())
    }

    /// Finds the standard input of a run that is taken up again.
    fn find_input(&mut self, log: &Log<'_, '_>) -> Result<(), RunError> {
        let run = log.recovery().id();
        match Input::of(self.state, run).again() {
            Ok(Some(bytes)) => *self.stdin = Stdin::from_bytes(bytes),
            Ok(None) => {}
            Err(why) => {
                return Err(RunError::NotResumable {
                    run: run.clone(),
                    why: why.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Removes what came on standard input once nobody needs it again; a role has its prompt instead.
    pub(super) fn forget_input(&self, log: &Log<'_, '_>) {
        if self.role.is_none() && log.is_over() {
            Input::of(self.state, log.recovery().id()).forget();
        }
    }

    pub(super) fn exit_record(&self, log: &Log<'_, '_>, number: u32) -> PathBuf {
        let session = log.recovery().spec().session.as_str();
        self.state.join(format!("{session}-{number}.exit"))
    }

    /// Removes the records of all ends, since all that happened is written down by now.
    pub(super) fn forget_all_exits(&self, log: &Log<'_, '_>) {
        for number in 1..=log.recovery().attempts() {
            let _ = fs::remove_file(self.exit_record(log, number));
        }
    }

    /// Removes the record of an end that is written down by now; not earlier, or a crash would lose it.
    pub(super) fn forget_exits(&self, log: &Log<'_, '_>, written: &[Recorded]) {
        for recorded in written {
            let number = match &recorded.event {
                Event::AttemptFailed(attempt) => attempt.end.number,
                Event::AttemptSucceeded(attempt) => attempt.end.number,
                Event::AttemptInterrupted(attempt) => attempt.number,
                _ => continue,
            };
            // It is only there if the child ended by itself.
            let _ = fs::remove_file(self.exit_record(log, number));
        }
    }
}

/// Lets what counts without an answer count if the time of a question is over.
pub(super) async fn lapse_one(
    scribe: &Scribe<'_>,
    run: &RunId,
    asked: &RecoveryEscalated,
    now: Timestamp,
) -> Result<(), RunError> {
    let deadline = asked.shown.deadline;
    let Some(deadline) = deadline.filter(|deadline| deadline.at <= now) else {
        return Ok(());
    };
    match answer::give_default(scribe, run, asked, deadline.answer, now).await {
        // Somebody was faster.
        Err(RunError::Store(StoreError::Answered { .. })) => Ok(()),
        done => done,
    }
}

/// Why a run cannot be taken up again, if it cannot.
pub(super) fn why_not(recovery: &Recovery) -> Option<String> {
    let unrepeatable = recovery.spec().unrepeatable.as_deref();
    if let Some(end) = recovery.finished()
        && !end.outcome.is_resumable()
        && !recovery.is_wanted_again()
    {
        return Some(match end.outcome {
            Outcome::Failed if unrepeatable.is_some() => {
                format!("it failed, and {}", unrepeatable.unwrap_or_default())
            }
            Outcome::Failed => format!("it failed, and that was passed on: {}", end.reason),
            _ => "it is done".to_owned(),
        });
    }
    if let Some(why) = unrepeatable {
        return Some(why.to_owned());
    }
    let cwd = &recovery.spec().cwd;
    let is_there = std::path::Path::new(cwd).is_dir();
    (!is_there).then(|| format!("its folder {cwd} is not there any more"))
}

/// Waits until the processes of a dead supervisor are ended: two agents must not work in one place.
pub(super) async fn leftovers_ended(events: &[Recorded]) {
    let mut reapers: BTreeMap<&str, ProcessId> = BTreeMap::new();
    for recorded in events {
        let Some(session) = recorded.event.session() else {
            continue;
        };
        match &recorded.event {
            Event::AttemptStarted(attempt) => {
                let reaper = attempt
                    .reaper
                    .map(|(pid, started)| ProcessId { pid, started });
                reapers.extend(reaper.map(|reaper| (session.as_str(), reaper)));
            }
            Event::AttemptFailed(_) | Event::AttemptSucceeded(_) => {
                reapers.remove(session.as_str());
            }
            _ => {}
        }
    }
    let ended = async {
        while reapers.values().any(ProcessId::is_alive) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // Whoever hangs for longer than this cannot be waited for.
    let _ = tokio::time::timeout(LEFTOVERS, ended).await;
}
