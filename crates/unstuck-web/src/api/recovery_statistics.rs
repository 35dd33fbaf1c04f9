//! Endpoint for recovery statistics.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use unstuck_core::Timestamp;
use unstuck_store::RecoveryStatisticsQuery;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extractors::{QueryParams, parse_optional};
use crate::model::{ProblemDetails, RecoveryAnalytics};
use crate::queries;
use crate::server_state::WebState;

pub(super) fn routes() -> OpenApiRouter<Arc<WebState>> {
    OpenApiRouter::new().routes(routes!(get_recovery_analytics))
}

/// Query for recovery statistics.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RecoveryAnalyticsQuery {
    /// Start, rounded down to the hour.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// End, rounded down to the hour (exclusive).
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// Filter by project id.
    project: Option<String>,
    /// Filter by model.
    model: Option<String>,
    /// Filter by kind of failure.
    kind: Option<String>,
}

/// Show recovery statistics by level, strategy and day
#[utoipa::path(
    get,
    path = "/api/analytics/recovery",
    tag = "analytics",
    params(RecoveryAnalyticsQuery),
    responses((status = OK, description = "Recovery statistics.", body = RecoveryAnalytics))
)]
async fn get_recovery_analytics(
    State(web): State<Arc<WebState>>,
    QueryParams(asked): QueryParams<RecoveryAnalyticsQuery>,
) -> Result<Response, ProblemDetails> {
    let project = match &asked.project {
        Some(id) => Some(queries::project_root(&web, id).await?),
        None => None,
    };
    let query = RecoveryStatisticsQuery {
        since: asked.since,
        until: asked.until,
        project,
        model: asked.model,
        kind: parse_optional("kind", asked.kind.as_deref())?,
    };
    web.json_response(&queries::recovery_analytics(&web, &query).await?)
}
