//! The arguments of the scripted agent.

use std::time::Duration;

use clap::{Parser, ValueEnum};

/// Sends one prompt to an LLM API and prints the answer
#[derive(Debug, Clone, Parser)]
#[command(name = "agent")]
pub struct AgentArgs {
    /// What the agent shall do
    #[arg(short = 'p', long, value_name = "TEXT")]
    pub prompt: String,

    /// The model to ask
    #[arg(long, value_name = "NAME", default_value = "claude-sonnet-4-5")]
    pub model: String,

    /// Go on with this session
    #[arg(long, value_name = "ID")]
    pub resume: Option<String>,

    /// Where the API is, such as http://127.0.0.1:8080
    #[arg(long, value_name = "URL", env = "FAULTS_API_URL")]
    pub api: String,

    /// How to print the answer
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub output_format: OutputFormat,

    /// Give up after so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub timeout: u64,
}

/// How the agent prints its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum OutputFormat {
    /// The text alone.
    #[default]
    Text,
    /// One JSON object with the same fields as Claude Code's.
    Json,
}

impl AgentArgs {
    pub(super) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}
