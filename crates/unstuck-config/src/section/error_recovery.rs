//! `[error_recovery]`: what is done about the failures of roles.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::json;
use unstuck_core::Kind;

use super::number;
use crate::schema_helpers::{self, add_property};

/// `[error_recovery]`: what is done about the failures of roles.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct ErrorRecovery {
    /// Whether anything is done about them at all; true by default.
    pub enabled: bool,
    /// How many retries each kind may have unless a role says otherwise; those of the policy by default, which are 3.
    pub max_auto_retries: Option<u32>,
    /// Whether a checkpoint is written when a role fails; true by default.
    pub save_checkpoint_on_failure: bool,
    /// What is done about single kinds.
    #[schemars(schema_with = "schema_helpers::kind_table::<KindRecovery>")]
    pub strategies: BTreeMap<Kind, KindRecovery>,
}

impl Default for ErrorRecovery {
    fn default() -> Self {
        Self {
            enabled: true,
            max_auto_retries: None,
            save_checkpoint_on_failure: true,
            strategies: BTreeMap::new(),
        }
    }
}

/// What is done about one kind of failure; what is left out is as the kind's own defaults say.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
#[schemars(transform = with_other_name)]
pub struct KindRecovery {
    /// How many retries there are after the first try.
    pub max_retries: Option<u32>,
    /// What the wait before the n-th retry is multiplied by.
    #[serde(deserialize_with = "number::amount")]
    #[schemars(range(min = 0))]
    pub backoff_multiplier: Option<f64>,
    /// What the allowed time is multiplied by where a strategy lengthens it.
    #[serde(deserialize_with = "number::factor")]
    #[schemars(range(min = 0.1))]
    pub timeout_multiplier: Option<f64>,
    /// Whether the agent is told to focus on the core requirements.
    pub simplify_prompt: Option<bool>,
    /// Whether the agent is reminded of the required format.
    pub emphasize_format: Option<bool>,
    /// Whether the agent is asked for a shorter output.
    pub reduce_max_chars: Option<bool>,
    /// The prompt template that is added first: one of `[prompts]`, or a built-in one.
    pub custom_prompt_modifier: Option<String>,
    /// The ways to recover, in this order, instead of the kind's own.
    pub strategies: Option<Vec<String>>,
}

impl KindRecovery {
    /// These settings, with those of another one where they are left out here.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let text = |own: &Option<String>, other: &Option<String>| own.clone().or(other.clone());
        Self {
            max_retries: self.max_retries.or(other.max_retries),
            backoff_multiplier: self.backoff_multiplier.or(other.backoff_multiplier),
            timeout_multiplier: self.timeout_multiplier.or(other.timeout_multiplier),
            simplify_prompt: self.simplify_prompt.or(other.simplify_prompt),
            emphasize_format: self.emphasize_format.or(other.emphasize_format),
            reduce_max_chars: self.reduce_max_chars.or(other.reduce_max_chars),
            custom_prompt_modifier: text(
                &self.custom_prompt_modifier,
                &other.custom_prompt_modifier,
            ),
            strategies: self.strategies.clone().or(other.strategies.clone()),
        }
    }
}

/// What the derived schema of a kind's recovery cannot say: another name, which counts the first try too.
fn with_other_name(schema: &mut Schema) {
    add_property(
        schema,
        "max_attempts",
        json!({ "type": "integer", "minimum": 1 }),
    );
}
