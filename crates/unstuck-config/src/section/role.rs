//! `[[role]]`: one agent with its task.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::{JsonSchema, Schema};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use unstuck_core::FailureKind;

use super::{ExpectSection, FailureKindRecoverySection, duration, number};
use crate::schema_helpers::{self, add_alias, add_property};

/// `[[role]]`: one agent with its task.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
#[schemars(transform = with_other_names)]
pub struct RoleSection {
    /// Role id: letters, digits, `_` and `-`, at most 64 characters, unique in the run.
    #[serde(deserialize_with = "id")]
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]{1,64}$"))]
    pub id: String,
    /// Agent to run, such as `claude` or `codex`, or `command` for any program.
    pub agent: String,
    /// Model of the agent; the agent's default if unset.
    pub model: Option<String>,
    /// Prompt template, with variables such as `{{ task }}` and `{{ outputs.planner }}`.
    pub prompt: Option<String>,
    /// File with the prompt, relative to the directory of this file.
    #[schemars(with = "Option<String>")]
    pub prompt_file: Option<PathBuf>,
    /// Program and arguments, for the agent `command`; the prompt is passed on its standard input.
    #[serde(default)]
    pub command: Vec<String>,
    /// Roles whose outputs this one needs; it starts when they are done.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Number of parallel instances; 1 by default.
    #[serde(default = "one", deserialize_with = "number::at_least_one")]
    #[schemars(range(min = 1))]
    pub instances: u32,
    /// Time limit of one attempt; unlimited if unset.
    #[serde(default, deserialize_with = "duration::optional")]
    #[schemars(schema_with = "duration::schema")]
    pub timeout: Option<Duration>,
    /// Maximum time without output before the attempt is treated as stuck; unlimited if unset.
    #[serde(default, deserialize_with = "duration::optional")]
    #[schemars(schema_with = "duration::schema")]
    pub idle_timeout: Option<Duration>,
    /// Maximum output length in characters; unlimited if unset.
    pub max_output: Option<u64>,
    /// Tools the agent may use without asking; the agent's default if empty.
    #[serde(default)]
    pub allowed_tools: Vec<String>,
    /// Additional environment variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Additional arguments of the agent's command line.
    #[serde(default)]
    pub args: Vec<String>,
    /// Requirements on the output.
    #[serde(default)]
    pub expect: ExpectSection,
    /// Retry policy: the name of a policy, or changes to one.
    #[schemars(schema_with = "schema_helpers::policy_or_name")]
    pub policy: Option<serde_json::Value>,
    /// Recovery settings by failure kind, instead of those of `[error_recovery]`.
    #[serde(default)]
    #[schemars(schema_with = "schema_helpers::kind_table::<FailureKindRecoverySection>")]
    pub error_recovery: BTreeMap<FailureKind, FailureKindRecoverySection>,
    /// If true, the run continues without this role when it fails; false by default.
    #[serde(default)]
    pub optional: bool,
}

fn one() -> u32 {
    1
}

fn id<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let id = String::deserialize(from)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if id.is_empty() || id.len() > 64 || !id.chars().all(fits) {
        let wanted = "1 to 64 letters, digits, `_` or `-`";
        return Err(Error::invalid_value(Unexpected::Str(&id), &wanted));
    }
    Ok(id)
}

/// Adds the aliases to the derived schema, and makes the agent optional for roles with a command.
fn with_other_names(schema: &mut Schema) {
    let seconds = json!({ "type": "number", "minimum": 0 });
    add_alias(schema, "depends_on", "needs");
    add_alias(schema, "max_output_chars", "max_output");
    for key in [
        "timeout_seconds",
        "timeout_sec",
        "idle_timeout_seconds",
        "idle_timeout_sec",
    ] {
        add_property(schema, key, seconds.clone());
    }
    schema.insert("required".to_owned(), json!(["id"]));
    schema.insert(
        "anyOf".to_owned(),
        json!([{ "required": ["agent"] }, { "required": ["command"] }]),
    );
}
