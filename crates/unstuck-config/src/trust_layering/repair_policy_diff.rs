//! The differences between two versions of `[recovery]`, described for humans.

use std::path::PathBuf;

use serde::Serialize;

use super::declared_policy::trimmed;
use super::intersect::{covers, permissiveness_rank, sandbox_permissiveness_rank};
use crate::section::{OnUnlistedCommand, RepairPolicySection, SandboxModeSetting};

/// A change in `[recovery]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RepairPolicyChange {
    /// The key, such as `auto_approve`.
    pub field: &'static str,
    /// The new state, in one sentence.
    pub description: String,
    /// True if the change allows more.
    pub widens: bool,
}

/// Returns all changes; empty if both versions mean the same.
pub fn diff_policies(
    old: &RepairPolicySection,
    new: &RepairPolicySection,
) -> Vec<RepairPolicyChange> {
    let mut told = ChangeList::default();
    if old.enabled != new.enabled {
        let what = phrase(new.enabled, "repairs are enabled", "repairs are disabled");
        told.add("enabled", what, new.enabled);
    }
    told.add_approvals(&old.auto_approve, &new.auto_approve);
    told.add_human_required(&old.require_human, &new.require_human);
    told.add_limits(old, new);
    if old.on_unknown != new.on_unknown {
        let what = match new.on_unknown {
            OnUnlistedCommand::Escalate => "unlisted commands need approval",
            OnUnlistedCommand::Deny => "unlisted commands are rejected",
            OnUnlistedCommand::Allow => "unlisted simple commands run without approval",
        };
        let widens = permissiveness_rank(new.on_unknown) > permissiveness_rank(old.on_unknown);
        told.add("on_unknown", what, widens);
    }
    if old.sandbox != new.sandbox {
        let what = match new.sandbox {
            SandboxModeSetting::Required => "repairs run only in a sandbox",
            SandboxModeSetting::BestEffort => "repairs run in a sandbox if available",
            SandboxModeSetting::Off => "repairs run without a sandbox",
        };
        let widens =
            sandbox_permissiveness_rank(new.sandbox) > sandbox_permissiveness_rank(old.sandbox);
        told.add("sandbox", what, widens);
    }
    if old.network != new.network {
        let what = phrase(
            new.network,
            "repairs can use the network",
            "repairs cannot use the network",
        );
        told.add("network", what, new.network);
    }
    told.add_paths(&old.allowed_write_paths, &new.allowed_write_paths);
    told.add_variables(&old.env_keep, &new.env_keep);
    if old.guard_files != new.guard_files {
        let what = phrase(
            new.guard_files,
            "approved commands need approval again if scripts or tool settings change",
            "approved commands run even if scripts or tool settings have changed",
        );
        told.add("guard_files", what, !new.guard_files);
    }
    if old.preview != new.preview {
        let what = phrase(
            new.preview,
            "requests include a preview of the changes",
            "requests do not include a preview of the changes",
        );
        told.add("preview", what, !new.preview);
    }
    told.0
}

fn phrase(holds: bool, yes: &'static str, no: &'static str) -> &'static str {
    if holds { yes } else { no }
}

#[derive(Default)]
struct ChangeList(Vec<RepairPolicyChange>);

impl ChangeList {
    fn add(&mut self, field: &'static str, what: impl Into<String>, widens: bool) {
        self.0.push(RepairPolicyChange {
            field,
            description: what.into(),
            widens,
        });
    }

    fn add_approvals(&mut self, old: &[String], new: &[String]) {
        for entry in only_in(new, old) {
            self.add(
                "auto_approve",
                format!("`{entry}` runs without approval"),
                true,
            );
        }
        for entry in only_in(old, new) {
            let what = format!("`{entry}` no longer runs without approval");
            self.add("auto_approve", what, false);
        }
    }

    fn add_human_required(&mut self, old: &[String], new: &[String]) {
        for entry in only_in(new, old) {
            self.add(
                "require_human",
                format!("`{entry}` always needs approval"),
                false,
            );
        }
        for entry in only_in(old, new) {
            let what = format!("`{entry}` no longer always needs approval");
            self.add("require_human", what, true);
        }
    }

    fn add_limits(&mut self, old: &RepairPolicySection, new: &RepairPolicySection) {
        let most = |section: &RepairPolicySection| section.max_auto_recoveries_per_run;
        if most(old) != most(new) {
            let what = format!(
                "up to {} automatic repairs per run, was {}",
                most(new),
                most(old)
            );
            let widens = most(new) > most(old);
            self.add("max_auto_recoveries_per_run", what, widens);
        }
        if old.cooldown_seconds != new.cooldown_seconds {
            let what = format!(
                "{} s cooldown between repairs, was {} s",
                new.cooldown_seconds, old.cooldown_seconds
            );
            let widens = new.cooldown_seconds < old.cooldown_seconds;
            self.add("cooldown_seconds", what, widens);
        }
    }

    fn add_paths(&mut self, old: &[PathBuf], new: &[PathBuf]) {
        const FIELD: &str = "allowed_write_paths";
        match (old.is_empty(), new.is_empty()) {
            (false, true) => self.add(FIELD, "repairs can write to the whole project", true),
            (true, false) => {
                let list: Vec<_> = new.iter().map(|path| path.display().to_string()).collect();
                let what = format!(
                    "repairs can write only to {} in the project",
                    list.join(", ")
                );
                // Paths outside of the project were not allowed before.
                let widens = !new.iter().all(|path| super::intersect::is_inside(path));
                self.add(FIELD, what, widens);
            }
            _ => {
                let is_in = |list: &[PathBuf], path| list.iter().any(|one| covers(one, path));
                for path in new.iter().filter(|path| !is_in(old, path)) {
                    let what = format!("repairs can now also write to {}", path.display());
                    self.add(FIELD, what, true);
                }
                for path in old.iter().filter(|path| !is_in(new, path)) {
                    let what = format!(
                        "repairs can no longer write everywhere in {}",
                        path.display()
                    );
                    self.add(FIELD, what, false);
                }
            }
        }
    }

    fn add_variables(&mut self, old: &[String], new: &[String]) {
        for name in only_in(new, old) {
            self.add(
                "env_keep",
                format!("repairs can read the variable {name}"),
                true,
            );
        }
        for name in only_in(old, new) {
            let what = format!("repairs can no longer read the variable {name}");
            self.add("env_keep", what, false);
        }
    }
}

/// Returns the items of the first list that are not in the second, in order.
fn only_in<'l>(one: &'l [String], other: &[String]) -> Vec<&'l str> {
    let known = |entry: &str| other.iter().any(|other| trimmed(other) == entry);
    let mut found: Vec<&str> = Vec::new();
    for entry in one.iter().map(|entry| trimmed(entry)) {
        if !known(entry) && !found.contains(&entry) {
            found.push(entry);
        }
    }
    found
}
