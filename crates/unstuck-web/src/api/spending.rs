//! What calls of LLM APIs cost.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use unstuck_core::Timestamp;
use unstuck_store::{CostGroupBy, SpendingQuery};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extractors::QueryParams;
use crate::model::{Page, ProblemDetails, Spending};
use crate::queries;
use crate::server_state::WebState;

pub(super) fn routes() -> OpenApiRouter<Arc<WebState>> {
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
struct SpendingReportQuery {
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
    params(SpendingReportQuery),
    responses((status = OK, description = "What was spent.", body = Page<Spending>))
)]
async fn list_spending(
    State(web): State<Arc<WebState>>,
    QueryParams(asked): QueryParams<SpendingReportQuery>,
) -> Result<Response, ProblemDetails> {
    let project = match &asked.project {
        Some(id) => Some(queries::project_root(&web, id).await?),
        None => None,
    };
    let query = SpendingQuery {
        group_by: match asked.by {
            By::Day => CostGroupBy::Day,
            By::Project => CostGroupBy::Project,
            By::Run => CostGroupBy::Run,
            By::Session => CostGroupBy::Session,
            By::Model => CostGroupBy::Model,
            By::Upstream => CostGroupBy::Upstream,
        },
        since: asked.since,
        until: asked.until,
        project,
    };
    web.json_response(&Page::single(queries::spending(&web, &query).await?))
}
