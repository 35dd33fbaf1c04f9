//! Commands other than repairs that a project's files can run: agents, arguments, checks.

use serde::Serialize;
use serde_json::Value as Json;

use crate::config::Config;
use crate::value_tree::{Node, SourceId, Value, path};

/// The role keys that decide which command runs.
const ROLE_KEYS: [&str; 6] = [
    "agent",
    "command",
    "args",
    "env",
    "allowed_tools",
    "expect.check",
];

/// A command setting of the project's own files.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProjectCommandSetting {
    /// The path, such as `role.builder.expect.check`.
    pub path: String,
    /// The value.
    pub value: Json,
}

impl Config {
    /// Returns the command settings of the project's own files, by path.
    ///
    /// Compare them before applying a changed configuration while agents work: an agent may have written it.
    pub fn project_commands(&self) -> Vec<ProjectCommandSetting> {
        let roles = self.roles().iter();
        let mut paths: Vec<_> = roles
            .flat_map(|role| ROLE_KEYS.map(|key| format!("role.{}.{key}", role.id)))
            .collect();
        paths.push("loop.until.check".to_owned());
        paths.extend(self.root.agents.keys().map(|id| format!("agents.{id}")));
        paths.sort();
        let set = paths.into_iter().filter_map(|path| {
            let node = path::find_value(&self.tree, &path)?;
            let value = node.to_json();
            is_from(node, &self.projects).then_some(ProjectCommandSetting { path, value })
        });
        set.collect()
    }
}

/// Returns whether any part of a value comes from one of these sources.
fn is_from(node: &Node, sources: &[SourceId]) -> bool {
    let inside = match &node.value {
        Value::List(list) => list.iter().any(|one| is_from(one, sources)),
        Value::Table(table) => table.0.iter().any(|entry| is_from(&entry.node, sources)),
        _ => false,
    };
    inside || sources.contains(&node.span.source)
}
