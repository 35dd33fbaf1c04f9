//! Runs and their attempts.

use unstuck_core::episode::Timeline;
use unstuck_core::{RunId, Timestamp};
use unstuck_run::drive::is_alive;
use unstuck_store::{Lease, RunFilter};

use super::told_session::told_session;
use crate::model::{ApiCall, Attempt, ModelChange, Page, Problem, Run, RunDetail, Spending};
use crate::web::Web;

/// The runs that are asked for, the newest first; the filter's limit is how many a page has.
pub async fn runs(web: &Web, filter: &RunFilter) -> Result<Page<Run>, Problem> {
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
        let driven = alive.contains(&view.id);
        items.push(Run::of(view, driven));
    }
    Ok(Page {
        items,
        next: page.next.map(|next| next.to_string()),
    })
}

/// One run with its sessions.
pub async fn run(web: &Web, id: &str) -> Result<RunDetail, Problem> {
    let (timeline, run) = told(web, id).await?;
    let spent = web.store().spent_by(&timeline.view.id).await?;
    let sessions = timeline.sessions.iter();
    let plan = timeline.run.pipeline();
    Ok(RunDetail {
        cwd: timeline.run.cwd().to_owned(),
        config_path: plan.and_then(|plan| plan.config_path.clone()),
        sessions: sessions
            .map(|session| told_session(&timeline, session, &run))
            .collect(),
        calls: timeline.calls.iter().cloned().map(ApiCall::from).collect(),
        model_changes: timeline
            .moved
            .iter()
            .cloned()
            .map(ModelChange::from)
            .collect(),
        spent: spent.map(Spending::from),
        run,
    })
}

/// All attempts of a run, in the order in which they began.
pub async fn attempts(web: &Web, id: &str) -> Result<Vec<Attempt>, Problem> {
    let (timeline, _) = told(web, id).await?;
    Ok(timeline.attempts.into_iter().map(Attempt::from).collect())
}

/// One attempt of a run, by its place among all of them.
pub async fn attempt(web: &Web, id: &str, index: u32) -> Result<Attempt, Problem> {
    let all = attempts(web, id).await?;
    let found = all.into_iter().find(|attempt| attempt.index == index);
    found.ok_or_else(|| Problem::not_found(format!("run {id} has no attempt {index}")))
}

/// The story of a run, and the run at a glance.
pub(super) async fn told(web: &Web, id: &str) -> Result<(Timeline, Run), Problem> {
    let story = web.store().story(&RunId::new(id)).await?;
    let timeline = story.ok_or_else(|| {
        Problem::not_found(format!("there is no run `{id}`; GET /api/runs lists them"))
    })?;
    let leases = web.store().leases().await?;
    let driven = is_driven(&leases, &timeline.view.id, web.now());
    let run = Run::of(timeline.view.clone(), driven);
    Ok((timeline, run))
}

fn is_driven(leases: &[Lease], run: &RunId, now: Timestamp) -> bool {
    let mut leases = leases.iter().filter(|lease| lease.token.run == *run);
    leases.any(|lease| is_alive(lease, now))
}
