//! Projects in which something ran.

use crate::model::{Problem, Project, project_id};
use crate::web::Web;

/// All projects, the newest activity first.
pub async fn projects(web: &Web) -> Result<Vec<Project>, Problem> {
    let all = web.store().projects().await?;
    Ok(all.into_iter().map(Project::from).collect())
}

/// One project.
pub async fn project(web: &Web, id: &str) -> Result<Project, Problem> {
    let all = web.store().projects().await?;
    let found = all.into_iter().find(|view| project_id(&view.root) == id);
    found.map(Project::from).ok_or_else(|| {
        Problem::not_found(format!(
            "there is no project `{id}`; GET /api/projects lists them"
        ))
    })
}

/// The root folder of the project with this id.
pub async fn project_root(web: &Web, id: &str) -> Result<String, Problem> {
    Ok(project(web, id).await?.root)
}
