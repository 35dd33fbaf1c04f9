//! The confinement that a sandbox actually achieved.

use serde::{Deserialize, Serialize};

/// The level of confinement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfinementLevel {
    /// No confinement.
    None,
    /// Part of the confinement.
    Partial,
    /// Full confinement.
    Full,
}

impl ConfinementLevel {
    /// Returns the name used in events.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Partial => "partial",
            Self::Full => "full",
        }
    }
}

/// The confinement that a sandbox actually achieved, and its gaps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfinementReport {
    /// Level of confinement.
    #[serde(alias = "confinement")]
    pub level: ConfinementLevel,
    /// Missing parts, each a sentence without a full stop.
    pub missing: Vec<String>,
    /// Other remarks, each a sentence without a full stop.
    pub notes: Vec<String>,
}

impl ConfinementReport {
    /// Returns a report of no confinement with its reason.
    pub fn none(why: impl Into<String>) -> Self {
        Self {
            level: ConfinementLevel::None,
            missing: vec![why.into()],
            notes: Vec::new(),
        }
    }

    /// Returns one line for display: the level and the missing parts.
    ///
    /// ```
    /// use unstuck_repair::sandbox::ConfinementReport;
    ///
    /// assert_eq!(ConfinementReport::none("disabled by configuration").summary(), "none: disabled by configuration");
    /// ```
    pub fn summary(&self) -> String {
        match (self.level, self.missing.is_empty()) {
            (confinement, true) => confinement.name().to_owned(),
            (confinement, false) => format!("{}: {}", confinement.name(), self.missing.join("; ")),
        }
    }
}
