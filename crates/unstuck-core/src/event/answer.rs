//! What a person can answer.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a person can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EscalationAnswer {
    /// Do what is proposed.
    Approve,
    /// Do not do it, and go on.
    Reject,
    /// It was seen to by hand: go on.
    Resolve,
    /// Again, with their words.
    Retry,
    /// Again, with a stronger model.
    #[serde(rename = "escalate")]
    SwitchModel,
    /// Leave this part out, and go on without it.
    Skip,
    /// End the run.
    Abort,
}

impl EscalationAnswer {
    /// Every answer.
    pub const ALL: [Self; 7] = [
        Self::Approve,
        Self::Reject,
        Self::Resolve,
        Self::Retry,
        Self::SwitchModel,
        Self::Skip,
        Self::Abort,
    ];

    /// The name used on every wire, which is also the command.
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

    /// How the event says it: what was seen to by hand is `manual`.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Resolve => "manual",
            other => other.name(),
        }
    }

    /// The answer of that name, or of that method.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|answer| answer.name() == name || answer.method() == name)
    }

    /// The key that gives it.
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

    /// Whether the work goes on afterwards with what the question is about.
    pub const fn continues(self) -> bool {
        !matches!(self, Self::Skip | Self::Abort)
    }

    /// What was answered, in the past.
    pub const fn past_tense(self) -> &'static str {
        match self {
            Self::Approve => "approved",
            Self::Reject => "rejected",
            Self::Resolve => "resolved by hand",
            Self::Retry => "retried with words",
            Self::SwitchModel => "given a stronger model",
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
