//! Records a human's answer to an escalation, exactly once, whichever process runs the session.

use unstuck_core::decision::{ConcreteAttemptChange, ModelSwitch, ModelSwitchReason};
use unstuck_core::escalation::EscalationAnswer;
use unstuck_core::event::{
    ApprovalSource, EscalationOpened, EscalationResolved, Event, ModelSwitched, RepairApproved,
};
use unstuck_core::{RunId, SessionId, Timestamp};
use unstuck_store::{
    EscalationAnswerPrecondition, EscalationFilter, EscalationRow, RunEventBatch, StoreError,
};

use super::error::RunError;
use super::notify_hook::NotifyingEventWriter;

/// A human's answer to an escalation.
#[derive(Debug, Clone, Copy)]
pub struct HumanAnswer<'a> {
    /// The chosen answer.
    pub answer: EscalationAnswer,
    /// The Note of the user: a reason or instructions.
    pub note: &'a str,
    /// Name of the user, if known.
    pub author: Option<&'a str>,
}

/// Records an answer to an escalation. Returns an error if it is already answered or if its details have changed.
pub async fn record_answer(
    scribe: &NotifyingEventWriter<'_>,
    question: &EscalationRow,
    said: &HumanAnswer<'_>,
    now: Timestamp,
) -> Result<(), RunError> {
    record_answer_with_changes(scribe, question, said, &[], now).await
}

/// Records an answer together with further changes to the next attempt.
pub async fn record_answer_with_changes(
    scribe: &NotifyingEventWriter<'_>,
    question: &EscalationRow,
    said: &HumanAnswer<'_>,
    changes: &[ConcreteAttemptChange],
    now: Timestamp,
) -> Result<(), RunError> {
    let mut resolved = resolution_event(&question.request, said);
    resolved.changes.extend_from_slice(changes);
    let others = answers_for_same_budget(scribe, question, &resolved).await?;
    append_answer(
        scribe,
        &question.run,
        &question.request,
        resolved,
        others,
        now,
    )
    .await
}

/// Returns answers for the other roles of the run that stopped at the same budget: one approval raises it for all of
/// them.
async fn answers_for_same_budget(
    scribe: &NotifyingEventWriter<'_>,
    question: &EscalationRow,
    resolved: &EscalationResolved,
) -> Result<Vec<EscalationResolved>, RunError> {
    let budget = question.request.budget.filter(|_| resolved.raises_budget());
    let Some(budget) = budget.filter(|budget| budget.scope.is_shared_by_run()) else {
        return Ok(Vec::new());
    };
    let filter = EscalationFilter {
        run: Some(question.run.clone()),
        ..EscalationFilter::default()
    };
    let open = scribe.store.escalations(&filter).await?.into_iter();
    let is_same = |one: &EscalationRow| {
        let other = one.request.budget.map(|other| (other.scope, other.unit));
        one.request.id != question.request.id && other == Some((budget.scope, budget.unit))
    };
    let others = open.filter(is_same).map(|one| EscalationResolved {
        note: format!("answered together with {}", question.request.id),
        user: resolved.user.clone(),
        ..EscalationResolved::answer_to(&one.request, EscalationAnswer::Approve)
    });
    Ok(others.collect())
}

/// A human's request to retry a session that has ended.
#[derive(Debug, Clone, Copy)]
pub struct SessionRetryRequest<'a> {
    /// The run of the session.
    pub run: &'a RunId,
    /// The session to retry.
    pub session: &'a SessionId,
    /// Changes to the next attempt.
    pub changes: &'a [ConcreteAttemptChange],
    /// The Note of the user.
    pub note: &'a str,
    /// Name of the user, if known.
    pub author: Option<&'a str>,
}

/// Records a retry request; the process that resumes the run makes the attempt.
pub async fn request_retry(
    scribe: &NotifyingEventWriter<'_>,
    wanted: &SessionRetryRequest<'_>,
    now: Timestamp,
) -> Result<(), RunError> {
    let session = Some(wanted.session.clone());
    let models = wanted
        .changes
        .iter()
        .find_map(ConcreteAttemptChange::model_switch);
    let moved = models.map(|models| model_switch_event(session.clone(), models, None, now));
    let resolved = EscalationResolved {
        method: EscalationAnswer::Retry.method().into(),
        note: wanted.note.to_owned(),
        user: wanted.author.map(str::to_owned),
        changes: wanted.changes.to_vec(),
        ..EscalationResolved::by_hand(session)
    };
    let events = [Event::from(resolved)].into_iter().chain(moved);
    scribe
        .append(RunEventBatch::new(wanted.run.clone(), now, events))
        .await?;
    Ok(())
}

/// Applies the default answer to every expired escalation and returns those escalations.
pub async fn expire_escalations(
    scribe: &NotifyingEventWriter<'_>,
    filter: &EscalationFilter,
    now: Timestamp,
) -> Result<Vec<EscalationRow>, RunError> {
    let mut lapsed = Vec::new();
    for question in scribe.store.escalations(filter).await? {
        let deadline = question.request.details.deadline;
        let Some(deadline) = deadline.filter(|deadline| deadline.at <= now) else {
            continue;
        };
        match record_default_answer(
            scribe,
            &question.run,
            &question.request,
            deadline.answer,
            now,
        )
        .await
        {
            // Another process has answered it first.
            Err(RunError::Store(StoreError::AlreadyAnswered { .. })) => {}
            done => {
                done?;
                lapsed.push(question);
            }
        }
    }
    Ok(lapsed)
}

/// Records the default answer of an expired escalation.
pub(super) async fn record_default_answer(
    scribe: &NotifyingEventWriter<'_>,
    run: &RunId,
    asked: &EscalationOpened,
    answer: EscalationAnswer,
    now: Timestamp,
) -> Result<(), RunError> {
    let said = HumanAnswer {
        answer,
        note: "deadline passed without an answer",
        author: None,
    };
    let resolved = EscalationResolved {
        by: "deadline".into(),
        ..resolution_event(asked, &said)
    };
    append_answer(scribe, run, asked, resolved, Vec::new(), now).await
}

async fn append_answer(
    scribe: &NotifyingEventWriter<'_>,
    run: &RunId,
    asked: &EscalationOpened,
    resolved: EscalationResolved,
    others: Vec<EscalationResolved>,
    now: Timestamp,
) -> Result<(), RunError> {
    let approved = (resolved.answer() == Some(EscalationAnswer::Approve))
        .then(|| approval_event(asked))
        .flatten();
    let moved = model_switch_after_answer(asked, &resolved, now);
    let events = [Event::from(resolved)].into_iter();
    let events = events.chain(approved.map(Event::from)).chain(moved);
    let events = events.chain(others.into_iter().map(Event::from));
    let answers = EscalationAnswerPrecondition {
        escalation: asked.id.clone(),
        hash: asked.details.hash.clone(),
    };
    let append = RunEventBatch::new(run.clone(), now, events).with_answer_guard(answers);
    scribe.append(append).await?;
    Ok(())
}

fn resolution_event(asked: &EscalationOpened, said: &HumanAnswer<'_>) -> EscalationResolved {
    let mut resolved = EscalationResolved::answer_to(asked, said.answer);
    if said.answer == EscalationAnswer::Retry && !said.note.is_empty() {
        resolved
            .changes
            .push(ConcreteAttemptChange::UserMessage(said.note.to_owned()));
    }
    resolved.note = said.note.to_owned();
    resolved.user = said.author.map(str::to_owned);
    resolved
}

/// Returns the approval of exactly the repair that was shown, for one execution.
fn approval_event(asked: &EscalationOpened) -> Option<RepairApproved> {
    Some(RepairApproved {
        session: asked.session.clone(),
        id: asked.repair.clone()?,
        source: ApprovalSource::Human,
        command: asked.details.command.clone()?,
    })
}

/// Returns the model switch that an answer causes, if the model changes.
fn model_switch_after_answer(
    asked: &EscalationOpened,
    resolved: &EscalationResolved,
    now: Timestamp,
) -> Option<Event> {
    let models = resolved
        .changes
        .iter()
        .find_map(ConcreteAttemptChange::model_switch)?;
    let mut choices = asked.details.options.iter();
    let choice = choices.find(|choice| Some(choice.answer) == resolved.answer());
    let cost = choice.and_then(|choice| choice.cost);
    Some(model_switch_event(asked.session.clone(), models, cost, now))
}

fn model_switch_event(
    session: Option<SessionId>,
    (from, to): (&str, &str),
    cost_estimate: Option<f64>,
    now: Timestamp,
) -> Event {
    let change = ModelSwitch {
        from_model: from.to_owned(),
        to_model: to.to_owned(),
        reason: ModelSwitchReason::Manual,
        timestamp: now,
        cost_estimate,
    };
    Event::from(ModelSwitched {
        session,
        switch: change,
    })
}
