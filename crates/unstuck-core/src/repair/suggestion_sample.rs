//! A sample of the repair files: a failure in a project and the expected suggestion.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// A failure in a project and the expected suggestion.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SuggestionSample {
    /// The tool that failed.
    pub(super) tool: String,
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// The files of the project.
    pub(super) files: BTreeSet<String>,
    /// Empty directories.
    #[serde(alias = "folders")]
    pub(super) directories: BTreeSet<String>,
    /// Contents of files.
    pub(super) texts: BTreeMap<String, String>,
    /// Dangling links.
    pub(super) dangling: BTreeSet<String>,
    /// Links within the project and their targets.
    pub(super) links: BTreeMap<String, String>,
    pub(super) crlf: BTreeSet<String>,
    pub(super) executable: BTreeSet<String>,
    pub(super) lfs_pointers: BTreeSet<String>,
    pub(super) submodules: BTreeSet<String>,
    pub(super) in_use: BTreeSet<String>,
    pub(super) scripts: BTreeMap<String, BTreeMap<String, String>>,
    /// Pid files, and whether their process is alive.
    pub(super) pids: BTreeMap<String, bool>,
    /// Ports in use: true if held by a process of the project.
    pub(super) ports: BTreeMap<String, bool>,
    /// The owner's entries.
    pub(super) entries: Vec<String>,
    /// The entry that must be suggested first.
    pub(super) first: Option<String>,
    /// The built-in command that must be suggested first.
    pub(super) built_in: Option<String>,
    /// If set, nothing may be suggested; with `built_in`, none of the owner's entries.
    pub(super) nothing: bool,
    /// The rule that must refuse it.
    pub(super) refused: Option<String>,
}
