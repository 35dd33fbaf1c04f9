//! What can be wrong with a prompt.

use unstuck_core::Kind;

/// A prompt that cannot be filled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptFault {
    /// There is no such placeholder.
    #[error("the prompt of `{role}` has `{{{{ {placeholder} }}}}`, which nothing fills{}", did_you_mean(.suggestion))]
    UnknownPlaceholder {
        /// The role.
        role: String,
        /// What is not known.
        placeholder: String,
        /// The nearest one that is.
        suggestion: Option<String>,
    },
    /// The output of a role that there is not.
    #[error("the prompt of `{role}` uses the output of `{other}`, but there is no role `{other}`{}", suggestion_or_list(.suggestion, .known))]
    UnknownRole {
        /// The role.
        role: String,
        /// The role whose output it uses.
        other: String,
        /// The nearest one that there is.
        suggestion: Option<String>,
        /// The other roles.
        known: Vec<String>,
    },
    /// The output of a role whose name is no name in a template.
    #[error(
        "the prompt of `{role}` has `outputs.{other}`, where `-` means minus; write `outputs[\"{other}\"]`"
    )]
    HyphenInName {
        /// The role.
        role: String,
        /// The role whose output it uses.
        other: String,
    },
    /// The output of a role that has not run by then.
    #[error(
        "the prompt of `{role}` uses the output of `{other}`, which may not have run by then; add `{other}` to the `needs` of `{role}`"
    )]
    MissingDependency {
        /// The role.
        role: String,
        /// The role whose output it uses.
        other: String,
    },
    /// There is no such file.
    #[error("the prompt of `{role}` includes the file `{path}`: {reason}{}", did_you_mean(.suggestion))]
    File {
        /// The role.
        role: String,
        /// The path, as it is written.
        path: String,
        /// Why it cannot be included.
        reason: String,
        /// The nearest file that there is.
        suggestion: Option<String>,
    },
    /// It is not a template.
    #[error("the prompt of `{role}` cannot be read{}: {reason}", line.map(|line| format!(" (its line {line})")).unwrap_or_default())]
    InvalidTemplate {
        /// The role.
        role: String,
        /// What is wrong with it.
        reason: String,
        /// The line of the prompt, from 1.
        line: Option<usize>,
    },
}

impl PromptFault {
    /// The kind of failure that it is.
    pub fn kind(&self) -> Kind {
        Kind::ContextError
    }
}

fn did_you_mean(suggestion: &Option<String>) -> String {
    suggestion
        .as_ref()
        .map(|known| format!(", did you mean `{known}`?"))
        .unwrap_or_default()
}

fn suggestion_or_list(suggestion: &Option<String>, known: &[String]) -> String {
    match (suggestion, known) {
        (None, []) => String::new(),
        (None, [one]) => format!("; there is only `{one}`"),
        (None, known) => format!("; there are {}", known.join(", ")),
        (Some(_), _) => did_you_mean(suggestion),
    }
}
