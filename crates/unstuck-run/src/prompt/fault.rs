//! Errors of a prompt.

use unstuck_core::Kind;

/// An error of a prompt that cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptFault {
    /// A template variable is undefined.
    #[error("the prompt of `{role}` has `{{{{ {placeholder} }}}}`, which nothing fills{}", did_you_mean(.suggestion))]
    UnknownPlaceholder {
        /// The role.
        role: String,
        /// The undefined variable.
        placeholder: String,
        /// The most similar defined variable.
        suggestion: Option<String>,
    },
    /// The prompt uses the output of an undefined role.
    #[error("the prompt of `{role}` uses the output of `{other}`, but there is no role `{other}`{}", suggestion_or_list(.suggestion, .known))]
    UnknownRole {
        /// The role.
        role: String,
        /// The role whose output it uses.
        other: String,
        /// The most similar defined role.
        suggestion: Option<String>,
        /// The other roles.
        known: Vec<String>,
    },
    /// The name of a role is not a valid identifier in a template.
    #[error(
        "the prompt of `{role}` has `outputs.{other}`, where `-` means minus; write `outputs[\"{other}\"]`"
    )]
    HyphenInName {
        /// The role.
        role: String,
        /// The role whose output it uses.
        other: String,
    },
    /// The prompt uses the output of a role that may not have run yet.
    #[error(
        "the prompt of `{role}` uses the output of `{other}`, which may not have run by then; add `{other}` to the `needs` of `{role}`"
    )]
    MissingDependency {
        /// The role.
        role: String,
        /// The role whose output it uses.
        other: String,
    },
    /// A file cannot be included.
    #[error("the prompt of `{role}` includes the file `{path}`: {reason}{}", did_you_mean(.suggestion))]
    File {
        /// The role.
        role: String,
        /// The path as written.
        path: String,
        /// The reason.
        reason: String,
        /// The most similar existing file.
        suggestion: Option<String>,
    },
    /// The template is invalid.
    #[error("the prompt of `{role}` cannot be read{}: {reason}", line.map(|line| format!(" (its line {line})")).unwrap_or_default())]
    InvalidTemplate {
        /// The role.
        role: String,
        /// The reason.
        reason: String,
        /// The line of the prompt, from 1.
        line: Option<usize>,
    },
}

impl PromptFault {
    /// Returns the kind of failure.
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
