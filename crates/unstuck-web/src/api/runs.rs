//! Endpoints for runs and their attempts.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use unstuck_core::views::RunStatus;
use unstuck_core::{RunId, Timestamp};
use unstuck_store::RunFilter;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extractors::{PathParams, QueryParams, page_limit, parse_list, parse_optional};
use crate::auth::CallerIdentity;
use crate::model::{
    AttemptResponse, AttemptTexts, ListPage, ProblemDetails, RunDetail, RunSummaryResponse,
};
use crate::queries;
use crate::server_state::WebState;

pub(super) fn routes() -> OpenApiRouter<Arc<WebState>> {
    OpenApiRouter::new()
        .routes(routes!(list_runs))
        .routes(routes!(get_run))
        .routes(routes!(list_attempts))
        .routes(routes!(get_attempt))
        .routes(routes!(get_attempt_texts))
        .routes(routes!(stop_run))
}

/// Query for a list of runs.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RunListQuery {
    /// Filter by statuses, separated by commas.
    #[param(example = "running,waiting")]
    status: Option<String>,
    /// Filter by project id.
    project: Option<String>,
    /// Filter by the kind of the latest failure.
    kind: Option<String>,
    /// Earliest start time.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// Latest start time (exclusive).
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// Maximum number of results; the default is 50.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// Value of `next` from the previous page.
    after: Option<String>,
}

/// List runs, the newest first
#[utoipa::path(
    get,
    path = "/api/runs",
    tag = "runs",
    params(RunListQuery),
    responses((status = OK, description = "Runs.", body = ListPage<RunSummaryResponse>))
)]
async fn list_runs(
    State(web): State<Arc<WebState>>,
    QueryParams(asked): QueryParams<RunListQuery>,
) -> Result<Response, ProblemDetails> {
    let project = match &asked.project {
        Some(id) => Some(queries::project_root(&web, id).await?),
        None => None,
    };
    let filter = RunFilter {
        project,
        status: parse_list("status", asked.status.as_deref(), RunStatus::from_name)?,
        kind: parse_optional("kind", asked.kind.as_deref())?,
        since: asked.since,
        until: asked.until,
        after: parse_optional("after", asked.after.as_deref())?,
        limit: Some(page_limit(asked.limit)?),
        ..RunFilter::default()
    };
    web.json_response(&queries::runs(&web, &filter).await?)
}

/// Show a run with its sessions
#[utoipa::path(
    get,
    path = "/api/runs/{id}",
    tag = "runs",
    params(("id" = String, Path, description = "Id of the run.")),
    responses((status = OK, description = "The run.", body = RunDetail))
)]
async fn get_run(
    State(web): State<Arc<WebState>>,
    PathParams(id): PathParams<String>,
) -> Result<Response, ProblemDetails> {
    web.json_response(&queries::run(&web, &id).await?)
}

/// List the attempts of a run, in order of their start
#[utoipa::path(
    get,
    path = "/api/runs/{id}/attempts",
    tag = "runs",
    params(("id" = String, Path, description = "Id of the run.")),
    responses((status = OK, description = "Attempts of the run.", body = ListPage<AttemptResponse>))
)]
async fn list_attempts(
    State(web): State<Arc<WebState>>,
    PathParams(id): PathParams<String>,
) -> Result<Response, ProblemDetails> {
    web.json_response(&ListPage::single(queries::attempts(&web, &id).await?))
}

/// Show an attempt of a run
#[utoipa::path(
    get,
    path = "/api/runs/{id}/attempts/{index}",
    tag = "runs",
    params(
        ("id" = String, Path, description = "Id of the run."),
        ("index" = u32, Path, description = "Index among all attempts of the run, from 1."),
    ),
    responses((status = OK, description = "The attempt.", body = AttemptResponse))
)]
async fn get_attempt(
    State(web): State<Arc<WebState>>,
    PathParams((id, index)): PathParams<(String, u32)>,
) -> Result<Response, ProblemDetails> {
    web.json_response(&queries::attempt(&web, &id, index).await?)
}

/// Show the prompt and output of an attempt
#[utoipa::path(
    get,
    path = "/api/runs/{id}/attempts/{index}/texts",
    tag = "runs",
    params(
        ("id" = String, Path, description = "Id of the run."),
        ("index" = u32, Path, description = "Index among all attempts of the run, from 1."),
    ),
    responses((status = OK, description = "Prompt and output of the attempt.", body = AttemptTexts))
)]
async fn get_attempt_texts(
    State(web): State<Arc<WebState>>,
    PathParams((id, index)): PathParams<(String, u32)>,
) -> Result<Response, ProblemDetails> {
    queries::attempt(&web, &id, index).await?;
    web.json_response(&web.deeds().texts(RunId::new(id), index).await?)
}

/// Stop a run
///
/// It can be resumed later.
#[utoipa::path(
    post,
    path = "/api/runs/{id}/stop",
    tag = "runs",
    params(("id" = String, Path, description = "Id of the run.")),
    responses((status = ACCEPTED, description = "The run is being stopped."))
)]
async fn stop_run(
    State(web): State<Arc<WebState>>,
    PathParams(id): PathParams<String>,
    who: CallerIdentity,
) -> Result<StatusCode, ProblemDetails> {
    let run = queries::run(&web, &id).await?.run;
    if run.finished.is_some() {
        return Err(ProblemDetails::conflict(format!(
            "run {id} has already ended"
        )));
    }
    web.deeds().stop(RunId::new(id), who.audit_name()).await?;
    Ok(StatusCode::ACCEPTED)
}
