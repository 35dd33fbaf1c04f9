//! The top level of a configuration file.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Value, json};
use unstuck_core::FailureKind;
use unstuck_core::agent::AgentDefinition;
use unstuck_core::knowledge::{KindOverlay, Strategy};
use unstuck_core::loop_detection::AgentLoopLimits;
use unstuck_core::repair::RepairKnowledgeFile;

use crate::safe_directories;
use crate::schema_helpers::{self, add_alias, add_property};
use crate::section::{
    BudgetSection, ErrorRecoverySection, EscalationsSection, GatewaySection, ModelsSection,
    PipelineLoopSection, PromptNoteSection, RepairPolicySection, RoleSection, RunSection,
    StuckSection, WebhooksSection,
};

/// The unstuck configuration: agents, failure recovery, and limits.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
#[schemars(title = "unstuck", transform = with_other_names)]
pub(crate) struct RootSection {
    /// Settings of the run.
    pub(crate) run: RunSection,
    /// The roles: agents that build on each other's output.
    pub(crate) role: Vec<RoleSection>,
    /// Error recovery of roles.
    pub(crate) error_recovery: ErrorRecoverySection,
    /// Repetition of the roles until the work is done.
    #[serde(rename = "loop")]
    pub(crate) loop_section: Option<PipelineLoopSection>,
    /// Spending limits.
    pub(crate) budget: BudgetSection,
    /// Deadlines and permissions for requests that need human input.
    pub(crate) escalations: EscalationsSection,
    /// Limits for detecting an agent that is stuck in a loop.
    #[serde(deserialize_with = "StuckSection::deserialize")]
    #[schemars(with = "StuckSection")]
    pub(crate) stuck: AgentLoopLimits,
    /// Prompt templates by name, each a string or a table.
    #[schemars(schema_with = "prompts")]
    pub(crate) prompts: BTreeMap<String, PromptNoteSection>,
    /// User-defined agents, by id.
    #[schemars(schema_with = "tables")]
    pub(crate) agents: BTreeMap<String, AgentDefinition>,
    /// User-defined models, prices and ladders.
    pub(crate) models: ModelsSection,
    /// Changes to failure kinds: rules, chains, hints.
    #[schemars(schema_with = "kinds")]
    pub(crate) kinds: BTreeMap<FailureKind, KindOverlay>,
    /// User-defined strategies, by id.
    #[schemars(schema_with = "strategies")]
    pub(crate) strategies: BTreeMap<String, Strategy>,
    /// The retry policy: changes to the template that it names.
    #[schemars(schema_with = "schema_helpers::policy_or_name")]
    pub(crate) policy: Option<Value>,
    /// Further policies, by id.
    #[schemars(schema_with = "policies")]
    pub(crate) policies: BTreeMap<String, Value>,
    /// Permissions for repair commands.
    pub(crate) recovery: Option<RepairPolicySection>,
    /// User-defined repairs, added to the built-in ones.
    #[schemars(schema_with = "repairs")]
    pub(crate) repairs: RepairKnowledgeFile,
    /// Notification targets.
    pub(crate) webhooks: WebhooksSection,
    /// The gateway between agents and their LLM APIs.
    pub(crate) gateway: GatewaySection,
    /// If true, `[recovery]` of projects applies without confirmation; only in the user's own configuration, false by
    /// default.
    pub(crate) trust_project_config: bool,
    /// Directories whose configuration is used although others may have written it: absolute paths, with a trailing
    /// `/*` for everything below; only in the user's own configuration.
    #[serde(deserialize_with = "safe_directories::deserialize_list")]
    pub(crate) safe_directories: Vec<String>,
}

fn kinds(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<_> = FailureKind::ALL.iter().map(|kind| kind.name()).collect();
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
                "requires_human": { "type": "boolean" }
            }
        }
    })
}

fn repairs(_: &mut SchemaGenerator) -> Schema {
    let list = json!({ "type": "array", "items": { "type": "object" } });
    let names = [
        "requirement",
        "denied_failure",
        "denied_command",
        "program",
        "manager",
        "script_name",
        "generated_path",
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
    let one = schema_helpers::text_or_table::<PromptNoteSection>(generator);
    json_schema!({ "type": "object", "additionalProperties": one })
}

/// Adds the aliases and the `$schema` key to the derived schema.
fn with_other_names(schema: &mut Schema) {
    add_alias(schema, "roles", "role");
    add_property(schema, "$schema", json!({ "type": "string" }));
}
