//! Prompt templates, and what can be wrong with them.

use serde::Deserialize;

/// A prompt cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// There is no template of this name.
    #[error("there is no prompt template `{name}`{}", suggestion.as_ref().map(|known| format!(", did you mean `{known}`?")).unwrap_or_default())]
    Unknown {
        /// What was asked for.
        name: String,
        /// The template with the nearest name.
        suggestion: Option<String>,
    },
    /// The template has a placeholder for which there is no value.
    #[error("the prompt template `{template}` needs `{placeholder}`, which has no value")]
    MissingPlaceholder {
        /// The template.
        template: String,
        /// The placeholder.
        placeholder: String,
    },
    /// The template is not one.
    #[error("the prompt template `{template}` is broken: {reason}")]
    Broken {
        /// The template.
        template: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// Where an addition goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotePosition {
    /// In front of the prompt.
    #[default]
    Front,
    /// Before the context marker if there is exactly one, else in front.
    Context,
}

/// One prompt template.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptTemplate {
    /// What using it does, in words for a person, such as `simplifying the prompt`.
    #[serde(default)]
    #[serde(rename = "doing")]
    pub description: Option<String>,
    /// Where the addition goes.
    #[serde(default)]
    #[serde(rename = "place")]
    pub position: NotePosition,
    /// The text, with placeholders.
    pub text: String,
}
