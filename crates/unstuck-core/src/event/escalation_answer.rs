//! The answers to an escalation.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An answer to an escalation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EscalationAnswer {
    /// Run the proposed action.
    Approve,
    /// Reject the proposed action and continue.
    Reject,
    /// Continue after a manual fix.
    Resolve,
    /// Retry with additional instructions.
    Retry,
    /// Retry with a stronger model.
    #[serde(rename = "escalate")]
    SwitchModel,
    /// Skip this step and continue.
    Skip,
    /// Abort the run.
    Abort,
}

impl EscalationAnswer {
    /// All answers.
    pub const ALL: [Self; 7] = [
        Self::Approve,
        Self::Reject,
        Self::Resolve,
        Self::Retry,
        Self::SwitchModel,
        Self::Skip,
        Self::Abort,
    ];

    /// Returns the wire name, which is also the CLI command.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reject => "reject",
            Self::Resolve => "resolve",
            Self::Retry => "retry",
            Self::SwitchModel => "escalate",
            Self::Skip => "skip",
            Self::Abort => "abort",
        }
    }

    /// Returns the method name in the event; a manual fix is `manual`.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Resolve => "manual",
            other => other.name(),
        }
    }

    /// Returns the answer with this name or method.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|answer| answer.name() == name || answer.method() == name)
    }

    /// Returns the key that gives this answer.
    pub const fn key(self) -> char {
        match self {
            Self::Approve => 'a',
            Self::Reject => 'r',
            Self::Resolve => 'd',
            Self::Retry => 't',
            Self::SwitchModel => 'e',
            Self::Skip => 's',
            Self::Abort => 'x',
        }
    }

    /// True if the subject of the escalation continues after this answer.
    pub const fn continues(self) -> bool {
        !matches!(self, Self::Skip | Self::Abort)
    }

    /// Returns the answer in the past tense.
    pub const fn past_tense(self) -> &'static str {
        match self {
            Self::Approve => "approved",
            Self::Reject => "rejected",
            Self::Resolve => "resolved manually",
            Self::Retry => "retried with a message",
            Self::SwitchModel => "switched to a stronger model",
            Self::Skip => "skipped",
            Self::Abort => "aborted",
        }
    }
}

impl fmt::Display for EscalationAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
