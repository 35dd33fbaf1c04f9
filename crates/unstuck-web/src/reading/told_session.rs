//! A session as it is told, from the story of its run.

use unstuck_core::episode::{AttemptOutcome, SessionView, Timeline};

use crate::model::{ModelChange, RetryTold, Run, Session};

/// A session with its retries and the changes of its model.
pub(super) fn told_session(timeline: &Timeline, session: &SessionView, run: &Run) -> Session {
    let own = || {
        timeline
            .attempts
            .iter()
            .filter(|one| one.session == session.id)
    };
    let mut retries = Vec::new();
    for (at, story) in own().enumerate() {
        let (Some(made), Some(found)) = (&story.decision, &story.diagnosis) else {
            continue;
        };
        let told = made.decision.told(story.number, &found.message);
        let next = own().nth(at + 1);
        retries.push(RetryTold {
            succeeded: next.is_some_and(|next| next.outcome == AttemptOutcome::Succeeded),
            ..RetryTold::from(told)
        });
    }
    let changes = own().flat_map(|one| one.moved.iter().chain(&one.model_change));
    // What belongs to no attempt belongs to a client's only session.
    let loose = timeline
        .moved
        .iter()
        .filter(|_| timeline.sessions.len() == 1);
    let model_changes = changes.chain(loose).cloned().map(ModelChange::from);
    let model_changes: Vec<_> = model_changes.collect();
    let told = Session::of(session.clone(), timeline.specs.get(&session.id), run);
    Session {
        retries,
        // Where the agent was never told a model, the last change is what is known.
        model: told
            .model
            .or_else(|| Some(model_changes.last()?.to_model.clone())),
        model_changes,
        ..told
    }
}
