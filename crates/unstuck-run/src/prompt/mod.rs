//! Prompts of roles: templates that are checked before anything runs, and filled when the role's turn has come.
//!
//! A placeholder that nothing fills, or a file that is not there, is a `context_error`: it is told by name, with the
//! nearest name that there is, before any agent has cost anything.
//!
//! ```
//! use unstuck_run::prompt::{Names, NoFiles, PromptSource, Values};
//!
//! let prompt = PromptSource::new("builder", "Do {{ task }} as planned:\n{{ outputs.planner }}");
//! prompt.check(&Names::new(["planner", "builder"], ["planner"]), &NoFiles)?;
//! let mut values = Values { task: "the thing".into(), ..Values::default() };
//! values.outputs.insert("planner".into(), "1. begin".into());
//! assert_eq!(prompt.render(&values, &NoFiles)?, "Do the thing as planned:\n1. begin");
//!
//! let wrong = PromptSource::new("builder", "{{ outputs.planer }}");
//! let fault = wrong.check(&Names::new(["planner", "builder"], ["planner"]), &NoFiles).unwrap_err();
//! assert!(fault.to_string().ends_with("there is no role `planer`, did you mean `planner`?"));
//! # Ok::<(), unstuck_run::prompt::PromptFault>(())
//! ```

mod check;
mod fault;
mod files;
mod look;
mod names;
mod template;
mod uses;

#[cfg(test)]
mod tests;

pub use fault::PromptFault;
pub use files::{Files, NoFiles, ProjectFiles};
pub use names::{Names, Values};

/// A prompt as it is written, with its placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptSource {
    role: String,
    text: String,
}

impl PromptSource {
    /// The prompt of a role.
    pub fn new(role: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            role: role.into(),
            text: text.into(),
        }
    }

    /// The prompt as it is written, with its placeholders.
    pub fn text(&self) -> &str {
        &self.text
    }
}
