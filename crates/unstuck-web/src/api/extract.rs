//! What a request says: its path, its query and its body; what cannot be read is told as a problem.

use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use crate::model::Problem;

/// How many are listed where nobody says.
const USUAL: u32 = 50;
/// How many are listed at most.
const MOST: u32 = 500;

/// The body of a request, as JSON.
#[derive(Debug)]
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let read = axum::Json::<T>::from_request(request, state).await;
        let refused = |why: JsonRejection| Problem::new(why.status(), why.body_text());
        read.map(|axum::Json(value)| Self(value)).map_err(refused)
    }
}

/// The query of a request.
#[derive(Debug)]
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = Query::<T>::from_request_parts(parts, state).await;
        let refused = |why: QueryRejection| Problem::bad_request(why.body_text());
        read.map(|Query(value)| Self(value)).map_err(refused)
    }
}

/// What the path of a request names.
#[derive(Debug)]
pub(super) struct Named<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Named<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = Path::<T>::from_request_parts(parts, state).await;
        let refused = |why: PathRejection| Problem::bad_request(why.body_text());
        read.map(|Path(value)| Self(value)).map_err(refused)
    }
}

/// How much of a list is asked for.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Part {
    /// At most so many; 50 where left out.
    #[param(minimum = 1, maximum = 500)]
    pub(super) limit: Option<u32>,
    /// What `next` of the page before said.
    pub(super) after: Option<String>,
}

/// How many are listed.
pub(super) fn limit(asked: Option<u32>) -> Result<usize, Problem> {
    match asked.unwrap_or(USUAL) {
        limit @ 1..=MOST => Ok(limit as usize),
        other => Err(Problem::bad_request(format!(
            "`limit` is {other}: it must be from 1 to {MOST}"
        ))),
    }
}

/// Each of the words in a list with commas.
pub(super) fn each<T>(
    name: &str,
    list: Option<&str>,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, Problem> {
    let words = list.unwrap_or_default().split(',').map(str::trim);
    let words = words.filter(|word| !word.is_empty());
    let unknown = |word: &str| Problem::bad_request(format!("`{name}` does not know `{word}`"));
    words
        .map(|word| read(word).ok_or_else(|| unknown(word)))
        .collect()
}

/// A value that is named by a text.
pub(super) fn one<T: std::str::FromStr<Err: std::fmt::Display>>(
    name: &str,
    text: Option<&str>,
) -> Result<Option<T>, Problem> {
    let wrong = |error: T::Err| Problem::bad_request(format!("`{name}`: {error}"));
    text.map(|text| text.parse().map_err(wrong)).transpose()
}
