//! What prompts are filled with.

use std::collections::{BTreeMap, BTreeSet};

/// Names that stand for one text or number each.
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
/// Names that stand for several values, and functions.
pub(super) const OBJECT_NAMES: [&str; 4] = ["outputs", "files", "file", "unstuck"];
/// What is known about the supervisor itself.
pub(super) const UNSTUCK_NAMES: [&str; 1] = ["recovery_instructions"];

/// The roles that a prompt may name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PromptScope {
    pub(super) roles: BTreeSet<String>,
    pub(super) outputs: BTreeSet<String>,
}

impl PromptScope {
    /// All roles of the run, and those whose outputs are there when the prompt is filled.
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

    /// Every placeholder, as it is written.
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

/// What a prompt is filled with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PromptValues {
    /// What is to be done.
    pub task: String,
    /// The number of the iteration, from 1.
    pub iteration: u32,
    /// How many iterations there are at most; 1 without a loop.
    pub max_iterations: u32,
    /// The role.
    pub role: String,
    /// Which of the instances it is, from 1.
    pub instance: u32,
    /// How many instances of the role there are.
    pub instances: u32,
    /// The outputs of the roles that have run; in a loop those of the iteration before, empty at first.
    pub outputs: BTreeMap<String, String>,
    /// What failed in the iteration before.
    pub feedback: String,
    /// The id of the run.
    pub run: String,
    /// How an agent proposes a repair; empty where nothing is repaired.
    pub recovery_instructions: String,
}
