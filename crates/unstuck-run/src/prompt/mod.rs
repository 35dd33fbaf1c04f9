//! Prompts of roles: templates that are validated before anything runs, and rendered when the role starts.
//!
//! An undefined variable or a missing file is a `context_error`: it is reported with the most similar name before any
//! agent has caused a cost.
//!
//! ```
//! use unstuck_run::prompt::{PromptScope, NoFiles, RolePromptTemplate, PromptValues};
//!
//! let prompt = RolePromptTemplate::new("builder", "Do {{ task }} as planned:\n{{ outputs.planner }}");
//! prompt.check(&PromptScope::new(["planner", "builder"], ["planner"]), &NoFiles)?;
//! let mut values = PromptValues { task: "the thing".into(), ..PromptValues::default() };
//! values.outputs.insert("planner".into(), "1. begin".into());
//! assert_eq!(prompt.render(&values, &NoFiles)?, "Do the thing as planned:\n1. begin");
//!
//! let wrong = RolePromptTemplate::new("builder", "{{ outputs.planer }}");
//! let fault = wrong.check(&PromptScope::new(["planner", "builder"], ["planner"]), &NoFiles).unwrap_err();
//! assert!(fault.to_string().ends_with("there is no role `planer`, did you mean `planner`?"));
//! # Ok::<(), unstuck_run::prompt::PromptFault>(())
//! ```

mod fault;
mod include_files;
mod lookup;
mod render;
mod scope;
mod validate;
mod variables;

#[cfg(test)]
mod tests;

pub use fault::PromptFault;
pub use include_files::{IncludeFiles, NoFiles, ProjectFiles};
pub use scope::{PromptScope, PromptValues};

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
