//! A project: a repository or workspace in which agents work.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use serde::Serialize;
use sha2::{Digest, Sha256};
use unstuck_core::Timestamp;
use unstuck_store::ProjectSummary;
use utoipa::ToSchema;

use super::money::known_cost;

/// Number of hash bytes in an id.
const ID_BYTES: usize = 6;

/// A project.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectResponse {
    /// Id used in URLs.
    #[schema(example = "3f9a1c07be52")]
    pub id: String,
    /// Last part of its path.
    pub name: String,
    /// Root directory; empty if the calls belong to no project.
    pub root: String,
    /// Number of runs by status.
    pub runs: BTreeMap<String, u64>,
    /// Time of the last activity.
    #[schema(value_type = String, format = DateTime)]
    pub last_activity: Timestamp,
    /// Known cost of its runs in USD; null if none of it is known.
    pub cost_usd: Option<f64>,
    /// Number of calls that used tokens of unknown price.
    pub unknown_price: u64,
}

impl From<ProjectSummary> for ProjectResponse {
    fn from(view: ProjectSummary) -> Self {
        let runs = view.runs.into_iter();
        Self {
            id: project_id(&view.root),
            name: view.name,
            root: view.root,
            runs: runs
                .map(|(status, count)| (status.name().to_owned(), count))
                .collect(),
            last_activity: view.last_activity,
            cost_usd: known_cost(view.cost_usd, view.unpriced),
            unknown_price: view.unpriced,
        }
    }
}

/// Returns the project id of a root directory; stable for the same path.
pub fn project_id(root: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(root)[..ID_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn project_id_is_short_and_derived_from_the_root() {
        assert_eq!(project_id("/home/me/shop"), project_id("/home/me/shop"));
        assert_ne!(project_id("/home/me/shop"), project_id("/home/me/shop2"));
        assert_eq!(project_id("/home/me/shop").len(), 12);
    }
}
