//! `[recovery]`: permissions for repair commands.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};
pub use unstuck_core::command_policy::OnUnlistedCommand;
use unstuck_core::command_policy::{RepairPolicy, RepairPolicyError};

/// `[recovery]`: the repair commands that may run without approval, and their limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct RepairPolicySection {
    /// If false, no repairs are performed; true by default.
    pub enabled: bool,
    /// Commands that may run without approval, matched exactly; none by default.
    #[serde(deserialize_with = "deserialize_entries")]
    pub auto_approve: Vec<String>,
    /// Patterns of commands that need approval; `["*"]` by default.
    #[serde(deserialize_with = "deserialize_entries")]
    pub require_human: Vec<String>,
    /// Maximum number of automatic repairs per run; 3 by default.
    pub max_auto_recoveries_per_run: u32,
    /// Minimum time between two automatic repairs in seconds; 60 by default.
    pub cooldown_seconds: u64,
    /// Action for a command that is in no list; `escalate` by default.
    #[schemars(with = "OnUnknownName")]
    pub on_unknown: OnUnlistedCommand,
    /// Sandbox mode; `best-effort` by default.
    pub sandbox: SandboxModeSetting,
    /// If true, repairs may use the network; true by default.
    pub network: bool,
    /// Directories of the project that repairs may write to; the whole project if empty.
    #[schemars(with = "Vec<String>")]
    pub allowed_write_paths: Vec<PathBuf>,
    /// Environment variables passed to repairs, besides the usual ones.
    pub env_keep: Vec<String>,
    /// If true, an approved command needs approval again when files that affect it have changed; true by default.
    pub guard_files: bool,
    /// If true, approval requests show a preview of the repair's changes; true by default.
    pub preview: bool,
}

impl Default for RepairPolicySection {
    fn default() -> Self {
        Self {
            enabled: true,
            auto_approve: Vec::new(),
            require_human: vec!["*".to_owned()],
            max_auto_recoveries_per_run: 3,
            cooldown_seconds: 60,
            on_unknown: OnUnlistedCommand::Escalate,
            sandbox: SandboxModeSetting::BestEffort,
            network: true,
            allowed_write_paths: Vec::new(),
            env_keep: Vec::new(),
            guard_files: true,
            preview: true,
        }
    }
}

impl RepairPolicySection {
    /// Returns the repair policy; an error if an entry is blank, which invalidates the section.
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

/// Reads a list of commands or patterns; a blank entry would match unintended commands.
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

/// The spelling of [`OnUnlistedCommand`] values.
#[derive(JsonSchema)]
#[schemars(rename = "OnUnknown", rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used: the core has no schemas")]
enum OnUnknownName {
    /// Ask a human.
    Escalate,
    /// Reject it.
    Deny,
    /// Run it if it is a simple command.
    Allow,
}

/// The sandbox mode of repairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxModeSetting {
    /// Repairs run only in a sandbox.
    Required,
    /// Use a sandbox if the machine has one.
    #[default]
    BestEffort,
    /// Never use a sandbox.
    Off,
}
