//! Prompts of roles: templates that are validated before anything runs, and rendered when the role starts.
//!
//! An undefined variable or a missing file is a `context_error`: it is reported with the most similar name before any
//! agent has caused a cost.
//!
//! ```
//! use unstuck_run::prompt::{PromptVariableScope, EmptyPromptFileProvider, RolePromptTemplate, PromptValues};
//!
//! let prompt = RolePromptTemplate::new("builder", "Do {{ task }} as planned:\n{{ outputs.planner }}");
//! prompt.check(&PromptVariableScope::new(["planner", "builder"], ["planner"]), &EmptyPromptFileProvider)?;
//! let mut values = PromptValues { task: "the thing".into(), ..PromptValues::default() };
//! values.outputs.insert("planner".into(), "1. begin".into());
//! assert_eq!(prompt.render(&values, &EmptyPromptFileProvider)?, "Do the thing as planned:\n1. begin");
//!
//! let wrong = RolePromptTemplate::new("builder", "{{ outputs.planer }}");
//! let fault = wrong.check(&PromptVariableScope::new(["planner", "builder"], ["planner"]), &EmptyPromptFileProvider).unwrap_err();
//! assert!(fault.to_string().ends_with("unknown role `planer`, did you mean `planner`?"));
//! # Ok::<(), unstuck_run::prompt::RolePromptError>(())
//! ```

mod available_variables;
mod error;
mod include_files;
mod render;
mod template_objects;
mod template_validation;
mod used_outputs;

#[cfg(test)]
mod tests;

pub use available_variables::{PromptValues, PromptVariableScope};
pub use error::RolePromptError;
pub use include_files::{EmptyPromptFileProvider, ProjectPromptFileProvider, PromptFileProvider};

/// The prompt template of a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolePromptTemplate {
    role: String,
    text: String,
}

impl RolePromptTemplate {
    /// Returns the template of a role.
    pub fn new(role: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            role: role.into(),
            text: text.into(),
        }
    }

    /// Returns the text of the template.
    pub fn text(&self) -> &str {
        &self.text
    }
}
