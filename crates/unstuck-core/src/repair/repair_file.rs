//! The repair knowledge as it stands in its files (`data/repairs/*.toml`).

use serde::Deserialize;

use super::failure_pattern::FailurePattern;
use super::sample::Sample;
use crate::command_policy::{Confidence, RepairCategory};
use crate::failure::Kind;

/// What one file knows about its subject; what a user's configuration adds has the same form.
///
/// ```
/// use unstuck_core::repair::{RepairCatalog, RepairFile};
///
/// let config = r#"
///     [[need]]
///     id = "our_index"
///     needs = "generated"
///     category = "environment"
///     any = ["the search index is stale"]
///     cause = "The search index is older than the pages."
///     outcome = "The index is made again."
/// "#;
/// let own: RepairFile = toml::from_str(config)?;
/// let book = RepairCatalog::built_in().overlaid(own)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RepairFile {
    /// What it is about.
    pub title: String,
    pub(super) manager: Vec<PackageManager>,
    pub(super) program: Vec<ProgramSpec>,
    pub(super) word: Vec<ScriptNameRule>,
    #[serde(rename = "place")]
    pub(super) generated_path: Vec<GeneratedPath>,
    pub(super) service: Vec<ServiceSpec>,
    pub(super) alias: Vec<PackageAlias>,
    /// How programs write that they write files.
    pub(super) writing: Vec<FailurePattern>,
    /// Parts of the names of files that are templates of others, such as `.example`.
    pub(super) template: Vec<String>,
    pub(super) never: Vec<DenylistedFailure>,
    pub(super) forbidden: Vec<DenylistedCommand>,
    pub(super) need: Vec<RequirementRule>,
    pub(super) sample: Vec<Sample>,
}

/// A package manager: how a project shows that it uses it, and what it is told to do.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PackageManager {
    pub(super) name: String,
    pub(super) ecosystem: String,
    /// The program to run; the name where nothing is said.
    #[serde(default)]
    pub(super) program: Option<String>,
    /// Files that say what is wanted; one of them must be there.
    #[serde(default)]
    pub(super) manifests: Vec<String>,
    /// Files that only this manager writes.
    #[serde(default)]
    pub(super) locks: Vec<String>,
    /// Folders that hold the packages.
    #[serde(default)]
    #[serde(rename = "folders")]
    pub(super) directories: Vec<String>,
    /// Files of which a folder must have one to be installed as a package itself.
    #[serde(default)]
    pub(super) packaging: Vec<String>,
    /// Folders of the project that keep packages ready for installation.
    #[serde(default)]
    pub(super) stores: Vec<String>,
    /// Whether it is taken where nothing tells the managers of the ecosystem apart.
    #[serde(default)]
    pub(super) usual: bool,
    /// What is built in: the command for each state of the packages.
    #[serde(default)]
    pub(super) command: Vec<StateCommand>,
}

/// The command for packages in some states.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StateCommand {
    pub(super) states: Vec<RequirementState>,
    pub(super) run: String,
    /// Files that must be there; any of them.
    #[serde(default)]
    pub(super) has: Vec<String>,
    /// Files that must not be there.
    #[serde(default)]
    #[serde(rename = "lacks")]
    pub(super) has_not: Vec<String>,
}

/// A program, and what its calls do.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProgramSpec {
    pub(super) names: Vec<String>,
    #[serde(default)]
    pub(super) manager: Option<String>,
    #[serde(default)]
    pub(super) ecosystem: Option<String>,
    /// Whether every shell has it built in.
    #[serde(default)]
    pub(super) builtin: bool,
    /// Whether the files that it runs are scripts of a shell.
    #[serde(default)]
    pub(super) shell: bool,
    /// Files of which the project must have one, in whatever folder.
    #[serde(default)]
    #[serde(rename = "wants")]
    pub(super) required_files: Vec<String>,
    /// Options whose value is the next word.
    #[serde(default)]
    #[serde(rename = "valued")]
    pub(super) value_options: Vec<String>,
    /// Options whose value is the folder to work in.
    #[serde(default)]
    #[serde(rename = "folder")]
    pub(super) directory_options: Vec<String>,
    /// Options and operands that mean: exactly what the lockfile says.
    #[serde(default)]
    pub(super) frozen: Vec<String>,
    /// Options that mean: without the network.
    #[serde(default)]
    pub(super) offline: Vec<String>,
    /// Options whose value is a folder that packages are taken from.
    #[serde(default)]
    pub(super) local: Vec<String>,
    /// Options whose value is a folder that is installed as a package itself.
    #[serde(default)]
    pub(super) projects: Vec<String>,
    /// Options that mean: in the other packages of the workspace.
    #[serde(default)]
    pub(super) members: Vec<String>,
    /// Options that mean: although the wishes contradict each other.
    #[serde(default)]
    #[serde(rename = "loose")]
    pub(super) loose_options: Vec<String>,
    /// Options that mean: again from nothing.
    #[serde(default)]
    pub(super) fresh: Vec<String>,
    #[serde(default)]
    #[serde(rename = "does")]
    pub(super) call_rules: Vec<CallRule>,
}

/// What one way to call a program does.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CallRule {
    /// The first operands, alternatives parted by `|`; empty for any call.
    pub(super) verb: String,
    /// Options of which one must be given.
    pub(super) with: Vec<String>,
    /// Options and texts that must not be given.
    pub(super) without: Vec<String>,
    #[serde(rename = "works")]
    pub(super) effects: Vec<EffectKind>,
    /// Which operands it works on.
    #[serde(rename = "of")]
    pub(super) targets: OperandSelection,
    /// Options whose values it works on, too.
    #[serde(rename = "of_options")]
    pub(super) target_options: Vec<String>,
    /// Whether what it works on are names that may stand in any folder.
    pub(super) anywhere: bool,
    /// Paths that it works on without naming them.
    #[serde(rename = "places")]
    pub(super) target_paths: Vec<String>,
    /// Other things that it works on, by name.
    pub(super) things: Vec<String>,
    /// Which operands must exist beforehand.
    pub(super) reads: OperandSelection,
    /// Options whose values must exist beforehand.
    pub(super) reads_options: Vec<String>,
    /// Whether operands are names of packages.
    #[serde(rename = "named")]
    pub(super) names_packages: bool,
    /// The runner whose scripts the operands name.
    pub(super) script: Option<String>,
    /// Whether the verb itself is the name of the script.
    pub(super) verb_is_script: bool,
    /// Whether each operand names a script.
    pub(super) each: bool,
    /// Whether the operands tell by their words what it does.
    pub(super) by_name: bool,
    /// Whether the first operand is a file of the project that is run.
    pub(super) file: bool,
    /// Whether the rest is another command, after so many operands.
    pub(super) launches: Option<usize>,
    /// Whether the verb belongs to the command that is launched.
    pub(super) keeps_verb: bool,
    /// Whether it finds the program itself, wherever that is.
    #[serde(rename = "finds")]
    pub(super) finds_program: bool,
    /// The option whose value is the program that is launched.
    pub(super) launch_option: Option<String>,
    /// The option whose value is a shell command.
    pub(super) shell_option: Option<String>,
    pub(super) frozen: bool,
    pub(super) fresh: bool,
}

/// Which operands of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OperandSelection {
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
pub(super) enum EffectKind {
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
    #[serde(rename = "make_folder")]
    MakeDirectory,
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
pub(super) struct ScriptNameRule {
    pub(super) words: Vec<String>,
    /// Words of which one must stand beside it.
    #[serde(default)]
    pub(super) with: Vec<String>,
    pub(super) work: EffectKind,
}

/// A folder or file that a project makes itself, and can make again.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GeneratedPath {
    /// Names of folders on the way, or patterns of the last part.
    pub(super) names: Vec<String>,
    pub(super) holds: GeneratedContents,
    #[serde(default)]
    pub(super) ecosystem: Option<String>,
    /// Files next to it of which one must be there.
    #[serde(default)]
    #[serde(rename = "beside")]
    pub(super) siblings: Vec<String>,
    /// Whether the next build or run makes it again by itself.
    #[serde(default)]
    #[serde(rename = "remade")]
    pub(super) is_rebuilt_automatically: bool,
}

/// What a place holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GeneratedContents {
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
pub(super) struct ServiceSpec {
    pub(super) names: Vec<String>,
    pub(super) ports: Vec<u16>,
}

/// A module whose package has another name.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PackageAlias {
    pub(super) ecosystem: String,
    pub(super) module: String,
    pub(super) package: String,
}

/// A failure that is never repaired by a command.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DenylistedFailure {
    pub(super) id: String,
    #[serde(default)]
    pub(super) kinds: Vec<Kind>,
    #[serde(default)]
    pub(super) any: Vec<FailurePattern>,
    #[serde(default)]
    pub(super) none: Vec<FailurePattern>,
    pub(super) reason: String,
}

/// A command that is never offered.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DenylistedCommand {
    pub(super) id: String,
    pub(super) any: Vec<FailurePattern>,
    #[serde(default)]
    pub(super) none: Vec<FailurePattern>,
    pub(super) reason: String,
}

/// A failure and what it needs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequirementRule {
    pub(super) id: String,
    #[serde(rename = "needs")]
    pub(super) kind: RequirementKind,
    #[serde(default)]
    pub(super) state: RequirementState,
    #[serde(default)]
    pub(super) ecosystem: Option<String>,
    /// The kinds of failure for which it may be used; empty for all that may be repaired.
    #[serde(default)]
    pub(super) kinds: Vec<Kind>,
    /// Patterns of which one must match; the groups `failed_path`, `rank_name` and `port` say what it is about.
    pub(super) any: Vec<FailurePattern>,
    #[serde(default)]
    pub(super) all: Vec<FailurePattern>,
    #[serde(default)]
    pub(super) none: Vec<FailurePattern>,
    /// The path that it is about, where the text does not say it.
    #[serde(default)]
    pub(super) path: Option<String>,
    /// Whether every path of the matching line may be the one that it is about.
    #[serde(default)]
    #[serde(rename = "mentioned")]
    pub(super) any_mentioned_path: bool,
    /// Files of which one must be there.
    #[serde(default)]
    pub(super) has: Vec<String>,
    /// Where the text names no path: patterns of the files that it may be about. `{name}` is the name that it is
    /// about.
    #[serde(default)]
    #[serde(rename = "found")]
    pub(super) path_patterns: Vec<String>,
    /// Texts that files of the project must contain; any of them.
    #[serde(default)]
    pub(super) contains: Vec<String>,
    /// Whether the failed command itself makes again what was removed.
    #[serde(default)]
    #[serde(rename = "remade")]
    pub(super) is_rebuilt_automatically: bool,
    /// What must hold about the path.
    #[serde(default)]
    pub(super) path_is: Vec<PathCondition>,
    /// Things by name that are needed.
    #[serde(default)]
    pub(super) things: Vec<String>,
    pub(super) category: RepairCategory,
    #[serde(default = "default_confidence")]
    pub(super) confidence: Confidence,
    /// Of several needs the one with the higher number counts more.
    #[serde(default = "default_priority")]
    pub(super) priority: i32,
    pub(super) cause: String,
    pub(super) outcome: String,
    /// Built-in commands beside those that follow from the need.
    #[serde(default)]
    pub(super) command: Vec<RepairCommandTemplate>,
}

fn default_confidence() -> Confidence {
    Confidence::High
}

fn default_priority() -> i32 {
    50
}

/// A built-in command.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RepairCommandTemplate {
    /// The command; `{{ path }}`, `{{ folder }}`, `{{ name }}` and `{{ port }}` are filled in, quoted for the shell.
    pub(super) run: String,
    /// Files of which one must be there.
    #[serde(default)]
    pub(super) has: Vec<String>,
}

/// What a failure lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RequirementKind {
    /// Packages of an ecosystem.
    Packages,
    /// What a build makes.
    Output,
    /// What a generator makes.
    Generated,
    /// A file that is missing.
    File,
    /// A folder that is missing.
    #[serde(rename = "folder")]
    Directory,
    /// A database that is brought in line.
    Schema,
    /// A file that should be gone.
    #[serde(rename = "gone")]
    StaleFile,
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
    #[serde(rename = "room")]
    DiskSpace,
    /// Told by the path: packages, output, generated code or any file.
    ByPlace,
}

/// In what state it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RequirementState {
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
pub(super) enum PathCondition {
    Missing,
    #[serde(rename = "there")]
    Exists,
    File,
    #[serde(rename = "folder")]
    Directory,
    #[serde(rename = "empty_folder")]
    EmptyDirectory,
    Dangling,
    Crlf,
    NotExecutable,
    LfsPointer,
    NotInUse,
    InSubmodule,
    InCache,
    StartsWithMark,
}

impl RepairFile {
    /// Failures in projects, each with what must be offered for it.
    pub fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.sample.iter()
    }
}
