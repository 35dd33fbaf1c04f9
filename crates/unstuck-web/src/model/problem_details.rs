//! Problem details of failed requests (RFC 9457).

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// Media type of problem details.
const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

/// Problem details of a failed request (RFC 9457).
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ProblemDetails {
    /// Problem type: `urn:unstuck:problem:` and a name.
    #[serde(rename = "type")]
    #[schema(value_type = String, example = "urn:unstuck:problem:not-found")]
    pub kind: Box<str>,
    /// Title of the problem type.
    pub title: &'static str,
    /// HTTP status.
    pub status: u16,
    /// Cause of this problem and how to fix it.
    pub detail: String,
    /// Requested path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Problems with single fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldProblem>,
    /// Response header sent with the problem.
    #[serde(skip)]
    #[schema(ignore)]
    header: Option<Box<(HeaderName, HeaderValue)>>,
}

/// A problem with one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldProblem {
    /// Path of the field, for example `kinds.timeout.maxRetries`.
    pub field: String,
    /// Rejected value.
    pub value: String,
    /// Allowed values.
    pub reason: String,
}

impl ProblemDetails {
    /// Creates a problem; its type and title follow from the status.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Error");
        Self {
            kind: problem_urn(title),
            title,
            status: status.as_u16(),
            detail: detail.into(),
            instance: None,
            errors: Vec::new(),
            header: None,
        }
    }

    /// Creates a 404 Not Found problem.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// Creates a 400 Bad Request problem.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Creates a 409 Conflict problem.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// Adds problems with single fields.
    #[must_use]
    pub fn with_errors(mut self, errors: Vec<FieldProblem>) -> Self {
        self.errors = errors;
        self
    }

    /// Adds a response header.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some(Box::new((name, value)));
        self
    }

    /// Returns the HTTP status.
    pub fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

fn problem_urn(title: &str) -> Box<str> {
    let word = title.to_ascii_lowercase().replace(' ', "-");
    format!("urn:unstuck:problem:{word}").into()
}

impl IntoResponse for ProblemDetails {
    /// The path is filled in when the response leaves the router.
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (self.status_code(), body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, MEDIA_TYPE);
        if let Some((name, value)) = self.header.as_deref() {
            headers.insert(name.clone(), value.clone());
        }
        response.extensions_mut().insert(Box::new(self));
        response
    }
}
