//! Sessions: one agent's conversation each.

use unstuck_core::episode::{Status, Timeline};
use unstuck_store::RunFilter;

use super::runs;
use super::told_session::told_session;
use crate::model::{Attempt, Problem, Run, Session};
use crate::web::Web;

/// Where runs stand whose sessions may go on.
const GOING_ON: [Status; 4] = [
    Status::Running,
    Status::Waiting,
    Status::AwaitingHuman,
    Status::Crashed,
];

/// The sessions that run or wait, then those that crashed or need a person, those of the newest runs first; of so many
/// runs at most.
pub async fn active_sessions(web: &Web, most_runs: usize) -> Result<Vec<Session>, Problem> {
    let of = async |status: &[Status], most: usize| {
        let filter = RunFilter {
            status: status.to_vec(),
            limit: Some(most),
            ..RunFilter::default()
        };
        runs::runs(web, &filter).await
    };
    // Those that need a person stand in the inbox as well, and must not push the others out.
    let mut found = of(&[Status::Running, Status::Waiting], most_runs)
        .await?
        .items;
    let left = most_runs.saturating_sub(found.len());
    if left > 0 {
        found.extend(
            of(&[Status::Crashed, Status::AwaitingHuman], left)
                .await?
                .items,
        );
    }
    let mut active = Vec::new();
    for run in found {
        let (timeline, run) = runs::told(web, &run.id).await?;
        let sessions = timeline.sessions.iter();
        let going_on = sessions.filter(|one| GOING_ON.contains(&one.status));
        active.extend(going_on.map(|one| told_session(&timeline, one, &run)));
    }
    Ok(active)
}

/// One session.
pub async fn session(web: &Web, id: &str) -> Result<Session, Problem> {
    let (timeline, run) = story_of(web, id).await?;
    let session = timeline.sessions.iter().find(|one| one.id.as_str() == id);
    let session = session.ok_or_else(|| unknown(id))?;
    Ok(told_session(&timeline, session, &run))
}

/// The attempts of a session, in the order in which they began.
pub async fn session_attempts(web: &Web, id: &str) -> Result<Vec<Attempt>, Problem> {
    let (timeline, _) = story_of(web, id).await?;
    if timeline.sessions.iter().all(|one| one.id.as_str() != id) {
        return Err(unknown(id));
    }
    let attempts = timeline.attempts.into_iter();
    let own = attempts.filter(|story| story.session.as_str() == id);
    Ok(own.map(Attempt::from).collect())
}

/// The story of the run that a session belongs to.
pub async fn story_of(web: &Web, session: &str) -> Result<(Timeline, Run), Problem> {
    // The id of a session is that of its run, and a number.
    let (run, _) = session.rsplit_once('-').ok_or_else(|| unknown(session))?;
    let told = runs::told(web, run).await;
    told.map_err(|problem| match problem.status {
        404 => unknown(session),
        _ => problem,
    })
}

fn unknown(id: &str) -> Problem {
    Problem::not_found(format!(
        "there is no session `{id}`; GET /api/runs/{{run}} lists those of a run"
    ))
}
