//! Changes of a pipeline's configuration since it ran, by role and setting, as text.

use std::collections::BTreeSet;

use crate::event::{RecordedPipelineSettings, RecordedRoleSettings};

/// The text for a removed role.
pub const ROLE_REMOVED: &str = "role removed";

/// The changes of one role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleConfigChange {
    /// The role; none for settings shared by all roles.
    pub role: Option<String>,
    /// The changes, as text.
    pub descriptions: Vec<String>,
}

/// Returns the changes of a pipeline since it ran, in the order of its roles.
pub fn role_changes(
    then: &RecordedPipelineSettings,
    now: &RecordedPipelineSettings,
) -> Vec<RoleConfigChange> {
    let mut changes = Vec::new();
    let mut shared = Vec::new();
    if then.task != now.task {
        shared.push(format!(
            "task changed from {:?} to {:?}",
            then.task, now.task
        ));
    }
    if then.cwd != now.cwd {
        shared.push(format!(
            "directory changed from {} to {}",
            then.cwd, now.cwd
        ));
    }
    if !shared.is_empty() {
        changes.push(RoleConfigChange {
            role: None,
            descriptions: shared,
        });
    }
    for role in &then.roles {
        let what = match now.roles.iter().find(|one| one.id == role.id) {
            Some(newer) => differences(role, newer),
            None => vec![ROLE_REMOVED.to_owned()],
        };
        if !what.is_empty() {
            changes.push(RoleConfigChange {
                role: Some(role.id.clone()),
                descriptions: what,
            });
        }
    }
    changes
}

fn differences(then: &RecordedRoleSettings, now: &RecordedRoleSettings) -> Vec<String> {
    let mut what = Vec::new();
    if then.needs != now.needs {
        what.push(describe_change(
            "needs",
            &then.needs.join(", "),
            &now.needs.join(", "),
        ));
    }
    if then.instances != now.instances {
        let (then, now) = (then.instances.to_string(), now.instances.to_string());
        what.push(describe_change("instances", &then, &now));
    }
    let names: BTreeSet<&String> = then.settings.keys().chain(now.settings.keys()).collect();
    for name in names {
        let value =
            |role: &RecordedRoleSettings| role.settings.get(name).cloned().unwrap_or_default();
        let (then, now) = (value(then), value(now));
        if then != now {
            what.push(describe_change(name, &then, &now));
        }
    }
    what
}

/// Describes a change; for a hashed value only that it changed.
fn describe_change(name: &str, then: &str, now: &str) -> String {
    let hashed = |value: &str| value.starts_with("sha256:");
    match (then, now) {
        _ if hashed(then) || hashed(now) => format!("{name} changed"),
        ("", now) => format!("{name} set to {now}"),
        (then, "") => format!("{name} removed (was {then})"),
        (then, now) => format!("{name} changed from {then} to {now}"),
    }
}
