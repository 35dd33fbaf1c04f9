//! Projects at a glance.

use std::collections::BTreeMap;

use serde::Serialize;
use unstuck_core::Timestamp;
use unstuck_core::views::RunStatus;

/// A project at a glance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProjectSummary {
    /// Its root folder, by which it is known.
    pub root: String,
    /// The name of that folder.
    pub name: String,
    /// How many of its runs stand where; what was pruned is not among them.
    pub runs: BTreeMap<RunStatus, u64>,
    /// When something last happened in it.
    pub last_activity: Timestamp,
    /// What it cost in all, in USD, as far as is known.
    pub cost_usd: f64,
    /// How many of its calls used tokens whose price is not known.
    pub unpriced: u64,
}

impl ProjectSummary {
    /// The name of a project with that root folder.
    pub(crate) fn name_from_root(root: &str) -> String {
        let name = root.trim_end_matches('/').rsplit('/').next();
        match name {
            Some(name) if !name.is_empty() => name.to_owned(),
            _ => root.to_owned(),
        }
    }
}

/// What is summed up for a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProjectTotals {
    /// When something last happened, in milliseconds.
    pub(crate) newest: i64,
    pub(crate) cost_nanos: i64,
}

impl Default for ProjectTotals {
    fn default() -> Self {
        Self {
            newest: i64::MIN,
            cost_nanos: 0,
        }
    }
}

impl ProjectTotals {
    pub(crate) fn add(&mut self, at: Timestamp, cost_nanos: i64) {
        self.newest = self.newest.max(at.millis());
        self.cost_nanos = self.cost_nanos.saturating_add(cost_nanos);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_named_after_its_folder() {
        for (root, name) in [("/home/me/shop", "shop"), ("/srv/a/", "a"), ("/", "/")] {
            assert_eq!(ProjectSummary::name_from_root(root), name);
        }
    }
}
