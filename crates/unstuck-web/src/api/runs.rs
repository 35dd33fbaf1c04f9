//! Runs, and the attempts in them.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use unstuck_core::episode::Status;
use unstuck_core::{RunId, Timestamp};
use unstuck_store::RunFilter;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::{Asked, Named, each, limit, one};
use crate::guard::Who;
use crate::model::{Attempt, AttemptTexts, Page, Problem, Run, RunDetail};
use crate::reading;
use crate::web::Web;

pub(super) fn routes() -> OpenApiRouter<Arc<Web>> {
    OpenApiRouter::new()
        .routes(routes!(list_runs))
        .routes(routes!(get_run))
        .routes(routes!(list_attempts))
        .routes(routes!(get_attempt))
        .routes(routes!(get_attempt_texts))
        .routes(routes!(stop_run))
}

/// Which runs are asked for.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RunsAsked {
    /// Where they stand: one of these, with commas between them.
    #[param(example = "running,waiting")]
    status: Option<String>,
    /// The id of their project.
    project: Option<String>,
    /// The kind of their newest failure.
    kind: Option<String>,
    /// They began then or later.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// They began before.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// At most so many; 50 where left out.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// What `next` of the page before said.
    after: Option<String>,
}

/// List runs, the newest first
#[utoipa::path(
    get,
    path = "/api/runs",
    tag = "runs",
    params(RunsAsked),
    responses((status = OK, description = "Runs.", body = Page<Run>))
)]
async fn list_runs(
    State(web): State<Arc<Web>>,
    Asked(asked): Asked<RunsAsked>,
) -> Result<Response, Problem> {
    let project = match &asked.project {
        Some(id) => Some(reading::project_root(&web, id).await?),
        None => None,
    };
    let filter = RunFilter {
        project,
        status: each("status", asked.status.as_deref(), Status::named)?,
        kind: one("kind", asked.kind.as_deref())?,
        since: asked.since,
        until: asked.until,
        after: one("after", asked.after.as_deref())?,
        limit: Some(limit(asked.limit)?),
        ..RunFilter::default()
    };
    web.told(&reading::runs(&web, &filter).await?)
}

/// Show a run with its sessions
#[utoipa::path(
    get,
    path = "/api/runs/{id}",
    tag = "runs",
    params(("id" = String, Path, description = "The id of the run.")),
    responses((status = OK, description = "The run.", body = RunDetail))
)]
async fn get_run(
    State(web): State<Arc<Web>>,
    Named(id): Named<String>,
) -> Result<Response, Problem> {
    web.told(&reading::run(&web, &id).await?)
}

/// List the attempts of a run, in the order in which they began
#[utoipa::path(
    get,
    path = "/api/runs/{id}/attempts",
    tag = "runs",
    params(("id" = String, Path, description = "The id of the run.")),
    responses((status = OK, description = "Its attempts.", body = Page<Attempt>))
)]
async fn list_attempts(
    State(web): State<Arc<Web>>,
    Named(id): Named<String>,
) -> Result<Response, Problem> {
    web.told(&Page::whole(reading::attempts(&web, &id).await?))
}

/// Show one attempt of a run
#[utoipa::path(
    get,
    path = "/api/runs/{id}/attempts/{index}",
    tag = "runs",
    params(
        ("id" = String, Path, description = "The id of the run."),
        ("index" = u32, Path, description = "Its place among all attempts of the run, from 1."),
    ),
    responses((status = OK, description = "The attempt.", body = Attempt))
)]
async fn get_attempt(
    State(web): State<Arc<Web>>,
    Named((id, index)): Named<(String, u32)>,
) -> Result<Response, Problem> {
    web.told(&reading::attempt(&web, &id, index).await?)
}

/// Show what an attempt was given and wrote
#[utoipa::path(
    get,
    path = "/api/runs/{id}/attempts/{index}/texts",
    tag = "runs",
    params(
        ("id" = String, Path, description = "The id of the run."),
        ("index" = u32, Path, description = "Its place among all attempts of the run, from 1."),
    ),
    responses((status = OK, description = "Its prompt and its output.", body = AttemptTexts))
)]
async fn get_attempt_texts(
    State(web): State<Arc<Web>>,
    Named((id, index)): Named<(String, u32)>,
) -> Result<Response, Problem> {
    reading::attempt(&web, &id, index).await?;
    web.told(&web.deeds().texts(RunId::new(id), index).await?)
}

/// Stop a run
///
/// What it was doing can be taken up again.
#[utoipa::path(
    post,
    path = "/api/runs/{id}/stop",
    tag = "runs",
    params(("id" = String, Path, description = "The id of the run.")),
    responses((status = ACCEPTED, description = "It is told to stop."))
)]
async fn stop_run(
    State(web): State<Arc<Web>>,
    Named(id): Named<String>,
    who: Who,
) -> Result<StatusCode, Problem> {
    let run = reading::run(&web, &id).await?.run;
    if run.finished.is_some() {
        return Err(Problem::conflict(format!("run {id} has ended already")));
    }
    web.deeds().stop(RunId::new(id), who.signature()).await?;
    Ok(StatusCode::ACCEPTED)
}
