//! `[recovery]`: which repair commands may run.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};
pub use unstuck_core::command_policy::OnUnknown;
use unstuck_core::command_policy::{RepairPolicy, RepairPolicyError};

/// `[recovery]`: which repair commands may run without a person, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct RecoverySection {
    /// Whether repairs are done at all; true by default.
    pub enabled: bool,
    /// Commands that may run without asking, word for word; none by default.
    #[serde(deserialize_with = "deserialize_entries")]
    pub auto_approve: Vec<String>,
    /// Patterns of commands that a person must approve; `["*"]` by default.
    #[serde(deserialize_with = "deserialize_entries")]
    pub require_human: Vec<String>,
    /// How many repairs may run by themselves in one run; 3 by default.
    pub max_auto_recoveries_per_run: u32,
    /// How many seconds lie between two of them at least; 60 by default.
    pub cooldown_seconds: u64,
    /// What happens to a command that is in no list; a person is asked by default.
    #[schemars(with = "OnUnknownName")]
    pub on_unknown: OnUnknown,
    /// Whether repairs run in a sandbox; where there is one by default.
    pub sandbox: Sandbox,
    /// Whether repairs may use the network; true by default.
    pub network: bool,
    /// Folders of the project that repairs may write to; the whole project where empty.
    #[schemars(with = "Vec<String>")]
    pub allowed_write_paths: Vec<PathBuf>,
    /// Environment variables that repairs may see, besides the usual ones.
    pub env_keep: Vec<String>,
    /// Whether an approved command asks when files that decide what it executes have changed; true by default.
    pub guard_files: bool,
    /// Whether what a repair would change is shown with the question; true by default.
    pub preview: bool,
}

impl Default for RecoverySection {
    fn default() -> Self {
        Self {
            enabled: true,
            auto_approve: Vec::new(),
            require_human: vec!["*".to_owned()],
            max_auto_recoveries_per_run: 3,
            cooldown_seconds: 60,
            on_unknown: OnUnknown::Escalate,
            sandbox: Sandbox::BestEffort,
            network: true,
            allowed_write_paths: Vec::new(),
            env_keep: Vec::new(),
            guard_files: true,
            preview: true,
        }
    }
}

impl RecoverySection {
    /// What it says about what may run; an error where one of its entries is blank, and then nothing of it counts.
    pub fn rules(&self) -> Result<RepairPolicy, RepairPolicyError> {
        let rules = RepairPolicy {
            enabled: self.enabled,
            auto_approve: self.auto_approve.clone(),
            require_human: self.require_human.clone(),
            max_auto_recoveries_per_run: self.max_auto_recoveries_per_run,
            cooldown_seconds: self.cooldown_seconds,
            on_unknown: self.on_unknown,
        };
        rules.check()?;
        Ok(rules)
    }
}

/// Reads a list of commands or patterns; a blank one would match what nobody meant.
pub(crate) fn deserialize_entries<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<String>, D::Error> {
    struct CommandEntry(String);

    impl<'de> Deserialize<'de> for CommandEntry {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            let text = String::deserialize(from)?;
            if text.trim().is_empty() {
                return Err(D::Error::invalid_value(
                    Unexpected::Str(&text),
                    &"a command",
                ));
            }
            Ok(Self(text))
        }
    }

    let entries = Vec::<CommandEntry>::deserialize(from)?;
    Ok(entries.into_iter().map(|entry| entry.0).collect())
}

/// How [`OnUnknown`] is written.
#[derive(JsonSchema)]
#[schemars(rename = "OnUnknown", rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used: the core has no schemas")]
enum OnUnknownName {
    /// A person is asked.
    Escalate,
    /// It is refused.
    Deny,
    /// It runs if it is plain.
    Allow,
}

/// Whether repairs run in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    /// Without one nothing runs.
    Required,
    /// Where the machine has one.
    #[default]
    BestEffort,
    /// Never.
    Off,
}
