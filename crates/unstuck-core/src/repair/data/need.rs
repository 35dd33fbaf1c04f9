//! Failures and what they need.

use serde::Deserialize;

use crate::failure::Kind;
use crate::guard::{Confidence, RepairCategory};
use crate::repair::pattern::Pattern;

/// A failure and what it needs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::repair) struct NeedRule {
    pub(in crate::repair) id: String,
    pub(in crate::repair) needs: Lack,
    #[serde(default)]
    pub(in crate::repair) state: State,
    #[serde(default)]
    pub(in crate::repair) ecosystem: Option<String>,
    /// The kinds of failure for which it may be used; empty for all that may be repaired.
    #[serde(default)]
    pub(in crate::repair) kinds: Vec<Kind>,
    /// Patterns of which one must match; the groups `path`, `name` and `port` say what it is about.
    pub(in crate::repair) any: Vec<Pattern>,
    #[serde(default)]
    pub(in crate::repair) all: Vec<Pattern>,
    #[serde(default)]
    pub(in crate::repair) none: Vec<Pattern>,
    /// The path that it is about, where the text does not say it.
    #[serde(default)]
    pub(in crate::repair) path: Option<String>,
    /// Whether every path of the matching line may be the one that it is about.
    #[serde(default)]
    pub(in crate::repair) mentioned: bool,
    /// Files of which one must be there.
    #[serde(default)]
    pub(in crate::repair) has: Vec<String>,
    /// Files that must not be there.
    #[serde(default)]
    pub(in crate::repair) lacks: Vec<String>,
    /// Ends of file names: the project must have a file that is called like the last part of the name.
    #[serde(default)]
    pub(in crate::repair) sources: Vec<String>,
    /// What must hold about the path.
    #[serde(default)]
    pub(in crate::repair) path_is: Vec<PathIs>,
    /// Things by name that are needed.
    #[serde(default)]
    pub(in crate::repair) things: Vec<String>,
    pub(in crate::repair) category: RepairCategory,
    #[serde(default = "high")]
    pub(in crate::repair) confidence: Confidence,
    /// Of several needs the one with the higher number counts more.
    #[serde(default = "middle")]
    pub(in crate::repair) priority: i32,
    pub(in crate::repair) cause: String,
    pub(in crate::repair) outcome: String,
    /// Built-in commands beside those that follow from the need.
    #[serde(default)]
    pub(in crate::repair) command: Vec<CommandTemplate>,
}

fn high() -> Confidence {
    Confidence::High
}

fn middle() -> i32 {
    50
}

/// A built-in command.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::repair) struct CommandTemplate {
    /// The command; `{{ path }}`, `{{ folder }}`, `{{ name }}` and `{{ port }}` are filled in, quoted for the shell.
    pub(in crate::repair) run: String,
    /// Files of which one must be there.
    #[serde(default)]
    pub(in crate::repair) has: Vec<String>,
}

/// What a failure lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::repair) enum Lack {
    /// Packages of an ecosystem.
    Packages,
    /// What a build makes.
    Output,
    /// What a generator makes.
    Generated,
    /// A file that is missing.
    File,
    /// A folder that is missing.
    Folder,
    /// A database that is brought in line.
    Schema,
    /// A file that should be gone.
    Gone,
    /// A port that is free.
    Port,
    /// A service that runs.
    Service,
    /// A variable of the environment.
    Variable,
    /// Rights on a file.
    Mode,
    /// Ends of lines that the system understands.
    LineEnds,
    /// Something that is known by a name.
    Thing,
    /// A tool.
    Tool,
    /// A cache that is thrown away.
    Cache,
    /// Room on the disk.
    Room,
    /// Told by the path: packages, output, generated code or any file.
    ByPlace,
}

/// In what state it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::repair) enum State {
    /// Not there.
    #[default]
    Missing,
    /// There, but damaged or of the wrong version.
    Broken,
    /// Older than what is wanted.
    Outdated,
    /// The lockfile does not say what the wishes say.
    Drifted,
    /// The wishes contradict each other.
    Unresolved,
    /// Compiled for another runtime.
    Native,
}

/// What must hold about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::repair) enum PathIs {
    Missing,
    There,
    File,
    Folder,
    EmptyFolder,
    Dangling,
    Crlf,
    NotExecutable,
    LfsPointer,
    NotInUse,
    InSubmodule,
    StartsWithMark,
}
