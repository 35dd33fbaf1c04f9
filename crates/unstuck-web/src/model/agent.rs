//! An agent that can be run.

use serde::Serialize;
use unstuck_core::agent::{self, CommandInputs, PromptChannel};
use unstuck_core::decision::Capability;
use utoipa::ToSchema;

/// An agent that can be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub title: String,
    /// Whether its program is here; null where any program can be it, or nobody has looked.
    pub installed: Option<bool>,
    /// Where its program is.
    pub path: Option<String>,
    /// Which version it is.
    pub version: Option<String>,
    /// How it gets its prompt: `stdin`, `argument` or `file`.
    pub prompt: String,
    /// Whether a conversation can be gone on with.
    pub resumes: bool,
    /// Whether it can be told which model to use.
    pub model: bool,
    /// Whether it can be told which tools it may use.
    pub tools: bool,
}

impl From<&agent::Agent> for Agent {
    /// What is known of it, without a look at what is installed.
    fn from(known: &agent::Agent) -> Self {
        let can = known.call_capabilities(&CommandInputs::default());
        let prompt = match known.prompt_channel(&[]) {
            PromptChannel::Stdin => "stdin",
            PromptChannel::Argument => "argument",
            PromptChannel::File => "file",
        };
        Self {
            id: known.id().to_owned(),
            title: known.title().to_owned(),
            installed: None,
            path: None,
            version: None,
            prompt: prompt.to_owned(),
            resumes: can.has(Capability::Resume),
            model: can.has(Capability::Model),
            tools: known.supports_tools(&[]),
        }
    }
}
