//! Project summaries.

use std::collections::BTreeMap;

use serde::Serialize;
use unstuck_core::Timestamp;
use unstuck_core::views::RunStatus;

/// The summary of a project.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProjectSummary {
    /// The project root, which identifies the project.
    pub root: String,
    /// The name of the root directory.
    pub name: String,
    /// The number of runs by status; pruned runs are not included.
    pub runs: BTreeMap<RunStatus, u64>,
    /// The time of the last event.
    pub last_activity: Timestamp,
    /// The total cost in USD, as far as prices are known.
    pub cost_usd: f64,
    /// The number of calls with tokens of unknown price.
    pub unpriced: u64,
}

impl ProjectSummary {
    /// Returns the name of the project with this root.
    pub(crate) fn name_from_root(root: &str) -> String {
        let name = root.trim_end_matches('/').rsplit('/').next();
        match name {
            Some(name) if !name.is_empty() => name.to_owned(),
            _ => root.to_owned(),
        }
    }
}

/// The stored totals of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProjectTotals {
    /// The time of the last event, in milliseconds.
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
    fn project_name_is_the_directory_name() {
        for (root, name) in [("/home/me/shop", "shop"), ("/srv/a/", "a"), ("/", "/")] {
            assert_eq!(ProjectSummary::name_from_root(root), name);
        }
    }
}
