//! `[loop]`: the roles again and again until the work is done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::number;
use crate::schema_helpers;

/// `[loop]`: the roles again and again until the work is done.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct LoopSection {
    /// How often the roles run at most; 10 by default.
    #[serde(deserialize_with = "number::at_least_one")]
    #[schemars(range(min = 1))]
    pub max_iterations: u32,
    /// When the work is done: a promise in an output, or a table of conditions.
    #[schemars(schema_with = "schema_helpers::text_or_table::<CompletionCondition>")]
    pub until: CompletionCondition,
    /// After how many iterations with the same failure and no change the loop is stuck; 3 by default.
    #[serde(deserialize_with = "number::at_least_one")]
    #[schemars(range(min = 1))]
    pub stuck_after: u32,
    /// What is done then; a person is asked by default.
    pub on_stuck: OnStuck,
}

impl Default for LoopSection {
    fn default() -> Self {
        Self {
            max_iterations: 10,
            until: CompletionCondition::default(),
            stuck_after: 3,
            on_stuck: OnStuck::Escalate,
        }
    }
}

/// When the work is done; all that is said must hold. Where nothing is said, the roles run `max_iterations` times, which must then be set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a text or a table")]
pub struct CompletionCondition {
    /// A text such as `<promise>DONE</promise>` in the output of a role.
    #[schemars(schema_with = "schema_helpers::text_or_table::<CompletionPromise>")]
    pub promise: Option<CompletionPromise>,
    /// A shell command that passes.
    pub check: Option<String>,
    /// Whether all roles must have succeeded.
    pub all_roles: bool,
    /// Whether one of the conditions is enough; false by default.
    pub any: bool,
}

/// A text that says that the work is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a text or a table")]
pub struct CompletionPromise {
    /// The role that gives it; any role where left out.
    pub role: Option<String>,
    /// The text, word for word.
    pub text: String,
}

/// What is done about a loop that is stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnStuck {
    /// A person is asked.
    #[default]
    Escalate,
    /// The run ends.
    Stop,
    /// It goes on up to its last iteration.
    Continue,
}
