//! Adds the history of a session from the timeline of its run.

use unstuck_core::views::{AttemptOutcome, RunTimeline, SessionSummary};

use crate::model::{ModelSwitchEntry, RetryHistoryEntry, RunSummaryResponse, SessionResponse};

/// Returns a session with its retries and model switches.
pub(super) fn session_with_history(
    timeline: &RunTimeline,
    session: &SessionSummary,
    run: &RunSummaryResponse,
) -> SessionResponse {
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
        let told = made.decision.to_retry_attempt(story.number, &found.message);
        let next = own().nth(at + 1);
        retries.push(RetryHistoryEntry {
            succeeded: next.is_some_and(|next| next.outcome == AttemptOutcome::Succeeded),
            ..RetryHistoryEntry::from(told)
        });
    }
    let changes = own().flat_map(|one| one.gateway_model_switches.iter().chain(&one.model_switch));
    // Items without an attempt belong to the only session of a gateway client.
    let loose = timeline
        .model_switches
        .iter()
        .filter(|_| timeline.sessions.len() == 1);
    let model_changes = changes.chain(loose).cloned().map(ModelSwitchEntry::from);
    let model_changes: Vec<_> = model_changes.collect();
    let told = SessionResponse::from_view(session.clone(), timeline.specs.get(&session.id), run);
    SessionResponse {
        retries,
        // If the agent was given no model, the last switch determines it.
        model: told
            .model
            .or_else(|| Some(model_changes.last()?.to_model.clone())),
        model_changes,
        ..told
    }
}
