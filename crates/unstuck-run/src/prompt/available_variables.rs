//! The variables that are available in prompts: their names and values.

use std::collections::{BTreeMap, BTreeSet};

/// Variables with a single value.
pub(super) const SCALAR_NAMES: [&str; 8] = [
    "task",
    "iteration",
    "max_iterations",
    "role",
    "instance",
    "instances",
    "feedback",
    "run",
];
/// Variables with several values, and functions.
pub(super) const OBJECT_NAMES: [&str; 4] = ["outputs", "files", "file", "unstuck"];
/// Fields of the `unstuck` variable.
pub(super) const UNSTUCK_NAMES: [&str; 1] = ["recovery_instructions"];

/// The variables in the scope of a prompt: its roles, and those whose outputs exist.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PromptVariableScope {
    pub(super) roles: BTreeSet<String>,
    pub(super) outputs: BTreeSet<String>,
}

impl PromptVariableScope {
    /// Returns the scope of all roles of the run and of those whose outputs exist when the prompt is rendered.
    pub fn new<R, O>(
        roles: impl IntoIterator<Item = R>,
        outputs: impl IntoIterator<Item = O>,
    ) -> Self
    where
        R: Into<String>,
        O: Into<String>,
    {
        Self {
            roles: roles.into_iter().map(Into::into).collect(),
            outputs: outputs.into_iter().map(Into::into).collect(),
        }
    }

    /// Returns every variable as it is written.
    pub(super) fn all_placeholders(&self) -> impl Iterator<Item = String> {
        let plain = SCALAR_NAMES
            .into_iter()
            .chain(OBJECT_NAMES)
            .map(str::to_owned);
        let unstuck = UNSTUCK_NAMES.iter().map(|name| format!("unstuck.{name}"));
        let outputs = self.outputs.iter().map(|role| format!("outputs.{role}"));
        plain.chain(unstuck).chain(outputs)
    }
}

/// The values of a prompt's variables.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PromptValues {
    /// The task.
    pub task: String,
    /// The number of the iteration, from 1.
    pub iteration: u32,
    /// The largest number of iterations; 1 without a loop.
    pub max_iterations: u32,
    /// The role.
    pub role: String,
    /// The number of the instance, from 1.
    pub instance: u32,
    /// The number of instances of the role.
    pub instances: u32,
    /// The outputs of roles that have run; in a loop those of the previous iteration, empty at first.
    pub outputs: BTreeMap<String, String>,
    /// The failures of the previous iteration.
    pub feedback: String,
    /// The id of the run.
    pub run: String,
    /// Instructions for proposing a repair; empty if repairs are disabled.
    pub recovery_instructions: String,
}
