//! A person's answer to a question: written down once, whoever drives the run and wherever they are.

use unstuck_core::decision::{Changed, EscalationReason, EscalationRecord};
use unstuck_core::event::{
    ApprovalSource, Event, ModelEscalated, RecoveryApproved, RecoveryEscalated, RecoveryResolved,
};
use unstuck_core::question::Answer;
use unstuck_core::{RunId, Timestamp};
use unstuck_store::{Answers, Append, Question, QuestionFilter, StoreError};

use super::announce::Scribe;
use super::error::RunError;

/// What somebody says to a question.
#[derive(Debug, Clone, Copy)]
pub struct Said<'a> {
    /// The answer.
    pub answer: Answer,
    /// Their words: why, or what is to be done otherwise.
    pub note: &'a str,
    /// Who they are, where that is known.
    pub who: Option<&'a str>,
}

/// Answers a question. The first answer counts; it is an error if there was one, or if something else was shown.
pub async fn answer(
    scribe: &Scribe<'_>,
    question: &Question,
    said: &Said<'_>,
    now: Timestamp,
) -> Result<(), RunError> {
    let resolved = resolved(&question.asked, said);
    give(scribe, &question.run, &question.asked, resolved, now).await
}

/// Lets what counts without an answer count for every question whose time is over, and tells which they were.
pub async fn lapse(
    scribe: &Scribe<'_>,
    filter: &QuestionFilter,
    now: Timestamp,
) -> Result<Vec<Question>, RunError> {
    let mut lapsed = Vec::new();
    for question in scribe.store.questions(filter).await? {
        let deadline = question.asked.shown.deadline;
        let Some(deadline) = deadline.filter(|deadline| deadline.at <= now) else {
            continue;
        };
        match give_default(scribe, &question.run, &question.asked, deadline.answer, now).await {
            // Somebody was faster.
            Err(RunError::Store(StoreError::Answered { .. })) => {}
            done => {
                done?;
                lapsed.push(question);
            }
        }
    }
    Ok(lapsed)
}

/// Answers for those who did not answer in time.
pub(super) async fn give_default(
    scribe: &Scribe<'_>,
    run: &RunId,
    asked: &RecoveryEscalated,
    answer: Answer,
    now: Timestamp,
) -> Result<(), RunError> {
    let said = Said {
        answer,
        note: "nobody answered in time",
        who: None,
    };
    let resolved = RecoveryResolved {
        by: "deadline".into(),
        ..resolved(asked, &said)
    };
    give(scribe, run, asked, resolved, now).await
}

async fn give(
    scribe: &Scribe<'_>,
    run: &RunId,
    asked: &RecoveryEscalated,
    resolved: RecoveryResolved,
    now: Timestamp,
) -> Result<(), RunError> {
    let approved = (resolved.answer() == Some(Answer::Approve))
        .then(|| approved(asked))
        .flatten();
    let moved = moved(asked, &resolved, now);
    let events = [Event::from(resolved)].into_iter();
    let events = events.chain(approved.map(Event::from)).chain(moved);
    let answers = Answers {
        question: asked.id.clone(),
        hash: asked.shown.hash.clone(),
    };
    let append = Append::new(run.clone(), now, events).answering(answers);
    scribe.append(append).await?;
    Ok(())
}

fn resolved(asked: &RecoveryEscalated, said: &Said<'_>) -> RecoveryResolved {
    let mut resolved = RecoveryResolved::answering(asked, said.answer);
    if said.answer == Answer::Retry && !said.note.is_empty() {
        resolved.changes.push(Changed::Words(said.note.to_owned()));
    }
    resolved.note = said.note.to_owned();
    resolved.who = said.who.map(str::to_owned);
    resolved
}

/// The repair that may run now: exactly what was shown, once.
fn approved(asked: &RecoveryEscalated) -> Option<RecoveryApproved> {
    Some(RecoveryApproved {
        session: asked.session.clone(),
        id: asked.repair.clone()?,
        source: ApprovalSource::Human,
        command: asked.shown.command.clone()?,
    })
}

/// The model that is used from now on, where that is another one.
fn moved(asked: &RecoveryEscalated, resolved: &RecoveryResolved, now: Timestamp) -> Option<Event> {
    let (from, to) = resolved.changes.iter().find_map(Changed::model)?;
    let mut choices = asked.shown.choices.iter();
    let choice = choices.find(|choice| Some(choice.answer) == resolved.answer());
    let change = EscalationRecord {
        from_model: from.to_owned(),
        to_model: to.to_owned(),
        reason: EscalationReason::Manual,
        timestamp: now,
        cost_estimate: choice.and_then(|choice| choice.cost),
    };
    let session = asked.session.clone();
    Some(Event::from(ModelEscalated { session, change }))
}
