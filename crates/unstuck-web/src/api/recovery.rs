//! How recovery went.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use unstuck_core::Timestamp;
use unstuck_store::RecoveryQuery;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::{Asked, one};
use crate::model::{Problem, RecoveryAnalytics};
use crate::reading;
use crate::web::Web;

pub(super) fn routes() -> OpenApiRouter<Arc<Web>> {
    OpenApiRouter::new().routes(routes!(get_recovery_analytics))
}

/// Which recoveries are asked for.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct RecoveryAsked {
    /// From the hour of this moment on.
    #[param(value_type = Option<String>, format = DateTime)]
    since: Option<Timestamp>,
    /// Before the hour of this moment.
    #[param(value_type = Option<String>, format = DateTime)]
    until: Option<Timestamp>,
    /// Only in the project with this id.
    project: Option<String>,
    /// Only of this model.
    model: Option<String>,
    /// Only of this kind of failure.
    kind: Option<String>,
}

/// Tell how recovery went: by level and strategy, how long it took, how many runs were saved
#[utoipa::path(
    get,
    path = "/api/analytics/recovery",
    tag = "analytics",
    params(RecoveryAsked),
    responses((status = OK, description = "The counts.", body = RecoveryAnalytics))
)]
async fn get_recovery_analytics(
    State(web): State<Arc<Web>>,
    Asked(asked): Asked<RecoveryAsked>,
) -> Result<Response, Problem> {
    let project = match &asked.project {
        Some(id) => Some(reading::project_root(&web, id).await?),
        None => None,
    };
    let query = RecoveryQuery {
        since: asked.since,
        until: asked.until,
        project,
        model: asked.model,
        kind: one("kind", asked.kind.as_deref())?,
    };
    web.told(&reading::recovery_analytics(&web, &query).await?)
}
