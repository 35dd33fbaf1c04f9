//! Programs, and what their calls do.

use serde::Deserialize;

/// A program, and what its calls do.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::repair) struct Program {
    pub(in crate::repair) names: Vec<String>,
    #[serde(default)]
    pub(in crate::repair) manager: Option<String>,
    #[serde(default)]
    pub(in crate::repair) ecosystem: Option<String>,
    /// Whether every shell has it built in.
    #[serde(default)]
    pub(in crate::repair) builtin: bool,
    /// Whether the files that it runs are scripts of a shell.
    #[serde(default)]
    pub(in crate::repair) shell: bool,
    /// Files of which the project must have one, in whatever folder.
    #[serde(default)]
    pub(in crate::repair) wants: Vec<String>,
    /// Options whose value is the next word.
    #[serde(default)]
    pub(in crate::repair) valued: Vec<String>,
    /// Options whose value is the folder to work in.
    #[serde(default)]
    pub(in crate::repair) folder: Vec<String>,
    /// Options and operands that mean: exactly what the lockfile says.
    #[serde(default)]
    pub(in crate::repair) frozen: Vec<String>,
    /// Options that mean: without the network.
    #[serde(default)]
    pub(in crate::repair) offline: Vec<String>,
    /// Options that mean: although the wishes contradict each other.
    #[serde(default)]
    pub(in crate::repair) loose: Vec<String>,
    /// Options that mean: again from nothing.
    #[serde(default)]
    pub(in crate::repair) fresh: Vec<String>,
    #[serde(default)]
    pub(in crate::repair) does: Vec<Does>,
}

/// What one way to call a program does.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(in crate::repair) struct Does {
    /// The first operands, alternatives parted by `|`; empty for any call.
    pub(in crate::repair) verb: String,
    /// Options of which one must be given.
    pub(in crate::repair) with: Vec<String>,
    /// Options and texts that must not be given.
    pub(in crate::repair) without: Vec<String>,
    pub(in crate::repair) works: Vec<Work>,
    /// Which operands it works on.
    pub(in crate::repair) of: Operands,
    /// Options whose values it works on, too.
    pub(in crate::repair) of_options: Vec<String>,
    /// Whether what it works on are names that may stand in any folder.
    pub(in crate::repair) anywhere: bool,
    /// Paths that it works on without naming them.
    pub(in crate::repair) places: Vec<String>,
    /// Other things that it works on, by name.
    pub(in crate::repair) things: Vec<String>,
    /// Which operands must exist beforehand.
    pub(in crate::repair) reads: Operands,
    /// Options whose values must exist beforehand.
    pub(in crate::repair) reads_options: Vec<String>,
    /// Whether operands are names of packages.
    pub(in crate::repair) named: bool,
    /// The runner whose scripts the operands name.
    pub(in crate::repair) script: Option<String>,
    /// Whether the verb itself is the name of the script.
    pub(in crate::repair) verb_is_script: bool,
    /// Whether each operand names a script.
    pub(in crate::repair) each: bool,
    /// Whether the operands tell by their words what it does.
    pub(in crate::repair) by_name: bool,
    /// Whether the first operand is a file of the project that is run.
    pub(in crate::repair) file: bool,
    /// Whether the rest is another command, after so many operands.
    pub(in crate::repair) launches: Option<usize>,
    /// Whether the verb belongs to the command that is launched.
    pub(in crate::repair) keeps_verb: bool,
    /// Whether it finds the program itself, wherever that is.
    pub(in crate::repair) finds: bool,
    /// The option whose value is the program that is launched.
    pub(in crate::repair) launch_option: Option<String>,
    /// The option whose value is a shell command.
    pub(in crate::repair) shell_option: Option<String>,
    pub(in crate::repair) frozen: bool,
    pub(in crate::repair) fresh: bool,
}

/// Which operands of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::repair) enum Operands {
    #[default]
    None,
    All,
    First,
    Last,
    AfterFirst,
    ButLast,
}

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::repair) enum Work {
    /// Installs packages.
    Install,
    /// Brings the lockfile in line with the wishes.
    Lock,
    /// Takes newer versions than the lockfile says.
    Upgrade,
    /// Compiles installed packages anew.
    Rebuild,
    /// Builds the project.
    Build,
    /// Generates code or data.
    Generate,
    /// Brings a database in line.
    Migrate,
    /// Removes what was built or cached.
    Clean,
    /// Removes files.
    Remove,
    /// Makes a folder.
    MakeFolder,
    /// Makes a file or link.
    Create,
    /// Changes who may do what with a file.
    Mode,
    /// Changes the ends of lines.
    LineEnds,
    /// Stops a process or service.
    Stop,
    /// Starts a service.
    Start,
    /// Fetches what git only points to.
    Fetch,
    /// Installs a tool.
    Provide,
    /// Puts files back as git has them.
    Restore,
}

/// A word in the name of a script, and what such a script does.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::repair) struct NameWord {
    pub(in crate::repair) words: Vec<String>,
    /// Words of which one must stand beside it.
    #[serde(default)]
    pub(in crate::repair) with: Vec<String>,
    pub(in crate::repair) work: Work,
}
