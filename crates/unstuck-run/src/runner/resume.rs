//! Resumes a run: after a crash, after a stop, or when a human has answered.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use unstuck_core::duration::to_millis;
use unstuck_core::event::{EscalationOpened, EscalationResolved, Event, RunOutcome, RunResumed};
use unstuck_core::project_settings_snapshot::ProjectSettingChange;
use unstuck_core::{EventRecord, RunId, SessionState, Timestamp};
use unstuck_store::StoreError;

use super::error::RunError;
use super::escalation_answer;
use super::notify_hook::NotifyingEventWriter;
use super::run_event_log::RunEventLog;
use super::run_lease::{RunLease, wait_until_lost};
use super::run_result::RunResult;
use super::session_event_log::SessionEventLog;
use super::session_runner::{SessionRunner, wait_for_stop};
use super::stored_stdin::StoredStdin;
use crate::process::{ProcessId, Stdin};

/// Longest wait for the processes of a dead supervisor to end.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which new answers are looked for.
pub(super) const ANSWER_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The project settings of a resumed command.
#[derive(Debug, Clone)]
pub struct ResumedSettings {
    /// The hash of those in effect.
    pub in_effect: String,
    /// The changes that are not in effect without approval.
    pub held: Vec<ProjectSettingChange>,
    /// The hash of the stored settings with these changes.
    pub written: String,
}

impl SessionRunner<'_> {
    /// Resumes a run and completes it. A human may set the time budget of further attempts.
    pub async fn resume(
        &mut self,
        run: &RunId,
        keep_trying: Option<Duration>,
        settings: &ResumedSettings,
    ) -> Result<RunResult, RunError> {
        let held = RunLease::claim(self.store, run, self.clock).await?;
        let events = self.store.load(run).await?;
        let refuse = |why: &str| RunError::NotResumable {
            run: run.clone(),
            why: why.to_owned(),
        };
        wait_for_orphans(&events).await;
        let journal = RunEventLog::reopen(self.run_storage(), &events, held);
        let journal = journal.ok_or_else(|| refuse("the start event is missing"))?;
        let journal = journal.with_notifier(self.notifier);
        let log = SessionEventLog::reopen(&journal, &events);
        let mut log = log.ok_or_else(|| refuse("the run is a pipeline"))?;
        if let Some(why) = not_resumable_reason(log.recovery()) {
            return Err(refuse(&why));
        }
        if let Some((question, reason)) = log.recovery().open_budget_escalation() {
            return Err(RunError::budget_approval_pending(run, question, reason));
        }
        self.restore_stdin(&log)?;
        let after = match log.recovery().run_finished() {
            Some(end) => end.reason.clone(),
            None => "previous process exited unexpectedly".to_owned(),
        };
        let (now, pid) = (self.clock.timestamp(), std::process::id());
        log.note(
            now,
            RunResumed {
                keep_trying_ms: keep_trying.map(to_millis),
                project_settings: Some(settings.in_effect.clone()),
                ..RunResumed::unchanged(after, pid)
            },
        );
        if log.recovery().is_awaiting_human() {
            let session = log.recovery().spec().session.clone();
            log.note(now, EscalationResolved::by_hand(Some(session)));
        }
        self.ask_about_settings(&mut log, settings);
        self.run_loop(&mut log).await?;
        let (end, child) = (log.recovery().run_finished().cloned(), log.child_exit());
        journal.close(end, child).await
    }

    /// Waits until a human has answered, or until the run is stopped.
    pub(super) async fn wait_for_answer(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
    ) -> Result<(), RunError> {
        self.flush(log).await?;
        let run = log.recovery().id().clone();
        while log.recovery().is_awaiting_human() {
            tokio::select! {
                () = tokio::time::sleep(ANSWER_POLL_INTERVAL) => {}
                () = wait_for_stop(&mut self.stop) => {
                    self.note_interrupted(log, None);
                    return Ok(());
                }
                () = wait_until_lost(log.journal().takeover_signal()) => return Err(RunError::TakenOver { run }),
            }
            let Some(asked) = log.recovery().open_escalation() else {
                break;
            };
            // An escalation that is not in the store yet cannot be answered.
            let journal = log.journal();
            if journal.is_ahead_of_store() && !journal.flush_backlog().await? {
                continue;
            }
            let scribe = NotifyingEventWriter {
                store: self.store,
                notifier: self.notifier,
            };
            expire_escalation(&scribe, &run, asked, self.clock.timestamp()).await?;
            if !self.store.is_escalation_open(&run, &asked.id).await? {
                let session = log.recovery().spec().session.clone();
                let answers = log.journal().answers(&session).await?;
                log.apply_external_events(&answers);
            }
        }
        Ok(())
    }

    /// Restores the standard input of a resumed run.
    fn restore_stdin(&mut self, log: &SessionEventLog<'_, '_>) -> Result<(), RunError> {
        let run = log.recovery().id();
        match StoredStdin::new(self.state, run).restore() {
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

    /// Deletes the stored standard input once it is no longer needed; a role has its prompt instead.
    pub(super) fn delete_stored_stdin(&self, log: &SessionEventLog<'_, '_>) {
        if self.role.is_none() && log.is_finished() {
            StoredStdin::new(self.state, log.recovery().id()).delete();
        }
    }

    pub(super) fn exit_record_path(&self, log: &SessionEventLog<'_, '_>, number: u32) -> PathBuf {
        let session = log.recovery().spec().session.as_str();
        self.state.join(format!("{session}-{number}.exit"))
    }

    /// Deletes the exit records of all attempts, since all events are on disk by now.
    pub(super) fn delete_all_exit_records(&self, log: &SessionEventLog<'_, '_>) {
        for number in 1..=log.recovery().attempt_count() {
            self.delete_exit_record(log, number);
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a file in the state directory, which agents cannot access"
    )]
    fn delete_exit_record(&self, log: &SessionEventLog<'_, '_>, number: u32) {
        // It exists only if the child ended by itself.
        let _ = std::fs::remove_file(self.exit_record_path(log, number));
    }

    /// Deletes the exit record of an attempt whose end is on disk by now; earlier, a crash would lose it.
    pub(super) fn delete_exit_records(
        &self,
        log: &SessionEventLog<'_, '_>,
        written: &[EventRecord],
    ) {
        for recorded in written {
            let number = match &recorded.event {
                Event::AttemptFailed(attempt) => attempt.end.number,
                Event::AttemptSucceeded(attempt) => attempt.end.number,
                Event::AttemptInterrupted(attempt) => attempt.number,
                _ => continue,
            };
            self.delete_exit_record(log, number);
        }
    }
}

/// Applies the default answer if an escalation has expired.
pub(super) async fn expire_escalation(
    scribe: &NotifyingEventWriter<'_>,
    run: &RunId,
    asked: &EscalationOpened,
    now: Timestamp,
) -> Result<(), RunError> {
    let deadline = asked.details.deadline;
    let Some(deadline) = deadline.filter(|deadline| deadline.at <= now) else {
        return Ok(());
    };
    match escalation_answer::record_default_answer(scribe, run, asked, deadline.answer, now).await {
        // Another process has answered it first.
        Err(RunError::Store(StoreError::AlreadyAnswered { .. })) => Ok(()),
        done => done,
    }
}

/// Returns the reason why a run cannot be resumed, if there is one.
pub(super) fn not_resumable_reason(recovery: &SessionState) -> Option<String> {
    let unrepeatable = recovery.spec().unrepeatable_reason.as_deref();
    if let Some(end) = recovery.run_finished()
        && !end.outcome.is_resumable()
        && !recovery.is_reopened()
    {
        return Some(match end.outcome {
            RunOutcome::Failed if unrepeatable.is_some() => {
                format!("the run failed, and {}", unrepeatable.unwrap_or_default())
            }
            RunOutcome::Failed => format!(
                "the run failed, and the failure was passed through: {}",
                end.reason
            ),
            _ => "the run has already succeeded".to_owned(),
        });
    }
    if let Some(why) = unrepeatable {
        return Some(why.to_owned());
    }
    let cwd = &recovery.spec().cwd;
    let is_there = std::path::Path::new(cwd).is_dir();
    (!is_there).then(|| format!("the directory {cwd} no longer exists"))
}

/// Waits until the processes of a dead supervisor have ended: two agents must not work in one directory.
pub(super) async fn wait_for_orphans(events: &[EventRecord]) {
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
    // A process that hangs for longer is not waited for.
    let _ = tokio::time::timeout(ORPHAN_TIMEOUT, ended).await;
}
