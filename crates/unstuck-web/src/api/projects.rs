//! Projects.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::Named;
use crate::model::{Page, Problem, Project};
use crate::reading;
use crate::web::Web;

pub(super) fn routes() -> OpenApiRouter<Arc<Web>> {
    OpenApiRouter::new()
        .routes(routes!(list_projects))
        .routes(routes!(get_project))
}

/// List the projects in which something ran, the newest activity first
#[utoipa::path(
    get,
    path = "/api/projects",
    tag = "projects",
    responses((status = OK, description = "Projects.", body = Page<Project>))
)]
async fn list_projects(State(web): State<Arc<Web>>) -> Result<Response, Problem> {
    web.told(&Page::whole(reading::projects(&web).await?))
}

/// Show a project
#[utoipa::path(
    get,
    path = "/api/projects/{id}",
    tag = "projects",
    params(("id" = String, Path, description = "The id of the project.")),
    responses((status = OK, description = "The project.", body = Project))
)]
async fn get_project(
    State(web): State<Arc<Web>>,
    Named(id): Named<String>,
) -> Result<Response, Problem> {
    web.told(&reading::project(&web, &id).await?)
}
