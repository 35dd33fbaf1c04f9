//! Templates of the note that is added to an agent's prompt for a retry, and their errors.

use serde::Deserialize;

/// An error that prevents adding a note to a prompt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptNoteError {
    /// There is no template with this name.
    #[error("unknown prompt template `{name}`{}", suggestion.as_ref().map(|known| format!(", did you mean `{known}`?")).unwrap_or_default())]
    Unknown {
        /// The requested name.
        name: String,
        /// The most similar template name.
        suggestion: Option<String>,
    },
    /// The template uses an undefined variable.
    #[error("undefined variable `{placeholder}` in prompt template `{template}`")]
    MissingPlaceholder {
        /// The name of the template.
        template: String,
        /// The variable.
        placeholder: String,
    },
    /// The template is invalid.
    #[error("invalid prompt template `{template}`: {reason}")]
    Broken {
        /// The name of the template.
        template: String,
        /// The error.
        reason: String,
    },
}

/// The position of the note in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptNotePlacement {
    /// In front of the prompt.
    #[default]
    Front,
    /// Before the context marker if there is exactly one, otherwise in front.
    Context,
}

/// A template of the note that is added to an agent's prompt for a retry.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptNoteTemplate {
    /// The description of its effect, as text for humans, such as `simplifying the prompt`.
    #[serde(default)]
    pub description: Option<String>,
    /// The position of the addition.
    #[serde(default)]
    pub position: PromptNotePlacement,
    /// The text, with variables.
    pub text: String,
}
