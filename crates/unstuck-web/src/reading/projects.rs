//! Projects in which something ran.

use std::collections::BTreeMap;

use unstuck_store::RunFilter;

use crate::model::{Problem, Project, project_id, project_name, rounded};
use crate::web::Web;

/// All projects, the newest activity first.
pub async fn projects(web: &Web) -> Result<Vec<Project>, Problem> {
    let mut found: BTreeMap<String, Project> = BTreeMap::new();
    for run in web.store().runs(&RunFilter::default()).await? {
        let root = run.project;
        let project = found.entry(root.clone()).or_insert_with(|| Project {
            id: project_id(&root),
            name: project_name(&root),
            root,
            runs: BTreeMap::new(),
            last_activity: None,
            cost_usd: 0.0,
        });
        *project
            .runs
            .entry(run.status.name().to_owned())
            .or_default() += 1;
        project.last_activity = project.last_activity.max(Some(run.updated));
        project.cost_usd = rounded(project.cost_usd + run.cost_usd);
    }
    let mut all: Vec<_> = found.into_values().collect();
    all.sort_by_key(|project| std::cmp::Reverse(project.last_activity));
    Ok(all)
}

/// One project.
pub async fn project(web: &Web, id: &str) -> Result<Project, Problem> {
    let all = projects(web).await?;
    let found = all.into_iter().find(|project| project.id == id);
    found.ok_or_else(|| {
        Problem::not_found(format!(
            "there is no project `{id}`; GET /api/projects lists them"
        ))
    })
}

/// The root folder of the project with this id.
pub async fn project_root(web: &Web, id: &str) -> Result<String, Problem> {
    Ok(project(web, id).await?.root)
}
