//! Package managers: how a project shows that it uses one, and what it is told to do.

use serde::Deserialize;

use super::need::State;

/// A package manager: how a project shows that it uses it, and what it is told to do.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::repair) struct Manager {
    pub(in crate::repair) name: String,
    pub(in crate::repair) ecosystem: String,
    /// The program to run; the name where nothing is said.
    #[serde(default)]
    pub(in crate::repair) program: Option<String>,
    /// Files that say what is wanted; one of them must be there.
    #[serde(default)]
    pub(in crate::repair) manifests: Vec<String>,
    /// Files that only this manager writes.
    #[serde(default)]
    pub(in crate::repair) locks: Vec<String>,
    /// Folders that hold the packages.
    #[serde(default)]
    pub(in crate::repair) folders: Vec<String>,
    /// Whether it installs into the folder that its program lies in.
    #[serde(default)]
    pub(in crate::repair) by_path: bool,
    /// Whether it is taken where nothing tells the managers of the ecosystem apart.
    #[serde(default)]
    pub(in crate::repair) usual: bool,
    /// What is built in: the command for each state of the packages.
    #[serde(default)]
    pub(in crate::repair) command: Vec<StateCommand>,
}

/// The command for packages in some states.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::repair) struct StateCommand {
    pub(in crate::repair) states: Vec<State>,
    pub(in crate::repair) run: String,
    /// Files that must be there; any of them.
    #[serde(default)]
    pub(in crate::repair) has: Vec<String>,
    /// Files that must not be there.
    #[serde(default)]
    pub(in crate::repair) lacks: Vec<String>,
}
