//! What one file says in `[recovery]`, and nothing more.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};

use crate::section::{OnUnknown, RecoverySection, Sandbox, deserialize_entries};

/// What was said in `[recovery]`; what was left out is none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct DeclaredRepairPolicy {
    /// Whether repairs are done at all.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared"
    )]
    pub enabled: Option<bool>,
    /// Commands that may run without asking, word for word.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared_entries"
    )]
    pub auto_approve: Option<Vec<String>>,
    /// Patterns of commands that a person must approve.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared_entries"
    )]
    pub require_human: Option<Vec<String>>,
    /// How many repairs may run by themselves in one run.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared"
    )]
    pub max_auto_recoveries_per_run: Option<u32>,
    /// How many seconds lie between two of them at least.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared"
    )]
    pub cooldown_seconds: Option<u64>,
    /// What happens to a command that is in no list.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared"
    )]
    pub on_unknown: Option<OnUnknown>,
    /// Whether repairs run in a sandbox.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared"
    )]
    pub sandbox: Option<Sandbox>,
    /// Whether repairs may use the network.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared"
    )]
    pub network: Option<bool>,
    /// Folders of the project that repairs may write to.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared"
    )]
    pub allowed_write_paths: Option<Vec<PathBuf>>,
    /// Environment variables that repairs may see.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared"
    )]
    pub env_keep: Option<Vec<String>>,
    /// Whether changed files that decide what a command executes make it ask.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared"
    )]
    pub guard_files: Option<bool>,
    /// Whether what a repair would change is shown with the question.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "deserialize_declared"
    )]
    pub preview: Option<bool>,
}

/// Nothing at all is a mistake too where something is said.
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
    /// What stands for a section that cannot be read: nothing is approved, and everything asks.
    pub(super) fn deny_all() -> Self {
        Self {
            auto_approve: Some(Vec::new()),
            require_human: Some(vec!["*".to_owned()]),
            max_auto_recoveries_per_run: Some(0),
            on_unknown: Some(OnUnknown::Escalate),
            guard_files: Some(true),
            ..Self::default()
        }
    }

    /// Both, where the later one wins.
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

    /// A section with what was said here laid over it.
    pub fn apply_to(&self, section: &RecoverySection) -> RecoverySection {
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
        RecoverySection {
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

    /// The same in the one form that does not depend on order, repetition or blanks around an entry.
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

/// An entry without the blanks at its ends; others than these four are part of it.
pub(super) fn trimmed(entry: &str) -> &str {
    entry.trim_matches([' ', '\t', '\n', '\r'])
}
