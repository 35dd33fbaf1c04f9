//! Endpoint for the cost of LLM API calls.

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
use crate::model::{ListPage, ProblemDetails, UsageTotals};
use crate::queries;
use crate::server_state::WebState;

pub(super) fn routes() -> OpenApiRouter<Arc<WebState>> {
    OpenApiRouter::new().routes(routes!(list_spending))
}

/// The dimension to group by.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum CostDimension {
    /// By day (UTC).
    #[default]
    Day,
    /// By project.
    Project,
    /// By run.
    Run,
    /// By session.
    Session,
    /// By the model that answered.
    Model,
    /// By upstream.
    Upstream,
}

/// Query for the spending report.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SpendingReportQuery {
    /// Dimension to group by; the default is `day`.
    #[param(inline)]
    by: CostDimension,
    /// Start, rounded down to the hour.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// End, rounded down to the hour (inclusive).
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// Filter by project id.
    project: Option<String>,
}

/// Show the cost of LLM API calls by day or another dimension
#[utoipa::path(
    get,
    path = "/api/spending",
    tag = "analytics",
    params(SpendingReportQuery),
    responses((status = OK, description = "Cost of LLM API calls.", body = ListPage<UsageTotals>))
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
            CostDimension::Day => CostGroupBy::Day,
            CostDimension::Project => CostGroupBy::Project,
            CostDimension::Run => CostGroupBy::Run,
            CostDimension::Session => CostGroupBy::Session,
            CostDimension::Model => CostGroupBy::Model,
            CostDimension::Upstream => CostGroupBy::Upstream,
        },
        since: asked.since,
        until: asked.until,
        project,
    };
    web.json_response(&ListPage::single(queries::spending(&web, &query).await?))
}
