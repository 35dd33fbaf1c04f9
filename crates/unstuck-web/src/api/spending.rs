//! What calls of LLM APIs cost.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use unstuck_core::Timestamp;
use unstuck_store::{SpendingQuery, SpentBy};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::Asked;
use crate::model::{Page, Problem, Spending};
use crate::reading;
use crate::web::Web;

pub(super) fn routes() -> OpenApiRouter<Arc<Web>> {
    OpenApiRouter::new().routes(routes!(list_spending))
}

/// What is told apart.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum By {
    /// The day, in UTC.
    #[default]
    Day,
    /// The project.
    Project,
    /// The run.
    Run,
    /// The session.
    Session,
    /// The model that answered.
    Model,
    /// Who was asked.
    Upstream,
}

/// What was spent is asked for.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SpendingAsked {
    /// What is told apart; days where left out.
    #[param(inline)]
    by: By,
    /// From the hour of this moment on.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// Up to the hour of this moment.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// Only in the project with this id.
    project: Option<String>,
}

/// Tell what calls of LLM APIs cost, by day or by something else
#[utoipa::path(
    get,
    path = "/api/spending",
    tag = "analytics",
    params(SpendingAsked),
    responses((status = OK, description = "What was spent.", body = Page<Spending>))
)]
async fn list_spending(
    State(web): State<Arc<Web>>,
    Asked(asked): Asked<SpendingAsked>,
) -> Result<Response, Problem> {
    let project = match &asked.project {
        Some(id) => Some(reading::project_root(&web, id).await?),
        None => None,
    };
    let query = SpendingQuery {
        by: match asked.by {
            By::Day => SpentBy::Day,
            By::Project => SpentBy::Project,
            By::Run => SpentBy::Run,
            By::Session => SpentBy::Session,
            By::Model => SpentBy::Model,
            By::Upstream => SpentBy::Upstream,
        },
        since: asked.since,
        until: asked.until,
        project,
    };
    web.told(&Page::whole(reading::spending(&web, &query).await?))
}
