//! Endpoints for projects.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extractors::PathParams;
use crate::model::{ListPage, ProblemDetails, ProjectResponse};
use crate::queries;
use crate::server_state::WebState;

pub(super) fn routes() -> OpenApiRouter<Arc<WebState>> {
    OpenApiRouter::new()
        .routes(routes!(list_projects))
        .routes(routes!(get_project))
}

/// List projects, the latest activity first
#[utoipa::path(
    get,
    path = "/api/projects",
    tag = "projects",
    responses((status = OK, description = "Projects.", body = ListPage<ProjectResponse>))
)]
async fn list_projects(State(web): State<Arc<WebState>>) -> Result<Response, ProblemDetails> {
    web.json_response(&ListPage::single(queries::projects(&web).await?))
}

/// Show a project
#[utoipa::path(
    get,
    path = "/api/projects/{id}",
    tag = "projects",
    params(("id" = String, Path, description = "Id of the project.")),
    responses((status = OK, description = "The project.", body = ProjectResponse))
)]
async fn get_project(
    State(web): State<Arc<WebState>>,
    PathParams(id): PathParams<String>,
) -> Result<Response, ProblemDetails> {
    web.json_response(&queries::project(&web, &id).await?)
}
