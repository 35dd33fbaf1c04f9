//! What a request says: its path, its query and its body; what cannot be read is told as a problem.

use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use crate::model::ProblemDetails;

/// How many are listed where nobody says.
const DEFAULT_LIMIT: u32 = 50;
/// How many are listed at most.
const MAX_LIMIT: u32 = 500;

/// The body of a request, as JSON.
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

/// The query of a request.
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

/// What the path of a request names.
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

/// How much of a list is asked for.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PageQuery {
    /// At most so many; 50 where left out.
    #[param(minimum = 1, maximum = 500)]
    pub(super) limit: Option<u32>,
    /// What `next` of the page before said.
    pub(super) after: Option<String>,
}

/// How many are listed.
pub(super) fn page_limit(asked: Option<u32>) -> Result<usize, ProblemDetails> {
    match asked.unwrap_or(DEFAULT_LIMIT) {
        limit @ 1..=MAX_LIMIT => Ok(limit as usize),
        other => Err(ProblemDetails::bad_request(format!(
            "`limit` is {other}: it must be from 1 to {MAX_LIMIT}"
        ))),
    }
}

/// Each of the words in a list with commas.
pub(super) fn parse_list<T>(
    name: &str,
    list: Option<&str>,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, ProblemDetails> {
    let words = list.unwrap_or_default().split(',').map(str::trim);
    let words = words.filter(|word| !word.is_empty());
    let unknown =
        |word: &str| ProblemDetails::bad_request(format!("`{name}` does not know `{word}`"));
    words
        .map(|word| read(word).ok_or_else(|| unknown(word)))
        .collect()
}

/// A value that is named by a text.
pub(super) fn parse_optional<T: std::str::FromStr<Err: std::fmt::Display>>(
    name: &str,
    text: Option<&str>,
) -> Result<Option<T>, ProblemDetails> {
    let wrong = |error: T::Err| ProblemDetails::bad_request(format!("`{name}`: {error}"));
    text.map(|text| text.parse().map_err(wrong)).transpose()
}
