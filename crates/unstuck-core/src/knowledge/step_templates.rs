//! Templates of the steps of strategies (`data/steps.toml`, `data/alternatives.toml`).
//!
//! A strategy has variants; the first is used whose condition holds, whose programs and tools exist and that is not
//! forbidden. Templates are minijinja; values inserted into a `command` are quoted for the shell automatically.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A variant of a strategy that uses tool calls.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCallStrategyVariant {
    /// The strategy it belongs to.
    pub strategy: String,
    /// The name that distinguishes it from other variants.
    pub id: String,
    /// The programs whose call it replaces; empty means any.
    #[serde(default)]
    pub programs: Vec<String>,
    /// A condition over the variables of the failed call; none means always.
    pub when: Option<String>,
    /// The programs it runs, which must exist.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Risk words by which a user may forbid it.
    #[serde(default)]
    pub risks: Vec<String>,
    /// The steps, in order.
    #[serde(rename = "step")]
    pub steps: Vec<ToolCallTemplate>,
}

/// A tool call template, filled with the variables of the failed call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCallTemplate {
    /// A description, in the imperative.
    pub action: String,
    /// The required kind of tool; a `command` needs a shell.
    #[serde(default)]
    pub role: ToolRole,
    /// The shell command.
    pub command: Option<String>,
    /// The arguments of the tool, by their canonical names.
    #[serde(default)]
    pub args: BTreeMap<String, String>,
    /// The variable that holds all arguments of the call.
    #[serde(rename = "with")]
    pub args_var: Option<String>,
    /// The variable that lists the repetitions of this step; each is `item` in the templates.
    pub each: Option<String>,
    /// The sign of success.
    pub outcome: String,
}

/// The purpose of a tool, whatever an agent calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolRole {
    /// Runs a shell command.
    #[default]
    Shell,
    /// Reads a file.
    ReadFile,
    /// Lists a directory.
    ReadDir,
    /// Writes a file.
    WriteFile,
    /// Searches in files.
    Search,
    /// Fetches a URL.
    Http,
    /// The tool of the failed call.
    Same,
    /// A substitute found for the failed call's tool.
    Substitute,
    /// The supervisor waits.
    Wait,
    /// Asks a human.
    Ask,
}

/// A known tool of some agent.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownAgentTool {
    /// The agent's name for it.
    pub name: String,
    /// Its purpose.
    pub role: ToolRole,
    /// Canonical names of arguments and the tool's own names, where they differ.
    #[serde(default)]
    pub args: BTreeMap<String, String>,
    /// The default time limit of a call, in milliseconds.
    pub timeout_ms: Option<u64>,
}

impl KnownAgentTool {
    /// Returns the tool's own name of an argument.
    pub fn own_arg_name<'a>(&'a self, canonical: &'a str) -> &'a str {
        self.args.get(canonical).map_or(canonical, String::as_str)
    }

    /// Returns the canonical name of an argument.
    pub fn canonical_arg_name<'a>(&'a self, name: &'a str) -> &'a str {
        self.args
            .iter()
            .find(|(_, known)| *known == name)
            .map_or(name, |(canonical, _)| canonical)
    }
}
