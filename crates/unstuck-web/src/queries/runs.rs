//! Queries for runs and their attempts.

use unstuck_core::views::RunTimeline;
use unstuck_core::{RunId, Timestamp};
use unstuck_run::runner::is_alive;
use unstuck_store::{Lease, RunFilter};

use super::session_from_timeline::session_with_history;
use crate::model::{
    AttemptResponse, FailedOrRecoveredCallResponse, ListPage, ModelSwitchEntry, ProblemDetails,
    RunDetail, RunSummaryResponse, UsageTotals,
};
use crate::server_state::WebState;

/// Returns the runs that match, the newest first; the filter's limit is the page size.
pub async fn runs(
    web: &WebState,
    filter: &RunFilter,
) -> Result<ListPage<RunSummaryResponse>, ProblemDetails> {
    let leases = web.store().leases().await?;
    let now = web.now();
    let alive = leases.iter().filter(|lease| is_alive(lease, now));
    let alive: Vec<RunId> = alive.map(|lease| lease.token.run.clone()).collect();
    let filter = RunFilter {
        alive: Some(alive.clone()),
        ..filter.clone()
    };
    let page = web.store().run_page(&filter).await?;
    let mut items = Vec::with_capacity(page.runs.len());
    for view in page.runs {
        let supervised = alive.contains(&view.id);
        items.push(RunSummaryResponse::from_view(view, supervised));
    }
    Ok(ListPage {
        items,
        next: page.next.map(|next| next.to_string()),
    })
}

/// Returns a run with its sessions.
pub async fn run(web: &WebState, id: &str) -> Result<RunDetail, ProblemDetails> {
    let (timeline, run) = timeline_and_run(web, id).await?;
    let spent = web.store().run_cost(&timeline.summary.id).await?;
    let sessions = timeline.sessions.iter();
    let plan = timeline.run.pipeline();
    Ok(RunDetail {
        cwd: timeline.run.cwd().to_owned(),
        config_path: plan.and_then(|plan| plan.config_path.clone()),
        sessions: sessions
            .map(|session| session_with_history(&timeline, session, &run))
            .collect(),
        calls: timeline
            .calls
            .iter()
            .cloned()
            .map(FailedOrRecoveredCallResponse::from)
            .collect(),
        model_changes: timeline
            .model_switches
            .iter()
            .cloned()
            .map(ModelSwitchEntry::from)
            .collect(),
        spent: spent.map(UsageTotals::from),
        run,
    })
}

/// Returns all attempts of a run, in order of their start.
pub async fn attempts(web: &WebState, id: &str) -> Result<Vec<AttemptResponse>, ProblemDetails> {
    let (timeline, _) = timeline_and_run(web, id).await?;
    Ok(timeline
        .attempts
        .into_iter()
        .map(AttemptResponse::from)
        .collect())
}

/// Returns an attempt of a run by its index.
pub async fn attempt(
    web: &WebState,
    id: &str,
    index: u32,
) -> Result<AttemptResponse, ProblemDetails> {
    let all = attempts(web, id).await?;
    let found = all.into_iter().find(|attempt| attempt.index == index);
    found.ok_or_else(|| ProblemDetails::not_found(format!("run {id} has no attempt {index}")))
}

/// Returns the timeline and the summary of a run.
pub(super) async fn timeline_and_run(
    web: &WebState,
    id: &str,
) -> Result<(RunTimeline, RunSummaryResponse), ProblemDetails> {
    let story = web.store().timeline(&RunId::new(id)).await?;
    let timeline = story.ok_or_else(|| {
        ProblemDetails::not_found(format!(
            "run `{id}` not found; GET /api/runs lists all runs"
        ))
    })?;
    let leases = web.store().leases().await?;
    let supervised = is_driven(&leases, &timeline.summary.id, web.now());
    let run = RunSummaryResponse::from_view(timeline.summary.clone(), supervised);
    Ok((timeline, run))
}

fn is_driven(leases: &[Lease], run: &RunId, now: Timestamp) -> bool {
    let mut leases = leases.iter().filter(|lease| lease.token.run == *run);
    leases.any(|lease| is_alive(lease, now))
}
