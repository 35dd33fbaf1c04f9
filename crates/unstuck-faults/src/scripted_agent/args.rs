//! The arguments of the scripted agent.

use std::time::Duration;

use clap::{Parser, ValueEnum};

/// Send one prompt to an LLM API and print the answer
#[derive(Debug, Clone, Parser)]
#[command(name = "agent")]
pub struct ScriptedAgentArgs {
    /// Prompt for the agent
    #[arg(short = 'p', long, value_name = "TEXT")]
    pub prompt: String,

    /// Model to use
    #[arg(long, value_name = "NAME", default_value = "claude-sonnet-4-5")]
    pub model: String,

    /// Resume this session
    #[arg(long, value_name = "ID")]
    pub resume: Option<String>,

    /// Base URL of the API, such as http://127.0.0.1:8080
    #[arg(long, value_name = "URL", env = "FAULTS_API_URL")]
    pub api: String,

    /// Output format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output_format: ScriptedAgentOutputFormat,

    /// Request timeout in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub timeout: u64,
}

/// The output format of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ScriptedAgentOutputFormat {
    /// Text only
    #[default]
    Text,
    /// One JSON object with the same fields as Claude Code's
    Json,
}

impl ScriptedAgentArgs {
    pub(super) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}
