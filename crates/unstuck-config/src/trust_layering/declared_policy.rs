//! The `[recovery]` settings of a single file.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};

use crate::section::{
    OnUnlistedCommand, RepairPolicySection, SandboxModeSetting, deserialize_entries,
};

/// The declared `[recovery]` settings; `None` if unset.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct DeclaredRepairPolicy {
    /// If false, no repairs are performed.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared"
    )]
    pub enabled: Option<bool>,
    /// Commands that may run without approval, matched exactly.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared_entries"
    )]
    pub auto_approve: Option<Vec<String>>,
    /// Patterns of commands that need approval.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared_entries"
    )]
    pub require_human: Option<Vec<String>>,
    /// The maximum number of automatic repairs per run.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared"
    )]
    pub max_auto_recoveries_per_run: Option<u32>,
    /// The minimum number of seconds between two automatic repairs.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared"
    )]
    pub cooldown_seconds: Option<u64>,
    /// The action for a command that is in no list.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared"
    )]
    pub on_unknown: Option<OnUnlistedCommand>,
    /// The sandbox mode.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared"
    )]
    pub sandbox: Option<SandboxModeSetting>,
    /// If true, repairs may use the network.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared"
    )]
    pub network: Option<bool>,
    /// The directories of the project that repairs may write to.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared"
    )]
    pub allowed_write_paths: Option<Vec<PathBuf>>,
    /// The environment variables passed to repairs.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared"
    )]
    pub env_keep: Option<Vec<String>>,
    /// If true, changed files that affect a command require approval.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared"
    )]
    pub guard_files: Option<bool>,
    /// If true, approval requests show a preview of the repair's changes.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared"
    )]
    pub preview: Option<bool>,
}

/// Reads a declared value; an explicit null is an error.
fn deserialize_declared<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(from).map(Some)
}

fn deserialize_declared_entries<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Vec<String>>, D::Error> {
    deserialize_entries(from).map(Some)
}

impl DeclaredRepairPolicy {
    /// Returns the settings used for an unreadable section: nothing is approved, everything needs approval.
    pub(super) fn deny_all() -> Self {
        Self {
            auto_approve: Some(Vec::new()),
            require_human: Some(vec!["*".to_owned()]),
            max_auto_recoveries_per_run: Some(0),
            on_unknown: Some(OnUnlistedCommand::Escalate),
            guard_files: Some(true),
            ..Self::default()
        }
    }

    /// Merges both; the later one wins.
    pub(super) fn merged_with(self, later: Self) -> Self {
        Self {
            enabled: later.enabled.or(self.enabled),
            auto_approve: later.auto_approve.or(self.auto_approve),
            require_human: later.require_human.or(self.require_human),
            max_auto_recoveries_per_run: later
                .max_auto_recoveries_per_run
                .or(self.max_auto_recoveries_per_run),
            cooldown_seconds: later.cooldown_seconds.or(self.cooldown_seconds),
            on_unknown: later.on_unknown.or(self.on_unknown),
            sandbox: later.sandbox.or(self.sandbox),
            network: later.network.or(self.network),
            allowed_write_paths: later.allowed_write_paths.or(self.allowed_write_paths),
            env_keep: later.env_keep.or(self.env_keep),
            guard_files: later.guard_files.or(self.guard_files),
            preview: later.preview.or(self.preview),
        }
    }

    /// Returns a section with these settings applied to it.
    pub fn apply_to(&self, section: &RepairPolicySection) -> RepairPolicySection {
        let Self {
            enabled,
            auto_approve,
            require_human,
            max_auto_recoveries_per_run,
            cooldown_seconds,
            on_unknown,
            sandbox,
            network,
            allowed_write_paths,
            env_keep,
            guard_files,
            preview,
        } = self.clone();
        let below = section.clone();
        RepairPolicySection {
            enabled: enabled.unwrap_or(below.enabled),
            auto_approve: auto_approve.unwrap_or(below.auto_approve),
            require_human: require_human.unwrap_or(below.require_human),
            max_auto_recoveries_per_run: max_auto_recoveries_per_run
                .unwrap_or(below.max_auto_recoveries_per_run),
            cooldown_seconds: cooldown_seconds.unwrap_or(below.cooldown_seconds),
            on_unknown: on_unknown.unwrap_or(below.on_unknown),
            sandbox: sandbox.unwrap_or(below.sandbox),
            network: network.unwrap_or(below.network),
            allowed_write_paths: allowed_write_paths.unwrap_or(below.allowed_write_paths),
            env_keep: env_keep.unwrap_or(below.env_keep),
            guard_files: guard_files.unwrap_or(below.guard_files),
            preview: preview.unwrap_or(below.preview),
        }
    }

    /// Returns the canonical form, independent of order, repetition and surrounding blanks.
    pub(super) fn canonical(&self) -> Self {
        let mut one = self.clone();
        for list in [
            &mut one.auto_approve,
            &mut one.require_human,
            &mut one.env_keep,
        ] {
            for entry in list.iter_mut().flatten() {
                *entry = trimmed(entry).to_owned();
            }
            sort_unique(list);
        }
        sort_unique(&mut one.allowed_write_paths);
        one
    }
}

fn sort_unique<T: Ord>(list: &mut Option<Vec<T>>) {
    if let Some(list) = list {
        list.sort();
        list.dedup();
    }
}

/// Trims the four blank characters; any others are part of the entry.
pub(super) fn trimmed(entry: &str) -> &str {
    entry.trim_matches([' ', '\t', '\n', '\r'])
}
