//! Finishes every response: adds the path to problems and redacts secrets.

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use unstuck_core::redact::Redactor;

use crate::model::ProblemDetails;

/// Marks a response that contains no secrets, or only those that the client is meant to get.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AlreadyRedacted;

/// Maximum size of a response that is redacted here; anything longer is a stream that redacts itself.
const MAX_REDACTED_BYTES: usize = 64 << 20;

/// Finishes a response.
pub(crate) async fn finish_response(
    redactor: &Redactor,
    mut response: Response,
    path: &str,
) -> Response {
    if let Some(problem) = response.extensions_mut().remove::<Box<ProblemDetails>>() {
        let headers = std::mem::take(response.headers_mut());
        let status = response.status();
        response = problem_response(redactor, *problem, path);
        *response.status_mut() = status;
        response.headers_mut().extend(headers);
    }
    match response.extensions().get::<AlreadyRedacted>() {
        Some(_) => response,
        None if is_text(response.headers()) => redact_body(redactor, response).await,
        None => response,
    }
}

fn problem_response(redactor: &Redactor, mut problem: ProblemDetails, path: &str) -> Response {
    problem.instance = Some(redactor.redact(path).into_owned());
    problem.detail = redactor.redact(&problem.detail).into_owned();
    let body = serde_json::to_vec(&problem).unwrap_or_default();
    let mut response = body.into_response();
    response.headers_mut().clear();
    response.extensions_mut().insert(AlreadyRedacted);
    response
}

fn is_text(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE);
    let media_type = media_type.and_then(|value| value.to_str().ok());
    media_type.is_some_and(|one| one.starts_with("text/html") || one.contains("json"))
}

async fn redact_body(redactor: &Redactor, response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, MAX_REDACTED_BYTES).await else {
        return ProblemDetails::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "response too large; request less data",
        )
        .into_response();
    };
    let clean = redactor.redact_bytes(&bytes).into_owned();
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(clean))
}
