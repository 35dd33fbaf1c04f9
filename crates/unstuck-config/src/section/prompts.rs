//! `[prompts.<name>]`: prompt templates of the project.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[prompts.<name>]`: a text added to the prompt of a retry.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a string or a table")]
pub struct PromptNoteSection {
    /// Text; variables are `error`, `kind`, `output`, `sections` and others.
    pub text: Option<String>,
    /// File with the text, relative to the directory of this file.
    #[schemars(with = "Option<String>")]
    pub file: Option<PathBuf>,
    /// Position; `front` by default.
    #[serde(rename = "position")]
    pub place: PromptNotePlacementSetting,
}

/// The position of an addition to a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptNotePlacementSetting {
    /// In front of the prompt.
    #[default]
    Front,
    /// Before the context marker if there is exactly one, else in front.
    Context,
}
