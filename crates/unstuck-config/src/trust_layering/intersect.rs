//! The stricter of two policies, field by field: the effective one while a project is not trusted.

use std::path::{Component, Path, PathBuf};

use super::declared_policy::{DeclaredRepairPolicy, trimmed};
use crate::section::{OnUnlistedCommand, RepairPolicySection, SandboxModeSetting};

/// Returns the owner's policy, tightened but never loosened by another one.
pub fn intersect(owner: &RepairPolicySection, other: &DeclaredRepairPolicy) -> RepairPolicySection {
    let mut one = owner.clone();
    one.enabled &= other.enabled.unwrap_or(true);
    if let Some(approved) = &other.auto_approve {
        let also = |entry: &String| approved.iter().any(|own| trimmed(own) == trimmed(entry));
        one.auto_approve.retain(also);
    }
    let asking = other.require_human.iter().flatten();
    for pattern in asking {
        if !one.require_human.contains(pattern) {
            one.require_human.push(pattern.clone());
        }
    }
    if let Some(most) = other.max_auto_recoveries_per_run {
        one.max_auto_recoveries_per_run = one.max_auto_recoveries_per_run.min(most);
    }
    if let Some(seconds) = other.cooldown_seconds {
        one.cooldown_seconds = one.cooldown_seconds.max(seconds);
    }
    if let Some(then) = other.on_unknown
        && permissiveness_rank(then) < permissiveness_rank(one.on_unknown)
    {
        one.on_unknown = then;
    }
    if let Some(sandbox) = other.sandbox
        && sandbox_permissiveness_rank(sandbox) < sandbox_permissiveness_rank(one.sandbox)
    {
        one.sandbox = sandbox;
    }
    one.network &= other.network.unwrap_or(true);
    if let Some(paths) = &other.allowed_write_paths {
        intersect_paths(&mut one, paths);
    }
    if let Some(kept) = &other.env_keep {
        one.env_keep.retain(|name| kept.contains(name));
    }
    one.guard_files |= other.guard_files.unwrap_or(false);
    one.preview |= other.preview.unwrap_or(false);
    one
}

/// Ranks how freely unlisted commands may run.
pub(super) fn permissiveness_rank(then: OnUnlistedCommand) -> u8 {
    match then {
        OnUnlistedCommand::Deny => 0,
        OnUnlistedCommand::Escalate => 1,
        OnUnlistedCommand::Allow => 2,
    }
}

/// Ranks how loose a sandbox mode is.
pub(super) fn sandbox_permissiveness_rank(sandbox: SandboxModeSetting) -> u8 {
    match sandbox {
        SandboxModeSetting::Required => 0,
        SandboxModeSetting::BestEffort => 1,
        SandboxModeSetting::Off => 2,
    }
}

/// Keeps only the paths both may write to. An empty list would mean the whole project, so if they have nothing in
/// common, automatic repairs are disabled.
fn intersect_paths(one: &mut RepairPolicySection, paths: &[PathBuf]) {
    if paths.is_empty() {
        return;
    }
    let inside = paths.iter().filter(|path| is_inside(path));
    let common: Vec<PathBuf> = if one.allowed_write_paths.is_empty() {
        inside.cloned().collect()
    } else {
        let owners = one.allowed_write_paths.iter();
        let pairs = owners.flat_map(|owner| inside.clone().map(move |path| (owner, path)));
        pairs
            .filter_map(|(owner, path)| inner_path(owner, path))
            .collect()
    };
    if common.is_empty() {
        one.auto_approve.clear();
        one.max_auto_recoveries_per_run = 0;
        if one.on_unknown == OnUnlistedCommand::Allow {
            one.on_unknown = OnUnlistedCommand::Escalate;
        }
    } else {
        one.allowed_write_paths = common;
        one.allowed_write_paths.sort();
        one.allowed_write_paths.dedup();
    }
}

/// Returns whether a path is certain to be inside the project.
pub(super) fn is_inside(path: &Path) -> bool {
    let steps = |step| matches!(step, Component::Normal(_) | Component::CurDir);
    path.components().all(steps)
}

/// Returns the directory that is inside the other one.
fn inner_path(one: &Path, other: &Path) -> Option<PathBuf> {
    let deeper = [(one, other), (other, one)];
    let found = deeper.iter().find(|(inner, outer)| covers(outer, inner));
    found.map(|(inner, _)| inner.to_path_buf())
}

/// Returns whether a directory is or contains another one.
pub(super) fn covers(outer: &Path, inner: &Path) -> bool {
    normalize(inner).starts_with(normalize(outer))
}

/// Returns a path without `.` segments.
fn normalize(path: &Path) -> PathBuf {
    let steps = path.components();
    steps.filter(|step| *step != Component::CurDir).collect()
}
