//! Queries for sessions.

use unstuck_core::views::{RunStatus, RunTimeline};
use unstuck_store::RunFilter;

use super::runs;
use super::session_from_timeline::session_with_history;
use crate::model::{AttemptResponse, ProblemDetails, RunSummaryResponse, SessionResponse};
use crate::server_state::WebState;

/// Statuses of runs with active sessions.
const ACTIVE_STATUSES: [RunStatus; 4] = [
    RunStatus::Running,
    RunStatus::Waiting,
    RunStatus::AwaitingHuman,
    RunStatus::Crashed,
];

/// Returns the sessions that run or wait, then those that crashed or need human input; each group starts with the
/// newest runs. Limited to a number of runs.
pub async fn active_sessions(
    web: &WebState,
    most_runs: usize,
) -> Result<Vec<SessionResponse>, ProblemDetails> {
    let of = async |status: &[RunStatus], most: usize| {
        let filter = RunFilter {
            status: status.to_vec(),
            limit: Some(most),
            ..RunFilter::default()
        };
        runs::runs(web, &filter).await
    };
    // Blocked sessions are also listed in the inbox and must not displace the others.
    let mut found = of(&[RunStatus::Running, RunStatus::Waiting], most_runs)
        .await?
        .items;
    let left = most_runs.saturating_sub(found.len());
    if left > 0 {
        found.extend(
            of(&[RunStatus::Crashed, RunStatus::AwaitingHuman], left)
                .await?
                .items,
        );
    }
    let mut active = Vec::new();
    for run in found {
        let (timeline, run) = runs::timeline_and_run(web, &run.id).await?;
        let sessions = timeline.sessions.iter();
        let going_on = sessions.filter(|one| ACTIVE_STATUSES.contains(&one.status));
        active.extend(going_on.map(|one| session_with_history(&timeline, one, &run)));
    }
    Ok(active)
}

/// Returns a session.
pub async fn session(web: &WebState, id: &str) -> Result<SessionResponse, ProblemDetails> {
    let (timeline, run) = timeline_of_session(web, id).await?;
    let session = timeline.sessions.iter().find(|one| one.id.as_str() == id);
    let session = session.ok_or_else(|| session_not_found(id))?;
    Ok(session_with_history(&timeline, session, &run))
}

/// Returns the attempts of a session, in order of their start.
pub async fn session_attempts(
    web: &WebState,
    id: &str,
) -> Result<Vec<AttemptResponse>, ProblemDetails> {
    let (timeline, _) = timeline_of_session(web, id).await?;
    if timeline.sessions.iter().all(|one| one.id.as_str() != id) {
        return Err(session_not_found(id));
    }
    let attempts = timeline.attempts.into_iter();
    let own = attempts.filter(|story| story.session.as_str() == id);
    Ok(own.map(AttemptResponse::from).collect())
}

/// Returns the timeline of the run that contains a session.
pub async fn timeline_of_session(
    web: &WebState,
    session: &str,
) -> Result<(RunTimeline, RunSummaryResponse), ProblemDetails> {
    // A session id is the run id followed by a number.
    let (run, _) = session
        .rsplit_once('-')
        .ok_or_else(|| session_not_found(session))?;
    let told = runs::timeline_and_run(web, run).await;
    told.map_err(|problem| match problem.status {
        404 => session_not_found(session),
        _ => problem,
    })
}

fn session_not_found(id: &str) -> ProblemDetails {
    ProblemDetails::not_found(format!(
        "session `{id}` not found; GET /api/runs/{{run}} lists the sessions of a run"
    ))
}
