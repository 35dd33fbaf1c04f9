//! Queries for projects.

use crate::model::{ProblemDetails, ProjectResponse, project_id};
use crate::server_state::WebState;

/// Returns all projects, the latest activity first.
pub async fn projects(web: &WebState) -> Result<Vec<ProjectResponse>, ProblemDetails> {
    let all = web.store().projects().await?;
    Ok(all.into_iter().map(ProjectResponse::from).collect())
}

/// Returns a project.
pub async fn project(web: &WebState, id: &str) -> Result<ProjectResponse, ProblemDetails> {
    let all = web.store().projects().await?;
    let found = all.into_iter().find(|view| project_id(&view.root) == id);
    found.map(ProjectResponse::from).ok_or_else(|| {
        ProblemDetails::not_found(format!(
            "project `{id}` not found; GET /api/projects lists all projects"
        ))
    })
}

/// Returns the root directory of a project.
pub async fn project_root(web: &WebState, id: &str) -> Result<String, ProblemDetails> {
    Ok(project(web, id).await?.root)
}
