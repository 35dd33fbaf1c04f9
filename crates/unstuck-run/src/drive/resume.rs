//! Taking a run up again: after a crash, after a stop, or when a person has seen to what was asked.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use unstuck_core::event::{Event, Outcome, RecoveryResolved, RunResumed};
use unstuck_core::{Recorded, Recovery, RunId, Timestamp};
use unstuck_store::{Append, Store};

use super::engine::{Engine, stopped};
use super::error::RunError;
use super::finished::Finished;
use super::input::Input;
use super::lease::{Held, lost};
use super::log::Log;
use crate::process::{ProcessId, Stdin};

/// How long is waited for what a dead supervisor left behind to be ended.
const LEFTOVERS: Duration = Duration::from_secs(10);
/// How often is looked whether a person has answered.
const LOOK: Duration = Duration::from_millis(500);

impl Engine<'_> {
    /// Takes a run up again and brings it to its end.
    pub async fn resume(&mut self, run: &RunId) -> Result<Finished, RunError> {
        let held = Held::claim(self.store, run, self.clock).await?;
        let events = self.store.load(run).await?;
        let refuse = |why: &str| RunError::NotResumable {
            run: run.clone(),
            why: why.to_owned(),
        };
        leftovers_ended(&events).await;
        let mut log = Log::again(&events, held).ok_or_else(|| refuse("it has no beginning"))?;
        if let Some(why) = why_not(log.recovery()) {
            return Err(refuse(&why));
        }
        self.find_input(&log)?;
        let after = match log.recovery().finished() {
            Some(end) => end.reason.clone(),
            None => "the process that drove it ended".to_owned(),
        };
        let (now, pid) = (self.clock.at(), std::process::id());
        log.note(now, RunResumed { after, pid });
        if log.recovery().is_asked() {
            log.note(now, resolved_by_hand());
        }
        self.drive(log).await
    }

    /// Waits until a person has seen to what was asked, or somebody stops it.
    pub(super) async fn wait_for_person(&mut self, log: &mut Log) -> Result<(), RunError> {
        self.flush(log).await?;
        let run = log.recovery().id().clone();
        while log.recovery().is_asked() {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = stopped(&mut self.stop) => {
                    self.interrupted(log, false);
                    return Ok(());
                }
                () = lost(log.taken_over()) => return Err(RunError::TakenOver { run }),
            }
            let newer = self.store.load(&run).await?;
            let from = newer.partition_point(|recorded| recorded.seq <= log.seq());
            log.hear(&newer[from..]);
        }
        Ok(())
    }

    /// Finds the standard input of a run that is taken up again.
    fn find_input(&mut self, log: &Log) -> Result<(), RunError> {
        let run = log.recovery().id();
        match Input::of(&self.state, run).again() {
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

    pub(super) fn forget_input(&self, log: &Log) {
        if log.is_over() {
            Input::of(&self.state, log.recovery().id()).forget();
        }
    }

    pub(super) fn exit_record(&self, log: &Log, number: u32) -> PathBuf {
        self.state
            .join(format!("{}-{number}.exit", log.recovery().id()))
    }

    /// Removes the record of an end that is written down by now; not earlier, or a crash would lose it.
    pub(super) fn forget_exits(&self, log: &Log, written: &[Recorded]) {
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

/// Tells a run that waits for a person, in whatever process, that they have seen to it.
pub async fn answer(store: &Store, run: &RunId, now: Timestamp) -> Result<(), RunError> {
    let answer = Append::new(run.clone(), now, [Event::from(resolved_by_hand())]);
    store.append(answer).await?;
    Ok(())
}

/// What a person does by taking up a run that had asked for them.
fn resolved_by_hand() -> RecoveryResolved {
    RecoveryResolved {
        id: None,
        by: "human".into(),
        method: "manual".into(),
        note: String::new(),
    }
}

/// Why a run cannot be taken up again, if it cannot.
fn why_not(recovery: &Recovery) -> Option<String> {
    if let Some(end) = recovery.finished()
        && !end.outcome.is_resumable()
    {
        return Some(match end.outcome {
            Outcome::Failed => format!("it failed, and that was passed on: {}", end.reason),
            _ => "it is done".to_owned(),
        });
    }
    let cwd = &recovery.run().cwd;
    if !std::path::Path::new(cwd).is_dir() {
        return Some(format!("its folder {cwd} is not there any more"));
    }
    recovery.run().unrepeatable.clone()
}

/// Waits until the processes of a dead supervisor are ended: two agents must not work in one place.
async fn leftovers_ended(events: &[Recorded]) {
    let reaper = events.iter().rev().find_map(|one| match &one.event {
        Event::AttemptStarted(attempt) => attempt.reaper,
        _ => None,
    });
    let Some((pid, started)) = reaper else {
        return;
    };
    let reaper = ProcessId { pid, started };
    let ended = async {
        while reaper.is_alive() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // Whoever hangs for longer than this cannot be waited for.
    let _ = tokio::time::timeout(LEFTOVERS, ended).await;
}
