//! What lies where in a project, and what goes by which name.

use serde::Deserialize;

/// A folder or file that a project makes itself, and can make again.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::repair) struct Place {
    /// Names of folders on the way, or patterns of the last part.
    pub(in crate::repair) names: Vec<String>,
    pub(in crate::repair) holds: Holds,
    #[serde(default)]
    pub(in crate::repair) ecosystem: Option<String>,
    /// Files next to it of which one must be there.
    #[serde(default)]
    pub(in crate::repair) beside: Vec<String>,
    /// Whether the next build or run makes it again by itself.
    #[serde(default)]
    pub(in crate::repair) remade: bool,
}

/// What a place holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::repair) enum Holds {
    /// Installed packages.
    Packages,
    /// What a build makes.
    Output,
    /// What a generator makes.
    Generated,
    /// What only saves time.
    Cache,
    /// Marks of a running process: locks, numbers of processes, sockets.
    Marks,
}

/// A service that programs connect to.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::repair) struct ServiceName {
    pub(in crate::repair) names: Vec<String>,
    pub(in crate::repair) ports: Vec<u16>,
}

/// A module whose package has another name.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::repair) struct Alias {
    pub(in crate::repair) ecosystem: String,
    pub(in crate::repair) module: String,
    pub(in crate::repair) package: String,
}
