//! Extractors for path, query and body; invalid input becomes a problem response.

use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use crate::model::ProblemDetails;

/// Default number of results.
const DEFAULT_LIMIT: u32 = 50;
/// Maximum number of results.
const MAX_LIMIT: u32 = 500;

/// The JSON body of a request.
#[derive(Debug)]
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ProblemDetails;

    async fn from_request(request: Request, state: &S) -> Result<Self, ProblemDetails> {
        let read = axum::Json::<T>::from_request(request, state).await;
        let refused = |why: JsonRejection| ProblemDetails::new(why.status(), why.body_text());
        read.map(|axum::Json(value)| Self(value)).map_err(refused)
    }
}

/// The query parameters of a request.
#[derive(Debug)]
pub(super) struct QueryParams<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParams<T> {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ProblemDetails> {
        let read = Query::<T>::from_request_parts(parts, state).await;
        let refused = |why: QueryRejection| ProblemDetails::bad_request(why.body_text());
        read.map(|Query(value)| Self(value)).map_err(refused)
    }
}

/// The path parameters of a request.
#[derive(Debug)]
pub(super) struct PathParams<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParams<T> {
    type Rejection = ProblemDetails;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ProblemDetails> {
        let read = Path::<T>::from_request_parts(parts, state).await;
        let refused = |why: PathRejection| ProblemDetails::bad_request(why.body_text());
        read.map(|Path(value)| Self(value)).map_err(refused)
    }
}

/// Pagination query.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PageQuery {
    /// Maximum number of results; the default is 50.
    #[param(minimum = 1, maximum = 500)]
    pub(super) limit: Option<u32>,
    /// Value of `next` from the previous page.
    pub(super) after: Option<String>,
}

/// Returns the number of results per page.
pub(super) fn page_limit(asked: Option<u32>) -> Result<usize, ProblemDetails> {
    match asked.unwrap_or(DEFAULT_LIMIT) {
        limit @ 1..=MAX_LIMIT => Ok(limit as usize),
        other => Err(ProblemDetails::bad_request(format!(
            "`limit` must be from 1 to {MAX_LIMIT}, got {other}"
        ))),
    }
}

/// Parses a comma-separated list.
pub(super) fn parse_list<T>(
    name: &str,
    list: Option<&str>,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, ProblemDetails> {
    let words = list.unwrap_or_default().split(',').map(str::trim);
    let words = words.filter(|word| !word.is_empty());
    let unknown =
        |word: &str| ProblemDetails::bad_request(format!("unknown value `{word}` for `{name}`"));
    words
        .map(|word| read(word).ok_or_else(|| unknown(word)))
        .collect()
}

/// Parses an optional value.
pub(super) fn parse_optional<T: std::str::FromStr<Err: std::fmt::Display>>(
    name: &str,
    text: Option<&str>,
) -> Result<Option<T>, ProblemDetails> {
    let wrong = |error: T::Err| ProblemDetails::bad_request(format!("`{name}`: {error}"));
    text.map(|text| text.parse().map_err(wrong)).transpose()
}
