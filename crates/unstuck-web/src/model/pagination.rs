//! A page of a list.

use serde::Serialize;
use utoipa::ToSchema;

/// A page of a list and the cursor of the next page.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListPage<T> {
    /// Items of this page.
    pub items: Vec<T>,
    /// Value of `after` for the next page; null on the last page.
    pub next: Option<String>,
}

impl<T> ListPage<T> {
    /// Creates a page that holds the whole list.
    pub fn single(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}
