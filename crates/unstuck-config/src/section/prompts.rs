//! `[prompts.<name>]`: prompt templates of the project.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[prompts.<name>]`: what is added to a prompt before it is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a text or a table")]
pub struct PromptSection {
    /// The text; placeholders are `error`, `kind`, `output`, `sections` and the like.
    pub text: Option<String>,
    /// A file with the text, from the folder of this file.
    #[schemars(with = "Option<String>")]
    pub file: Option<PathBuf>,
    /// Where it goes; in front of the prompt by default.
    #[serde(rename = "position")]
    pub place: PromptPlace,
}

/// Where an addition to a prompt goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptPlace {
    /// In front of it.
    #[default]
    Front,
    /// Before its context marker if there is exactly one, else in front.
    Context,
}
