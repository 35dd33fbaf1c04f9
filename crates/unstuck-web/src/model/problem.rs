//! What went wrong with a request, in the form of RFC 9457.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// The media type of problems.
const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

/// What went wrong with a request (RFC 9457).
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ProblemDetails {
    /// Which kind of problem it is: `urn:unstuck:problem:` and a word.
    #[serde(rename = "type")]
    #[schema(value_type = String, example = "urn:unstuck:problem:not-found")]
    pub kind: Box<str>,
    /// The kind of problem in words.
    pub title: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// What went wrong this time, and what to do about it.
    pub detail: String,
    /// The path that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// What is wrong with single values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldProblem>,
    /// A header that goes with it.
    #[serde(skip)]
    #[schema(ignore)]
    header: Option<Box<(HeaderName, HeaderValue)>>,
}

/// What is wrong with one value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldProblem {
    /// The key, with those that it is in: `kinds.timeout.maxRetries`.
    pub field: String,
    /// What was given.
    pub value: String,
    /// What is allowed instead.
    pub why: String,
}

impl ProblemDetails {
    /// A problem of a status: its word and its title follow from that.
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

    /// There is no such thing.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// The request says something that cannot be.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// It does not fit how things stand.
    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// With what is wrong with single values.
    #[must_use]
    pub fn with_errors(mut self, errors: Vec<FieldProblem>) -> Self {
        self.errors = errors;
        self
    }

    /// With a header.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.header = Some(Box::new((name, value)));
        self
    }

    /// The status that the client gets.
    pub fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

fn problem_urn(title: &str) -> Box<str> {
    let word = title.to_ascii_lowercase().replace(' ', "-");
    format!("urn:unstuck:problem:{word}").into()
}

impl IntoResponse for ProblemDetails {
    /// The path is filled in where the answer leaves the router.
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
