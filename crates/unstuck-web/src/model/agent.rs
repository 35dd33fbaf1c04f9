//! An agent that can be run.

use serde::Serialize;
use unstuck_core::agent::{self, AgentCommandInputs, PromptChannel};
use unstuck_core::decision::RetryChangeCapability;
use utoipa::ToSchema;

/// An agent that can be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// Id of the agent.
    pub id: String,
    /// Display name.
    pub title: String,
    /// True if its program is installed; null if any program can serve or it was not checked.
    pub installed: Option<bool>,
    /// Path of its program.
    pub path: Option<String>,
    /// Installed version.
    pub version: Option<String>,
    /// How the prompt is passed: `stdin`, `argument` or `file`.
    pub prompt: String,
    /// True if it can resume a conversation.
    pub resumes: bool,
    /// True if its model can be chosen.
    pub model: bool,
    /// True if its tools can be restricted.
    pub tools: bool,
}

impl From<&agent::Agent> for Agent {
    /// Returns the static description of an agent, without checking what is installed.
    fn from(known: &agent::Agent) -> Self {
        let can = known.call_capabilities(&AgentCommandInputs::default());
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
            resumes: can.has(RetryChangeCapability::Resume),
            model: can.has(RetryChangeCapability::Model),
            tools: known.supports_tools(&[]),
        }
    }
}
