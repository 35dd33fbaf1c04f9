//! The REST API, with one file per subject, and its OpenAPI document.

mod configured_resources;
mod escalations;
mod events;
mod extractors;
mod failure_csv;
mod failures;
mod health;
mod login;
mod openapi_document;
mod policies;
mod projects;
mod recovery_statistics;
mod runs;
mod sessions;
mod spending;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::model::ProblemDetails;
use crate::server_state::WebState;
use crate::{auth_middleware, pages};

/// Maximum body size in bytes.
const MAX_BODY_BYTES: usize = 1 << 20;

/// Creates the router of the API and the pages, behind the auth middleware.
pub fn router(web: Arc<WebState>) -> Router {
    let (api, _) = api_router().split_for_parts();
    api.merge(pages::router())
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(from_fn_with_state(
            Arc::clone(&web),
            auth_middleware::authorize_request,
        ))
        .with_state(web)
}

/// Returns the OpenAPI document.
pub fn openapi() -> OpenApi {
    openapi_document::with_problem_responses(api_router().into_openapi())
}

fn api_router() -> OpenApiRouter<Arc<WebState>> {
    OpenApiRouter::with_openapi(openapi_document::base_document())
        .merge(health::routes())
        .merge(login::routes())
        .merge(projects::routes())
        .merge(runs::routes())
        .merge(sessions::routes())
        .merge(escalations::routes())
        .merge(events::routes())
        .merge(failures::routes())
        .merge(recovery_statistics::routes())
        .merge(policies::routes())
        .merge(configured_resources::routes())
        .merge(spending::routes())
}

async fn not_found(request: Request) -> Response {
    let path = request.uri().path();
    if path == "/api" || path.starts_with("/api/") {
        ProblemDetails::not_found("path not found; see /api/openapi.json").into_response()
    } else {
        pages::not_found()
    }
}

async fn not_allowed(request: Request) -> ProblemDetails {
    let (method, path) = (request.method(), request.uri().path());
    ProblemDetails::new(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("{method} is not allowed on {path}; see the Allow header"),
    )
}
