//! Endpoints for health, readiness, version and the OpenAPI document.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use unstuck_store::{RunFilter, StoreError};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::model::{LivenessResponse, ProblemDetails, ProgramVersionResponse, ReadinessResponse};
use crate::response_redaction::AlreadyRedacted;
use crate::server_state::WebState;

pub(super) fn routes() -> OpenApiRouter<Arc<WebState>> {
    OpenApiRouter::new()
        .routes(routes!(health))
        .routes(routes!(ready))
        .routes(routes!(version))
        .routes(routes!(document))
}

/// Check that the server responds
#[utoipa::path(
    get,
    path = "/api/health",
    tag = "server",
    responses((status = OK, description = "The server responds.", body = LivenessResponse))
)]
async fn health(State(web): State<Arc<WebState>>) -> Result<Response, ProblemDetails> {
    web.json_response(&LivenessResponse {
        status: "ok".to_owned(),
        now: web.now(),
        since: web.since,
    })
}

/// Check that the server is ready
#[utoipa::path(
    get,
    path = "/api/ready",
    tag = "server",
    responses((status = OK, description = "The store can be read and written.", body = ReadinessResponse))
)]
async fn ready(State(web): State<Arc<WebState>>) -> Result<Response, ProblemDetails> {
    let one = RunFilter {
        limit: Some(1),
        ..RunFilter::default()
    };
    let read = web.store().runs(&one).await;
    let not_ready =
        |error: StoreError| ProblemDetails::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string());
    read.map_err(not_ready)?;
    let store = web.store().clone();
    let probed = tokio::task::spawn_blocking(move || store.probe_disk_space()).await;
    match probed {
        Ok(room) => room.map_err(not_ready)?,
        Err(error) => {
            return Err(ProblemDetails::new(
                StatusCode::SERVICE_UNAVAILABLE,
                error.to_string(),
            ));
        }
    }
    web.json_response(&ReadinessResponse {
        status: "ready".to_owned(),
    })
}

/// Show name and version of the program
#[utoipa::path(
    get,
    path = "/api/version",
    tag = "server",
    responses((status = OK, description = "Name and version.", body = ProgramVersionResponse))
)]
async fn version(State(web): State<Arc<WebState>>) -> Result<Response, ProblemDetails> {
    web.json_response(&ProgramVersionResponse {
        name: "unstuck".to_owned(),
        version: web.version.clone(),
        events: unstuck_core::event::VERSION,
    })
}

/// Return this OpenAPI document
#[utoipa::path(
    get,
    path = "/api/openapi.json",
    tag = "server",
    responses((status = OK, description = "An OpenAPI document.", body = Object))
)]
async fn document() -> Response {
    let json = HeaderValue::from_static("application/json");
    let body = super::openapi().to_json().unwrap_or_default();
    let mut response = ([(header::CONTENT_TYPE, json)], body).into_response();
    // This content is generated only by us, so it needs no redaction.
    response.extensions_mut().insert(AlreadyRedacted);
    response
}
