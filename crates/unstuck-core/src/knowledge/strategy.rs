//! Recovery strategies, as data (`data/strategies.toml`).

use serde::{Deserialize, Serialize};

/// A recovery strategy.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Strategy {
    /// A short description, in the imperative.
    pub title: String,
    /// The changes to the next attempt; empty for a plain retry and for steps of tool calls.
    #[serde(default)]
    pub changes: Vec<AttemptChange>,
    /// Risk words by which a user may forbid it, such as `sudo`, `install`, `delete`, `network`.
    #[serde(default)]
    pub risks: Vec<String>,
    /// If set, a human has to do it.
    #[serde(default, alias = "asks")]
    pub requires_human: bool,
}

/// A change to the next attempt, as a strategy defines it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptChange {
    /// Adds the named prompt template.
    Prompt(String),
    /// Multiplies the time limit.
    Timeout(f64),
    /// Multiplies the maximum output length.
    OutputLimit(f64),
    /// Uses another model.
    Model(ReplacementModelChoice),
    /// Continues the same conversation or starts a new one.
    #[serde(rename = "session")]
    Conversation(ConversationMode),
    /// Runs a repair command approved by a human.
    Repair,
}

/// The choice of another model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplacementModelChoice {
    /// The next one up the ladder.
    Next,
    /// The next one with a larger context window.
    LargerContext,
    /// Another one at about the same price.
    Sibling,
}

/// The conversation of the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConversationMode {
    /// Resumes the failed one.
    Resume,
    /// Starts a new one with a summary of the old.
    Fresh,
}
