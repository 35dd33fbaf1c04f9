//! Prompt templates and their errors.

use serde::Deserialize;

/// A prompt could not be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// There is no template with this name.
    #[error("there is no prompt template `{name}`{}", suggestion.as_ref().map(|known| format!(", did you mean `{known}`?")).unwrap_or_default())]
    Unknown {
        /// The requested name.
        name: String,
        /// The most similar template name.
        suggestion: Option<String>,
    },
    /// The template uses an undefined variable.
    #[error("the prompt template `{template}` needs `{placeholder}`, which has no value")]
    MissingPlaceholder {
        /// The name of the template.
        template: String,
        /// The variable.
        placeholder: String,
    },
    /// The template is invalid.
    #[error("the prompt template `{template}` is broken: {reason}")]
    Broken {
        /// The name of the template.
        template: String,
        /// The error.
        reason: String,
    },
}

/// The position of an addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotePosition {
    /// In front of the prompt.
    #[default]
    Front,
    /// Before the context marker if there is exactly one, otherwise in front.
    Context,
}

/// A prompt template.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptTemplate {
    /// The description of its effect, as text for people, such as `simplifying the prompt`.
    #[serde(default)]
    #[serde(rename = "doing")]
    pub description: Option<String>,
    /// The position of the addition.
    #[serde(default)]
    #[serde(rename = "place")]
    pub position: NotePosition,
    /// The text, with variables.
    pub text: String,
}
