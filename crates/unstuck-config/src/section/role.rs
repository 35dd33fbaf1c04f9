//! `[[role]]`: one agent with its task.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::{JsonSchema, Schema};
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use unstuck_core::Kind;

use super::{Expect, KindRecovery, duration, number};
use crate::schema_helpers::{self, add_alias, add_property};

/// `[[role]]`: one agent with its task.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
#[schemars(transform = with_other_names)]
pub struct Role {
    /// Its name: letters, digits, `_` and `-`, at most 64, unique in the run.
    #[serde(deserialize_with = "id")]
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]{1,64}$"))]
    pub id: String,
    /// The agent that does it, such as `claude` or `codex`, or `command` for any program.
    pub agent: String,
    /// The model that the agent uses; the agent's own choice where left out.
    pub model: Option<String>,
    /// What the agent is told: a template with placeholders such as `{{ task }}` and `{{ outputs.planner }}`.
    pub prompt: Option<String>,
    /// A file with the prompt, from the folder of this file.
    #[schemars(with = "Option<String>")]
    pub prompt_file: Option<PathBuf>,
    /// The program and its arguments, for the agent `command`; the prompt is on its standard input.
    #[serde(default)]
    pub command: Vec<String>,
    /// The roles whose outputs it needs; it starts when they are done.
    #[serde(default)]
    pub needs: Vec<String>,
    /// How many of it run side by side; 1 by default.
    #[serde(default = "one", deserialize_with = "number::at_least_one")]
    #[schemars(range(min = 1))]
    pub instances: u32,
    /// How long one attempt may take; no limit where left out.
    #[serde(default, deserialize_with = "duration::optional")]
    #[schemars(schema_with = "duration::schema")]
    pub timeout: Option<Duration>,
    /// How long it may be silent before it is taken for stuck; no limit where left out.
    #[serde(default, deserialize_with = "duration::optional")]
    #[schemars(schema_with = "duration::schema")]
    pub idle_timeout: Option<Duration>,
    /// How many characters its output may have; no limit where left out.
    pub max_output: Option<u64>,
    /// The tools that it may use without asking; the agent's own choice where empty.
    #[serde(default)]
    pub allowed_tools: Vec<String>,
    /// Further variables of its environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Further words for the agent's command line.
    #[serde(default)]
    pub args: Vec<String>,
    /// What its output must be.
    #[serde(default)]
    pub expect: Expect,
    /// How far to go for it: the name of a policy, or changes to one.
    #[schemars(schema_with = "schema_helpers::policy_or_name")]
    pub policy: Option<serde_json::Value>,
    /// What is done about single kinds of failure, instead of what `[error_recovery]` says.
    #[serde(default)]
    #[schemars(schema_with = "schema_helpers::kind_table::<KindRecovery>")]
    pub error_recovery: BTreeMap<Kind, KindRecovery>,
    /// Whether the run goes on without it when it fails; false by default.
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

/// What the derived schema of a role cannot say: other names, and that the agent goes without saying with a command.
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
