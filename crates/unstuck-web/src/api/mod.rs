//! The REST API: one file for each subject, and the document that describes all of it.

mod csv;
mod document;
mod escalations;
mod events;
mod extract;
mod failures;
mod health;
mod login;
mod policies;
mod projects;
mod recovery;
mod runs;
mod sessions;
mod settings;
mod spending;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::model::Problem;
use crate::web::Web;
use crate::{door, pages};

/// The longest body that is read.
const LONGEST_BODY: usize = 1 << 20;

/// The API and the pages, with the guard in front of both.
pub fn router(web: Arc<Web>) -> Router {
    let (api, _) = described().split_for_parts();
    api.merge(pages::router())
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .layer(from_fn_with_state(Arc::clone(&web), door::keep))
        .with_state(web)
}

/// The document that describes the API.
pub fn openapi() -> OpenApi {
    document::completed(described().into_openapi())
}

fn described() -> OpenApiRouter<Arc<Web>> {
    OpenApiRouter::with_openapi(document::head())
        .merge(health::routes())
        .merge(login::routes())
        .merge(projects::routes())
        .merge(runs::routes())
        .merge(sessions::routes())
        .merge(escalations::routes())
        .merge(events::routes())
        .merge(failures::routes())
        .merge(recovery::routes())
        .merge(policies::routes())
        .merge(settings::routes())
        .merge(spending::routes())
}

async fn not_found(request: Request) -> Response {
    let path = request.uri().path();
    match path == "/api" || path.starts_with("/api/") {
        true => Problem::not_found("there is nothing here; /api/openapi.json tells what there is")
            .into_response(),
        false => pages::not_found(),
    }
}

async fn not_allowed(request: Request) -> Problem {
    let (method, path) = (request.method(), request.uri().path());
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("{path} knows no {method}; the header Allow tells what it knows"),
    )
}
