//! A part of a long list.

use serde::Serialize;
use utoipa::ToSchema;

/// A part of a long list, and where the next one begins.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// What is listed.
    pub items: Vec<T>,
    /// What `after` has to say for the next part; null at the end of the list.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// A list that is whole.
    pub fn single(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}
