//! A person's answer to a question: written down once, whoever drives the run and wherever they are.

use unstuck_core::decision::{Changed, EscalationReason, EscalationRecord};
use unstuck_core::event::{
    ApprovalSource, Event, ModelEscalated, RecoveryApproved, RecoveryEscalated, RecoveryResolved,
};
use unstuck_core::question::Answer;
use unstuck_core::{RunId, SessionId, Timestamp};
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
    answer_with(scribe, question, said, &[], now).await
}

/// The same, where more is to be different afterwards than the answer itself says.
pub async fn answer_with(
    scribe: &Scribe<'_>,
    question: &Question,
    said: &Said<'_>,
    changes: &[Changed],
    now: Timestamp,
) -> Result<(), RunError> {
    let mut resolved = resolved(&question.asked, said);
    resolved.changes.extend_from_slice(changes);
    let others = same_budget(scribe, question, &resolved).await?;
    give(
        scribe,
        &question.run,
        &question.asked,
        resolved,
        others,
        now,
    )
    .await
}

/// The answers to the other roles of a run that stopped for the same budget: one approval raises it for all of them.
async fn same_budget(
    scribe: &Scribe<'_>,
    question: &Question,
    resolved: &RecoveryResolved,
) -> Result<Vec<RecoveryResolved>, RunError> {
    let budget = question.asked.budget.filter(|_| resolved.raises_budget());
    let Some(budget) = budget.filter(|budget| budget.scope.is_shared_by_run()) else {
        return Ok(Vec::new());
    };
    let filter = QuestionFilter {
        run: Some(question.run.clone()),
        ..QuestionFilter::default()
    };
    let open = scribe.store.questions(&filter).await?.into_iter();
    let is_same = |one: &Question| {
        let other = one.asked.budget.map(|other| (other.scope, other.unit));
        one.asked.id != question.asked.id && other == Some((budget.scope, budget.unit))
    };
    let others = open.filter(is_same).map(|one| RecoveryResolved {
        note: format!("answered with {}", question.asked.id),
        who: resolved.who.clone(),
        ..RecoveryResolved::answering(&one.asked, Answer::Approve)
    });
    Ok(others.collect())
}

/// A person wants a session to be tried again that has come to its end.
#[derive(Debug, Clone, Copy)]
pub struct WantedAgain<'a> {
    /// Its run.
    pub run: &'a RunId,
    /// The session.
    pub session: &'a SessionId,
    /// What is to be different.
    pub changes: &'a [Changed],
    /// Their words about it.
    pub note: &'a str,
    /// Who they are, where that is known.
    pub who: Option<&'a str>,
}

/// Writes down that a session is to be tried again; whoever takes the run up makes the attempt.
pub async fn want_again(
    scribe: &Scribe<'_>,
    wanted: &WantedAgain<'_>,
    now: Timestamp,
) -> Result<(), RunError> {
    let session = Some(wanted.session.clone());
    let models = wanted.changes.iter().find_map(Changed::model);
    let moved = models.map(|models| moved_event(session.clone(), models, None, now));
    let resolved = RecoveryResolved {
        method: Answer::Retry.method().into(),
        note: wanted.note.to_owned(),
        who: wanted.who.map(str::to_owned),
        changes: wanted.changes.to_vec(),
        ..RecoveryResolved::by_hand(session)
    };
    let events = [Event::from(resolved)].into_iter().chain(moved);
    scribe
        .append(Append::new(wanted.run.clone(), now, events))
        .await?;
    Ok(())
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
    give(scribe, run, asked, resolved, Vec::new(), now).await
}

async fn give(
    scribe: &Scribe<'_>,
    run: &RunId,
    asked: &RecoveryEscalated,
    resolved: RecoveryResolved,
    others: Vec<RecoveryResolved>,
    now: Timestamp,
) -> Result<(), RunError> {
    let approved = (resolved.answer() == Some(Answer::Approve))
        .then(|| approved(asked))
        .flatten();
    let moved = moved(asked, &resolved, now);
    let events = [Event::from(resolved)].into_iter();
    let events = events.chain(approved.map(Event::from)).chain(moved);
    let events = events.chain(others.into_iter().map(Event::from));
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
    let models = resolved.changes.iter().find_map(Changed::model)?;
    let mut choices = asked.shown.choices.iter();
    let choice = choices.find(|choice| Some(choice.answer) == resolved.answer());
    let cost = choice.and_then(|choice| choice.cost);
    Some(moved_event(asked.session.clone(), models, cost, now))
}

fn moved_event(
    session: Option<SessionId>,
    (from, to): (&str, &str),
    cost_estimate: Option<f64>,
    now: Timestamp,
) -> Event {
    let change = EscalationRecord {
        from_model: from.to_owned(),
        to_model: to.to_owned(),
        reason: EscalationReason::Manual,
        timestamp: now,
        cost_estimate,
    };
    Event::from(ModelEscalated { session, change })
}
