//! What a sandbox really confined.

use serde::{Deserialize, Serialize};

/// How much of the sandbox there was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfinementLevel {
    /// None.
    None,
    /// Some of it.
    Partial,
    /// All of it.
    Full,
}

impl ConfinementLevel {
    /// The word for it, as events have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Partial => "partial",
            Self::Full => "full",
        }
    }
}

/// What a sandbox really confined, and what it did not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfinementReport {
    /// How much there was.
    #[serde(rename = "confinement")]
    pub level: ConfinementLevel,
    /// What is missing for more, each a sentence without a full stop.
    pub missing: Vec<String>,
    /// What else is worth knowing, each a sentence without a full stop.
    pub notes: Vec<String>,
}

impl ConfinementReport {
    /// No sandbox, and why.
    pub fn none(why: impl Into<String>) -> Self {
        Self {
            level: ConfinementLevel::None,
            missing: vec![why.into()],
            notes: Vec::new(),
        }
    }

    /// One line for people: how much there is, and what is missing.
    ///
    /// ```
    /// use unstuck_repair::sandbox::ConfinementReport;
    ///
    /// assert_eq!(ConfinementReport::none("it is switched off").line(), "none: it is switched off");
    /// ```
    pub fn summary(&self) -> String {
        match (self.level, self.missing.is_empty()) {
            (confinement, true) => confinement.name().to_owned(),
            (confinement, false) => format!("{}: {}", confinement.name(), self.missing.join("; ")),
        }
    }
}
