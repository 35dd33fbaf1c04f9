//! Errors of a role's prompt.

use unstuck_core::FailureKind;

/// The reason why a role's prompt cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RolePromptError {
    /// A template variable is undefined.
    #[error("the prompt of `{role}` uses the undefined variable `{{{{ {placeholder} }}}}`{}", did_you_mean(.suggestion))]
    UnknownPlaceholder {
        /// The role.
        role: String,
        /// The undefined variable.
        placeholder: String,
        /// The most similar defined variable.
        suggestion: Option<String>,
    },
    /// The prompt uses the output of an undefined role.
    #[error("the prompt of `{role}` uses the output of the unknown role `{other}`{}", suggestion_or_list(.suggestion, .known))]
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
        "the prompt of `{role}` uses `outputs.{other}`, where `-` means minus; use `outputs[\"{other}\"]` instead"
    )]
    HyphenInName {
        /// The role.
        role: String,
        /// The role whose output it uses.
        other: String,
    },
    /// The prompt uses the output of a role that may not have run yet.
    #[error(
        "the prompt of `{role}` uses the output of `{other}`, which may not have run yet; add `{other}` to the `needs` of `{role}`"
    )]
    MissingDependency {
        /// The role.
        role: String,
        /// The role whose output it uses.
        other: String,
    },
    /// A file cannot be included.
    #[error("the prompt of `{role}` cannot include the file `{path}`: {reason}{}", did_you_mean(.suggestion))]
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
    #[error("the prompt of `{role}` is not a valid template{}: {reason}", line.map(|line| format!(" (line {line})")).unwrap_or_default())]
    InvalidTemplate {
        /// The role.
        role: String,
        /// The reason.
        reason: String,
        /// The line of the prompt, from 1.
        line: Option<usize>,
    },
}

impl RolePromptError {
    /// Returns the kind of failure.
    pub fn kind(&self) -> FailureKind {
        FailureKind::ContextError
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
        (None, [one]) => format!("; the only other role is `{one}`"),
        (None, known) => format!("; other roles: {}", known.join(", ")),
        (Some(_), _) => did_you_mean(suggestion),
    }
}
