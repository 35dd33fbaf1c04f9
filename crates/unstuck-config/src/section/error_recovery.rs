//! `[error_recovery]`: error recovery of roles.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::json;
use unstuck_core::FailureKind;

use super::number;
use crate::schema_helpers::{self, add_property};

/// `[error_recovery]`: error recovery of roles.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct ErrorRecoverySection {
    /// If false, failures of roles are not recovered; true by default.
    pub enabled: bool,
    /// Maximum number of retries per kind unless a role sets its own; the policy's limit by default, which is 3.
    pub max_auto_retries: Option<u32>,
    /// If true, a checkpoint is written when a role fails; true by default.
    pub save_checkpoint_on_failure: bool,
    /// Settings by failure kind.
    #[schemars(schema_with = "schema_helpers::kind_table::<FailureKindRecoverySection>")]
    pub strategies: BTreeMap<FailureKind, FailureKindRecoverySection>,
}

impl Default for ErrorRecoverySection {
    fn default() -> Self {
        Self {
            enabled: true,
            max_auto_retries: None,
            save_checkpoint_on_failure: true,
            strategies: BTreeMap::new(),
        }
    }
}

/// Recovery settings of one failure kind; unset values keep the defaults of the kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
#[schemars(transform = with_other_name)]
pub struct FailureKindRecoverySection {
    /// Number of retries after the first attempt.
    pub max_retries: Option<u32>,
    /// Factor by which the delay before the n-th retry is multiplied.
    #[serde(deserialize_with = "number::amount")]
    #[schemars(range(min = 0))]
    pub backoff_multiplier: Option<f64>,
    /// Factor by which the timeout is multiplied where a strategy extends it.
    #[serde(deserialize_with = "number::factor")]
    #[schemars(range(min = 0.1))]
    pub timeout_multiplier: Option<f64>,
    /// If true, the next prompt asks the agent to focus on the core requirements.
    pub simplify_prompt: Option<bool>,
    /// If true, the agent is reminded of the required format.
    pub emphasize_format: Option<bool>,
    /// If true, the agent is asked for a shorter output.
    pub reduce_max_chars: Option<bool>,
    /// Prompt template that is added first: one of `[prompts]`, or a built-in one.
    pub custom_prompt_modifier: Option<String>,
    /// Recovery strategies in order, instead of those of the kind.
    pub strategies: Option<Vec<String>>,
}

impl FailureKindRecoverySection {
    /// Returns these settings, with unset values taken from another one.
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

/// Adds an alias to the derived schema, which also counts the first attempt.
fn with_other_name(schema: &mut Schema) {
    add_property(
        schema,
        "max_attempts",
        json!({ "type": "integer", "minimum": 1 }),
    );
}
