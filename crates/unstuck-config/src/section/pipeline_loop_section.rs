//! `[loop]`: repetition of the roles until the work is done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::number;
use crate::schema_helpers;

/// `[loop]`: repetition of the roles until the work is done.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct PipelineLoopSection {
    /// Maximum number of iterations; 10 by default.
    #[serde(deserialize_with = "number::at_least_one")]
    #[schemars(range(min = 1))]
    pub max_iterations: u32,
    /// Completion condition: a promise in an output, or a table of conditions.
    #[schemars(schema_with = "schema_helpers::text_or_table::<LoopCompletionSection>")]
    pub until: LoopCompletionSection,
    /// Number of iterations with the same failure and no change after which the loop is stuck; 3 by default.
    #[serde(deserialize_with = "number::at_least_one")]
    #[schemars(range(min = 1))]
    pub stuck_after: u32,
    /// Action when the loop is stuck; `escalate` by default.
    pub on_stuck: OnStuckPipelineLoop,
}

impl Default for PipelineLoopSection {
    fn default() -> Self {
        Self {
            max_iterations: 10,
            until: LoopCompletionSection::default(),
            stuck_after: 3,
            on_stuck: OnStuckPipelineLoop::Escalate,
        }
    }
}

/// The completion condition of a loop; all parts must hold. If it is empty, the roles run `max_iterations` times, which
/// must then be set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a string or a table")]
pub struct LoopCompletionSection {
    /// Text such as `<promise>DONE</promise>` in the output of a role.
    #[schemars(schema_with = "schema_helpers::text_or_table::<CompletionMarkerSection>")]
    pub promise: Option<CompletionMarkerSection>,
    /// Shell command that must succeed.
    pub check: Option<String>,
    /// If true, all roles must have succeeded.
    pub all_roles: bool,
    /// If true, one of the conditions is enough; false by default.
    pub any: bool,
}

/// A text that declares the work done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a string or a table")]
pub struct CompletionMarkerSection {
    /// Role that must output it; any role if unset.
    pub role: Option<String>,
    /// Exact text.
    pub text: String,
}

/// The action for a loop that is stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnStuckPipelineLoop {
    /// Ask a human.
    #[default]
    Escalate,
    /// End the run.
    Stop,
    /// Continue up to the last iteration.
    Continue,
}
