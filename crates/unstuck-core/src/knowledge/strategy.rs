//! Strategies: the ways to recover, as data (`data/strategies.toml`).

use serde::{Deserialize, Serialize};

/// One way to recover.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Strategy {
    /// What it does, in a few words, in the imperative.
    pub title: String,
    /// What it changes about the next attempt; empty for "the same again" and for steps of tool calls.
    #[serde(default)]
    pub changes: Vec<AttemptChange>,
    /// Words that a user may forbid it by, such as `sudo`, `install`, `delete`, `network`.
    #[serde(default)]
    pub risks: Vec<String>,
    /// Whether a person has to do it.
    #[serde(default)]
    #[serde(rename = "asks")]
    pub asks_person: bool,
}

/// One thing that a strategy changes about the next attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptChange {
    /// Add the named prompt template.
    Prompt(String),
    /// Multiply the time allowed.
    Timeout(f64),
    /// Multiply the allowed length of the output.
    OutputLimit(f64),
    /// Use another model.
    Model(ModelChoice),
    /// Go on in the same conversation or start a new one.
    #[serde(rename = "session")]
    Conversation(ConversationMode),
    /// Run a repair command that a human allowed.
    Repair,
}

/// Which other model to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelChoice {
    /// The next one up the ladder.
    Next,
    /// The next one with a larger context window.
    LargerContext,
    /// Another one of about the same price.
    Sibling,
}

/// Which conversation the next attempt belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConversationMode {
    /// The one that failed, resumed.
    Resume,
    /// A new one that starts with a summary of the old.
    Fresh,
}
