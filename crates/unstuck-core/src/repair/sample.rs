//! A sample of the repair files: a failure in a project, and what must be offered for it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// A failure in a project, and what must be offered for it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sample {
    /// The tool that failed.
    pub(super) tool: String,
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// The files of the project.
    pub(super) files: BTreeSet<String>,
    /// Empty folders.
    pub(super) folders: BTreeSet<String>,
    /// What files contain.
    pub(super) texts: BTreeMap<String, String>,
    /// Links that lead nowhere.
    pub(super) dangling: BTreeSet<String>,
    /// Links within the project, each with where it leads.
    pub(super) links: BTreeMap<String, String>,
    pub(super) crlf: BTreeSet<String>,
    pub(super) executable: BTreeSet<String>,
    pub(super) lfs_pointers: BTreeSet<String>,
    pub(super) submodules: BTreeSet<String>,
    pub(super) in_use: BTreeSet<String>,
    pub(super) scripts: BTreeMap<String, BTreeMap<String, String>>,
    /// Files with the number of a process that lives, or does not.
    pub(super) pids: BTreeMap<String, bool>,
    /// Ports that are held by a process of the project, or of somebody else.
    pub(super) ports: BTreeMap<String, bool>,
    /// The owner's list.
    pub(super) entries: Vec<String>,
    /// The entry that must be offered first.
    pub(super) first: Option<String>,
    /// The built-in command that must be offered first.
    pub(super) built_in: Option<String>,
    /// Whether nothing may be offered; with `built_in` nothing of the owner's list.
    pub(super) nothing: bool,
    /// The rule that must forbid it.
    pub(super) refused: Option<String>,
}
