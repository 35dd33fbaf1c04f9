//! Permission scopes of tokens and logins.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A permission scope; each includes those before it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PermissionScope {
    /// View everything.
    Read,
    /// Answer escalations, retry, switch models and stop runs.
    Answer,
    /// Change policies and settings.
    Admin,
}

impl PermissionScope {
    /// All scopes.
    pub const ALL: [Self; 3] = [Self::Read, Self::Answer, Self::Admin];

    /// Returns the wire name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Answer => "answer",
            Self::Admin => "admin",
        }
    }

    /// Parses a scope from its wire name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

impl std::fmt::Display for PermissionScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
