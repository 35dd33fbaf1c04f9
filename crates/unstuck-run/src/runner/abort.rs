//! Ends a run that no process supervises: a human aborts it or gives up on the failure.

use unstuck_core::escalation::EscalationAnswer;
use unstuck_core::event::{EscalationResolved, Event, RunFinished, RunOutcome, SessionFinished};
use unstuck_core::money::known_cost;
use unstuck_core::redact::Redactor;
use unstuck_core::views::{RunProjection, RunStatus, SessionSummary};
use unstuck_core::{EventRecord, RunId, SessionState, duration};

use super::error::RunError;
use super::escalation_answer::HumanAnswer;
use super::notify_hook::NotifyingEventWriter;
use super::resume::{not_resumable_reason, wait_for_orphans};
use super::run_event_log::{RunEventLog, RunStorage};
use super::run_lease::RunLease;
use super::run_result::RunResult;
use super::stored_stdin::StoredStdin;
use crate::clock::Clock;
use std::path::Path;

/// Exit code of a run that ends before its command did.
const DEFAULT_EXIT_CODE: i32 = 1;

/// Everything that is needed to end a run.
#[derive(Clone, Copy)]
pub struct RunAborter<'a> {
    /// Writes the events and sends the notifications.
    pub event_writer: NotifyingEventWriter<'a>,
    /// Removes secrets from what is written.
    pub redactor: &'a Redactor,
    /// The state directory, which holds the stored input of runs.
    pub state: &'a Path,
}

impl RunAborter<'_> {
    /// Ends a run for good, even if it could be resumed.
    ///
    /// Answers all open escalations the same way. Returns an error if a process supervises the run or if the run has
    /// ended.
    pub async fn abort_run(
        &self,
        run: &RunId,
        said: &HumanAnswer<'_>,
    ) -> Result<RunResult, RunError> {
        let held = RunLease::claim(self.event_writer.store, run, Clock::System).await?;
        let events = self.event_writer.store.load(run).await?;
        let fold = RunProjection::from_events(&events)
            .ok_or_else(|| not_resumable_error(run, "the start event is missing"))?;
        if fold.summary.status.is_final() {
            held.release(self.event_writer.store).await?;
            return Err(not_resumable_error(
                run,
                &format!("the run has already ended ({})", fold.summary.status),
            ));
        }
        wait_for_orphans(&events).await;
        let place = RunStorage {
            store: self.event_writer.store,
            redactor: self.redactor,
            state: self.state,
        };
        let journal = RunEventLog::reopen(place, &events, held);
        let journal =
            journal.ok_or_else(|| not_resumable_error(run, "the start event is missing"))?;
        let journal = journal.with_notifier(self.event_writer.notifier);
        let now = Clock::System.timestamp();
        let mut answers = resolve_open_escalations(&fold, &events, said);
        let reason = answers
            .last()
            .map_or_else(String::new, EscalationResolved::summary);
        let view = &fold.summary;
        let end = RunFinished {
            outcome: RunOutcome::Failed,
            exit_code: last_exit_code(&events),
            reason,
            attempts: view.attempts,
            retry_count: view.retry_count,
            recovery_level: view.recovery_level,
            cost_usd: fold.known_cost(),
            duration_ms: duration::to_millis(now.since(view.started)),
        };
        answers.retain(|answer| !is_already_recorded(answer, &events));
        let roles = fold
            .sessions
            .iter()
            .filter_map(|session| role_finished_event(session, &end, now));
        let written: Vec<Event> = answers
            .into_iter()
            .map(Event::from)
            .chain(roles)
            .chain([Event::from(end.clone())])
            .collect();
        journal.write(now, written).await?;
        StoredStdin::new(self.state, run).delete();
        journal.close(Some(end), None).await
    }
}

/// Returns the reason why a run of a single command cannot be resumed; `None` if it can or if it is a pipeline.
pub fn why_not_resumable(events: &[EventRecord], state: &Path) -> Option<String> {
    let recovery = SessionState::from_events(events)?;
    not_resumable_reason(&recovery).or_else(|| {
        let input = StoredStdin::new(state, recovery.id()).restore();
        input.err().map(str::to_owned)
    })
}

fn not_resumable_error(run: &RunId, why: &str) -> RunError {
    RunError::NotResumable {
        run: run.clone(),
        why: why.to_owned(),
    }
}

/// Returns the answers to all open escalations; the newest answer, or a new one, if none is open.
fn resolve_open_escalations(
    fold: &RunProjection,
    events: &[EventRecord],
    said: &HumanAnswer<'_>,
) -> Vec<EscalationResolved> {
    let by = |resolved: EscalationResolved| EscalationResolved {
        note: said.note.to_owned(),
        user: said.author.map(str::to_owned),
        ..resolved
    };
    let open = fold.open_escalations.iter();
    let answers = open.map(|asked| by(EscalationResolved::answer_to(asked, said.answer)));
    let answers: Vec<_> = answers.collect();
    if !answers.is_empty() {
        return answers;
    }
    let newest = events
        .iter()
        .rev()
        .find_map(|recorded| match &recorded.event {
            Event::EscalationResolved(resolved) => Some(resolved.clone()),
            _ => None,
        });
    let ends = |resolved: &EscalationResolved| {
        matches!(
            resolved.answer(),
            Some(EscalationAnswer::Abort | EscalationAnswer::Skip)
        )
    };
    vec![newest.filter(ends).unwrap_or_else(|| {
        by(EscalationResolved {
            method: said.answer.method().into(),
            ..EscalationResolved::by_hand(None)
        })
    })]
}

fn is_already_recorded(answer: &EscalationResolved, events: &[EventRecord]) -> bool {
    let same = |recorded: &EventRecord| matches!(&recorded.event, Event::EscalationResolved(one) if one == answer);
    events.iter().any(same)
}

/// Returns the exit code of the newest failed attempt.
fn last_exit_code(events: &[EventRecord]) -> i32 {
    let code = |recorded: &EventRecord| match &recorded.event {
        Event::AttemptFailed(attempt) => attempt.end.exit_code,
        _ => None,
    };
    events
        .iter()
        .rev()
        .find_map(code)
        .unwrap_or(DEFAULT_EXIT_CODE)
}

/// Returns the event that finishes a role that has not finished.
fn role_finished_event(
    session: &SessionSummary,
    end: &RunFinished,
    now: unstuck_core::Timestamp,
) -> Option<Event> {
    let part = session.part.clone()?;
    let is_open = !session.status.is_final() && session.status != RunStatus::Interrupted;
    let end = RunFinished {
        attempts: session.attempts,
        retry_count: session.retry_count,
        recovery_level: session.recovery_level,
        cost_usd: known_cost(session.cost_usd, session.unpriced_count),
        duration_ms: duration::to_millis(now.since(session.started)),
        ..end.clone()
    };
    let finished = SessionFinished::new(session.id.clone(), part, end, None);
    is_open.then(|| Event::from(Box::new(finished)))
}
