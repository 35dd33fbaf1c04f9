//! Templates of the steps of strategies (`data/steps.toml`, `data/alternatives.toml`).
//!
//! A strategy has variants; the first whose condition holds, whose programs and tools exist and that nobody
//! forbade is taken. Templates are minijinja; what is put into a `command` is quoted for the shell by itself.

use std::collections::BTreeMap;

use serde::Deserialize;

/// One way to do a strategy by tool calls.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StrategyVariant {
    /// The strategy that it does.
    pub strategy: String,
    /// What it is called, to tell it from its siblings.
    pub id: String,
    /// The programs whose call it replaces; empty means any.
    #[serde(default)]
    pub programs: Vec<String>,
    /// A condition over the facts of the failed call; none means always.
    pub when: Option<String>,
    /// The programs that it runs and that must exist.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Words that a user may forbid it by.
    #[serde(default)]
    pub risks: Vec<String>,
    /// What to do, in order.
    #[serde(rename = "step")]
    pub steps: Vec<StepTemplate>,
}

/// One tool call to be filled with the facts of the failed call.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepTemplate {
    /// What it does, in the imperative.
    pub action: String,
    /// The kind of tool that it needs; a `command` needs a shell.
    #[serde(default)]
    pub role: ToolRole,
    /// The shell command.
    pub command: Option<String>,
    /// The arguments of the tool, by their canonical names.
    #[serde(default)]
    pub args: BTreeMap<String, String>,
    /// The fact that holds all arguments of the call.
    #[serde(rename = "with")]
    pub args_var: Option<String>,
    /// The fact that lists what to repeat this step for; each is `item` in the templates.
    pub each: Option<String>,
    /// What shows that it worked.
    pub outcome: String,
}

/// What a tool is for, whatever an agent calls it.
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
    /// Fetches an address.
    Http,
    /// The tool of the failed call.
    Same,
    /// Another tool that was found for the failed call.
    Substitute,
    /// The supervisor waits.
    Wait,
    /// A person is asked.
    Ask,
}

/// A tool that some agent has.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownTool {
    /// What the agent calls it.
    pub name: String,
    /// What it is for.
    pub role: ToolRole,
    /// Canonical names of arguments and what this tool calls them, where they differ.
    #[serde(default)]
    pub args: BTreeMap<String, String>,
    /// How long a call may take unless it says otherwise, in milliseconds.
    pub timeout_ms: Option<u64>,
}

impl KnownTool {
    /// What this tool calls the argument.
    pub fn own_arg_name<'a>(&'a self, canonical: &'a str) -> &'a str {
        self.args.get(canonical).map_or(canonical, String::as_str)
    }

    /// What the argument that this tool calls `rank_name` is called canonically.
    pub fn canonical_arg_name<'a>(&'a self, name: &'a str) -> &'a str {
        self.args
            .iter()
            .find(|(_, known)| *known == name)
            .map_or(name, |(canonical, _)| canonical)
    }
}
