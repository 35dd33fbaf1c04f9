//! The dashboard: pages for people, made from the same readings as the API.

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Response};

use crate::model::Problem;
use crate::web::Web;

/// The routes of all pages and of what they need.
pub(crate) fn router() -> Router<Arc<Web>> {
    Router::new()
}

/// The answer to whoever asks for a page that is not there.
pub(crate) fn not_found() -> Response {
    Problem::not_found("there is no such page").into_response()
}
