//! A project: a repository or workspace in which agents work.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use serde::Serialize;
use sha2::{Digest, Sha256};
use unstuck_core::Timestamp;
use unstuck_store::ProjectSummary;
use utoipa::ToSchema;

use super::money::known_cost;

/// How many bytes of the hash make an id.
const ID_BYTES: usize = 6;

/// A project.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectResponse {
    /// Its id in addresses.
    #[schema(example = "3f9a1c07be52")]
    pub id: String,
    /// The last part of its path.
    pub name: String,
    /// Its root folder; empty where calls belong to no project.
    pub root: String,
    /// How many runs there are, by where they stand.
    pub runs: BTreeMap<String, u64>,
    /// When something last happened in it.
    #[schema(value_type = String, format = DateTime)]
    pub last_activity: Timestamp,
    /// What its runs cost, in USD, as far as is known; null where nothing of it is known.
    pub cost_usd: Option<f64>,
    /// How many of its calls used tokens whose price is not known.
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

/// The id of the project with this root: the same for the same path.
pub fn project_id(root: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(root)[..ID_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_project_is_short_and_follows_from_its_root() {
        assert_eq!(project_id("/home/me/shop"), project_id("/home/me/shop"));
        assert_ne!(project_id("/home/me/shop"), project_id("/home/me/shop2"));
        assert_eq!(project_id("/home/me/shop").len(), 12);
    }
}
