//! Ending a run that no process supervises: because a person aborts it, or gives up what failed.

use unstuck_core::episode::{RunFold, SessionView, Status};
use unstuck_core::event::{Event, Outcome, RecoveryResolved, RunFinished, SessionFinished};
use unstuck_core::money::known;
use unstuck_core::question::Answer;
use unstuck_core::redact::Redactor;
use unstuck_core::{Recorded, Recovery, RunId, duration};

use super::announce::Scribe;
use super::answer::Said;
use super::error::RunError;
use super::finished::Finished;
use super::input::Input;
use super::journal::{Journal, Place};
use super::lease::Held;
use super::resume::{leftovers_ended, why_not};
use crate::clock::Clock;
use std::path::Path;

/// The exit code of a run that ends before its command did.
const NO_CODE: i32 = 1;

/// What is needed to end a run.
#[derive(Clone, Copy)]
pub struct Ending<'a> {
    /// Where its events are written, and who is notified.
    pub scribe: Scribe<'a>,
    /// What must not be written.
    pub redactor: &'a Redactor,
    /// Where the input of runs is kept.
    pub state: &'a Path,
}

impl Ending<'_> {
    /// Ends a run for good, whether or not it could be resumed.
    ///
    /// Escalations that are still open are answered the same way. It is an error if a process supervises the run,
    /// or if the run has ended.
    pub async fn end(&self, run: &RunId, said: &Said<'_>) -> Result<Finished, RunError> {
        let held = Held::claim(self.scribe.store, run, Clock::System).await?;
        let events = self.scribe.store.load(run).await?;
        let fold = RunFold::fold(&events).ok_or_else(|| refuse(run, "it has no beginning"))?;
        if fold.view.status.is_final() {
            held.release(self.scribe.store).await?;
            return Err(refuse(run, &format!("it has ended ({})", fold.view.status)));
        }
        leftovers_ended(&events).await;
        let place = Place {
            store: self.scribe.store,
            redactor: self.redactor,
            state: self.state,
        };
        let journal = Journal::again(place, &events, held);
        let journal = journal.ok_or_else(|| refuse(run, "it has no beginning"))?;
        let journal = journal.announcing(self.scribe.announcer);
        let now = Clock::System.at();
        let mut answers = answers(&fold, &events, said);
        let reason = answers
            .last()
            .map_or_else(String::new, RecoveryResolved::said);
        let view = &fold.view;
        let end = RunFinished {
            outcome: Outcome::Failed,
            exit_code: last_code(&events),
            reason,
            attempts: view.attempts,
            retry_count: view.retry_count,
            recovery_level: view.recovery_level,
            cost_usd: fold.known_cost(),
            duration_ms: duration::in_millis(now.since(view.started)),
        };
        answers.retain(|answer| !is_recorded(answer, &events));
        let roles = fold
            .sessions
            .iter()
            .filter_map(|session| role(session, &end, now));
        let written: Vec<Event> = answers
            .into_iter()
            .map(Event::from)
            .chain(roles)
            .chain([Event::from(end.clone())])
            .collect();
        journal.write(now, written).await?;
        Input::of(self.state, run).forget();
        journal.close(Some(end), None).await
    }
}

/// Returns why a run of a single command cannot be resumed; none if it can, or if it is a pipeline.
pub fn why_not_resumable(events: &[Recorded], state: &Path) -> Option<String> {
    let recovery = Recovery::fold(events)?;
    why_not(&recovery).or_else(|| {
        let input = Input::of(state, recovery.id()).again();
        input.err().map(str::to_owned)
    })
}

fn refuse(run: &RunId, why: &str) -> RunError {
    RunError::NotResumable {
        run: run.clone(),
        why: why.to_owned(),
    }
}

/// The answers to all open escalations; the newest answer, or a new one, if there are none.
fn answers(fold: &RunFold, events: &[Recorded], said: &Said<'_>) -> Vec<RecoveryResolved> {
    let by = |resolved: RecoveryResolved| RecoveryResolved {
        note: said.note.to_owned(),
        who: said.who.map(str::to_owned),
        ..resolved
    };
    let open = fold.questions.iter();
    let answers = open.map(|asked| by(RecoveryResolved::answering(asked, said.answer)));
    let answers: Vec<_> = answers.collect();
    if !answers.is_empty() {
        return answers;
    }
    let newest = events
        .iter()
        .rev()
        .find_map(|recorded| match &recorded.event {
            Event::RecoveryResolved(resolved) => Some(resolved.clone()),
            _ => None,
        });
    let ends = |resolved: &RecoveryResolved| {
        matches!(resolved.answer(), Some(Answer::Abort | Answer::Skip))
    };
    vec![newest.filter(ends).unwrap_or_else(|| {
        by(RecoveryResolved {
            method: said.answer.method().into(),
            ..RecoveryResolved::by_hand(None)
        })
    })]
}

fn is_recorded(answer: &RecoveryResolved, events: &[Recorded]) -> bool {
    let same = |recorded: &Recorded| matches!(&recorded.event, Event::RecoveryResolved(one) if one == answer);
    events.iter().any(same)
}

/// The exit code of the newest attempt that failed.
fn last_code(events: &[Recorded]) -> i32 {
    let code = |recorded: &Recorded| match &recorded.event {
        Event::AttemptFailed(attempt) => attempt.end.exit_code,
        _ => None,
    };
    events.iter().rev().find_map(code).unwrap_or(NO_CODE)
}

/// The end of a role that had not ended.
fn role(session: &SessionView, end: &RunFinished, now: unstuck_core::Timestamp) -> Option<Event> {
    let part = session.part.clone()?;
    let is_open = !session.status.is_final() && session.status != Status::Interrupted;
    let end = RunFinished {
        attempts: session.attempts,
        retry_count: session.retry_count,
        recovery_level: session.recovery_level,
        cost_usd: known(session.cost_usd, session.unpriced),
        duration_ms: duration::in_millis(now.since(session.started)),
        ..end.clone()
    };
    let finished = SessionFinished::of(session.id.clone(), part, end, None);
    is_open.then(|| Event::from(Box::new(finished)))
}
