//! All that a configuration file may say.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Value, json};
use unstuck_core::Kind;
use unstuck_core::agent::AgentFile;
use unstuck_core::knowledge::{KindOverlay, Strategy};
use unstuck_core::loop_detection::LoopLimits;
use unstuck_core::repair::RepairFile;

use crate::safe_directories;
use crate::schema_helpers::{self, add_alias, add_property};
use crate::section::{
    BudgetSection, ErrorRecovery, Escalations, GatewaySection, LoopSection, Models, PromptSection,
    RecoverySection, Role, RunSection, StuckSection, Webhooks,
};

/// The configuration of unstuck: how agents are run, what is done about their failures, and how far to go.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
#[schemars(title = "unstuck", transform = with_other_names)]
pub(crate) struct RootSection {
    /// The run as a whole.
    pub(crate) run: RunSection,
    /// The roles: agents that build on each other.
    pub(crate) role: Vec<Role>,
    /// What is done about the failures of roles.
    pub(crate) error_recovery: ErrorRecovery,
    /// The roles again and again until the work is done.
    #[serde(rename = "loop")]
    pub(crate) loop_section: Option<LoopSection>,
    /// What may be spent.
    pub(crate) budget: BudgetSection,
    /// How long people are waited for, and who may answer.
    pub(crate) escalations: Escalations,
    /// When an agent is taken for stuck.
    #[serde(deserialize_with = "StuckSection::deserialize")]
    #[schemars(with = "StuckSection")]
    pub(crate) stuck: LoopLimits,
    /// Prompt templates by name, each a text or a table.
    #[schemars(schema_with = "prompts")]
    pub(crate) prompts: BTreeMap<String, PromptSection>,
    /// Agents of one's own, by id.
    #[schemars(schema_with = "tables")]
    pub(crate) agents: BTreeMap<String, AgentFile>,
    /// Models, prices and ladders of one's own.
    pub(crate) models: Models,
    /// What changes about kinds of failure: rules, chains, hints.
    #[schemars(schema_with = "kinds")]
    pub(crate) kinds: BTreeMap<Kind, KindOverlay>,
    /// Ways to recover of one's own, by id.
    #[schemars(schema_with = "strategies")]
    pub(crate) strategies: BTreeMap<String, Strategy>,
    /// How far to go: changes to the template that it names.
    #[schemars(schema_with = "schema_helpers::policy_or_name")]
    pub(crate) policy: Option<Value>,
    /// Further policies, by id.
    #[schemars(schema_with = "policies")]
    pub(crate) policies: BTreeMap<String, Value>,
    /// Which repair commands may run.
    pub(crate) recovery: Option<RecoverySection>,
    /// What is known about repairs beyond what is built in.
    #[schemars(schema_with = "repairs")]
    pub(crate) repairs: RepairFile,
    /// Who is told what.
    pub(crate) webhooks: Webhooks,
    /// What stands between agents and their LLM APIs.
    pub(crate) gateway: GatewaySection,
    /// Whether `[recovery]` of projects counts without asking; only in the user's own configuration, false by default.
    pub(crate) trust_project_config: bool,
    /// Folders whose configuration is used although others than you can have put it there: absolute paths, also with
    /// `/*` at the end for everything below; only in the user's own configuration.
    #[serde(deserialize_with = "safe_directories::deserialize_list")]
    pub(crate) safe_directories: Vec<String>,
}

fn kinds(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    json_schema!({
        "type": "object",
        "propertyNames": { "enum": names },
        "additionalProperties": { "type": "object" }
    })
}

fn tables(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": { "type": "object" } })
}

fn strategies(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "required": ["title"],
            "additionalProperties": false,
            "properties": {
                "title": { "type": "string" },
                "changes": { "type": "array" },
                "risks": { "type": "array", "items": { "type": "string" } },
                "asks": { "type": "boolean" }
            }
        }
    })
}

fn repairs(_: &mut SchemaGenerator) -> Schema {
    let list = json!({ "type": "array", "items": { "type": "object" } });
    let names = [
        "need",
        "never",
        "forbidden",
        "program",
        "manager",
        "word",
        "place",
        "service",
        "alias",
        "sample",
    ];
    let lists: serde_json::Map<_, _> = names
        .map(|name| (name.to_owned(), list.clone()))
        .into_iter()
        .collect();
    json_schema!({ "type": "object", "properties": lists })
}

fn policies(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": schema_helpers::policy(generator) })
}

fn prompts(generator: &mut SchemaGenerator) -> Schema {
    let one = schema_helpers::text_or_table::<PromptSection>(generator);
    json_schema!({ "type": "object", "additionalProperties": one })
}

/// What the derived schema of a file cannot say: other names, and the line by which a file names its schema.
fn with_other_names(schema: &mut Schema) {
    add_alias(schema, "roles", "role");
    add_property(schema, "$schema", json!({ "type": "string" }));
}
