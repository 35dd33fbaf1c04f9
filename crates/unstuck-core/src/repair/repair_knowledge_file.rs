//! The format of the repair knowledge files (`data/repairs/*.toml`).

use serde::Deserialize;

use super::failure_pattern::FailurePattern;
use super::suggestion_sample::SuggestionSample;
use crate::command_policy::{ProposalConfidence, RepairCategory};
use crate::failure::FailureKind;

/// The knowledge of one file about its subject; additions in a user's configuration have the same format.
///
/// ```
/// use unstuck_core::repair::{RepairCatalog, RepairKnowledgeFile};
///
/// let config = r#"
///     [[requirement]]
///     id = "our_index"
///     requires = "generated"
///     category = "environment"
///     any = ["the search index is stale"]
///     cause = "The search index is older than the pages."
///     outcome = "The index is made again."
/// "#;
/// let own: RepairKnowledgeFile = toml::from_str(config)?;
/// let book = RepairCatalog::built_in().with_overlay(own)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RepairKnowledgeFile {
    /// The subject of the file.
    pub title: String,
    pub(super) manager: Vec<PackageManager>,
    pub(super) program: Vec<ProgramSpec>,
    #[serde(alias = "word")]
    pub(super) script_name: Vec<ScriptNameRule>,
    #[serde(alias = "place")]
    pub(super) generated_path: Vec<GeneratedPath>,
    pub(super) service: Vec<ServiceSpec>,
    pub(super) alias: Vec<PackageAlias>,
    /// Patterns by which programs report writing files.
    #[serde(alias = "writing")]
    pub(super) write_patterns: Vec<FailurePattern>,
    /// Name parts of files that are templates of others, such as `.example`.
    pub(super) template: Vec<String>,
    #[serde(alias = "never")]
    pub(super) denied_failure: Vec<DenylistedFailure>,
    #[serde(alias = "forbidden")]
    pub(super) denied_command: Vec<DenylistedCommand>,
    #[serde(alias = "need")]
    pub(super) requirement: Vec<RequirementRule>,
    pub(super) sample: Vec<SuggestionSample>,
}

/// A package manager: how a project shows that it uses it, and its commands.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PackageManager {
    pub(super) name: String,
    pub(super) ecosystem: String,
    /// The program to run; defaults to the name.
    #[serde(default)]
    pub(super) program: Option<String>,
    /// Manifest files; one of them must exist.
    #[serde(default)]
    pub(super) manifests: Vec<String>,
    /// Files that only this manager writes.
    #[serde(default)]
    pub(super) locks: Vec<String>,
    /// Directories that hold installed packages.
    #[serde(default, alias = "folders")]
    pub(super) directories: Vec<String>,
    /// Files of which a directory must have one to be installable as a package.
    #[serde(default)]
    pub(super) packaging: Vec<String>,
    /// Directories of the project with packages ready for installation.
    #[serde(default)]
    pub(super) stores: Vec<String>,
    /// If set, it is the default manager of its ecosystem.
    #[serde(default, alias = "usual")]
    pub(super) default: bool,
    /// The built-in command for each state of the packages.
    #[serde(default)]
    pub(super) command: Vec<PackageStateCommand>,
}

/// A package manager's command for packages in some states.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PackageStateCommand {
    pub(super) states: Vec<RequirementState>,
    pub(super) run: String,
    /// Files of which one must exist.
    #[serde(default)]
    pub(super) has: Vec<String>,
    /// Files that must not exist.
    #[serde(default, alias = "lacks")]
    pub(super) has_not: Vec<String>,
}

/// A program and the effects of its calls.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProgramSpec {
    pub(super) names: Vec<String>,
    #[serde(default)]
    pub(super) manager: Option<String>,
    #[serde(default)]
    pub(super) ecosystem: Option<String>,
    /// True if it is a shell builtin.
    #[serde(default)]
    pub(super) builtin: bool,
    /// True if the files it runs are shell scripts.
    #[serde(default)]
    pub(super) shell: bool,
    /// Files of which the project must have one, in any directory.
    #[serde(default, alias = "wants")]
    pub(super) required_files: Vec<String>,
    /// Options that take a value as the next word.
    #[serde(default, alias = "valued")]
    pub(super) value_options: Vec<String>,
    /// Options whose value is the working directory.
    #[serde(default, alias = "folder")]
    pub(super) directory_options: Vec<String>,
    /// Options and operands that install exactly the lockfile.
    #[serde(default)]
    pub(super) frozen: Vec<String>,
    /// Options that disable the network.
    #[serde(default)]
    pub(super) offline: Vec<String>,
    /// Options whose value is a directory that packages are taken from.
    #[serde(default)]
    pub(super) local: Vec<String>,
    /// Options whose value is a directory that is installed as a package itself.
    #[serde(default)]
    pub(super) projects: Vec<String>,
    /// Options that select the other packages of the workspace.
    #[serde(default)]
    pub(super) members: Vec<String>,
    /// Options that ignore version conflicts.
    #[serde(default, alias = "loose")]
    pub(super) loose_options: Vec<String>,
    /// Options that start from scratch.
    #[serde(default)]
    pub(super) fresh: Vec<String>,
    #[serde(default, alias = "does")]
    pub(super) calls: Vec<ProgramCallRule>,
}

/// The effect of one way to call a program.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ProgramCallRule {
    /// The first operands, alternatives separated by `|`; empty for any call.
    pub(super) verb: String,
    /// Options of which one must be given.
    pub(super) with: Vec<String>,
    /// Options and texts that must not be given.
    pub(super) without: Vec<String>,
    #[serde(alias = "works")]
    pub(super) effects: Vec<EffectKind>,
    /// The affected operands.
    #[serde(alias = "of")]
    pub(super) targets: OperandSelection,
    /// Options whose values are affected too.
    #[serde(alias = "of_options")]
    pub(super) target_options: Vec<String>,
    /// True if the affected operands are names that may appear in any directory.
    pub(super) anywhere: bool,
    /// Paths that are affected without being named.
    #[serde(alias = "places")]
    pub(super) target_paths: Vec<String>,
    /// Other affected resources, by name.
    #[serde(alias = "things")]
    pub(super) resources: Vec<String>,
    /// Which operands must exist beforehand.
    pub(super) reads: OperandSelection,
    /// Options whose values must exist beforehand.
    pub(super) reads_options: Vec<String>,
    /// True if operands are package names.
    #[serde(alias = "named")]
    pub(super) names_packages: bool,
    /// The runner whose scripts the operands name.
    pub(super) script: Option<String>,
    /// True if the verb itself is the script name.
    pub(super) verb_is_script: bool,
    /// True if each operand names a script.
    pub(super) each: bool,
    /// True if the effect follows from the names of the operands.
    pub(super) by_name: bool,
    /// True if the first operand is a project file that is run.
    pub(super) file: bool,
    /// If set, the rest is another command, after this number of operands.
    pub(super) launches: Option<usize>,
    /// True if the verb belongs to the launched command.
    pub(super) keeps_verb: bool,
    /// True if it locates the program itself.
    #[serde(alias = "finds")]
    pub(super) finds_program: bool,
    /// The option whose value is the launched program.
    pub(super) launch_option: Option<String>,
    /// The option whose value is a shell command.
    pub(super) shell_option: Option<String>,
    pub(super) frozen: bool,
    pub(super) fresh: bool,
}

/// A selection of the operands of a call.
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

/// The kind of effect a command has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EffectKind {
    /// Installs packages.
    Install,
    /// Updates the lockfile from the manifests.
    Lock,
    /// Upgrades beyond the lockfile.
    Upgrade,
    /// Recompiles installed packages.
    Rebuild,
    /// Builds the project.
    Build,
    /// Generates code or data.
    Generate,
    /// Migrates a database.
    Migrate,
    /// Removes build output or caches.
    Clean,
    /// Removes files.
    Remove,
    /// Creates a directory.
    #[serde(alias = "make_folder")]
    MakeDirectory,
    /// Creates a file or link.
    Create,
    /// Changes file permissions.
    Mode,
    /// Changes line endings.
    LineEnds,
    /// Stops a process or service.
    Stop,
    /// Starts a service.
    Start,
    /// Fetches submodules or LFS files.
    Fetch,
    /// Installs a tool.
    Provide,
    /// Restores files from git.
    Restore,
}

/// A word in the name of a script, and the effects of such a script.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptNameRule {
    pub(super) words: Vec<String>,
    /// Words of which one must accompany it.
    #[serde(default)]
    pub(super) with: Vec<String>,
    #[serde(alias = "work")]
    pub(super) effect: EffectKind,
}

/// A directory or file that a project generates and can regenerate.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GeneratedPath {
    /// Names of directories in the path, or patterns of the last component.
    pub(super) names: Vec<String>,
    #[serde(alias = "holds")]
    pub(super) contents: GeneratedContents,
    #[serde(default)]
    pub(super) ecosystem: Option<String>,
    /// Sibling files of which one must exist.
    #[serde(default, alias = "beside")]
    pub(super) siblings: Vec<String>,
    /// True if the next build or run regenerates it.
    #[serde(default, rename = "rebuilt_automatically", alias = "remade")]
    pub(super) is_rebuilt_automatically: bool,
}

/// The contents of a generated path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum GeneratedContents {
    /// Installed packages.
    Packages,
    /// Build output.
    Output,
    /// Generator output.
    Generated,
    /// A cache.
    Cache,
    /// Markers of a running process: locks, pid files, sockets.
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

/// A failure that no command may repair.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DenylistedFailure {
    pub(super) id: String,
    #[serde(default)]
    pub(super) kinds: Vec<FailureKind>,
    #[serde(default)]
    pub(super) any: Vec<FailurePattern>,
    #[serde(default)]
    pub(super) none: Vec<FailurePattern>,
    pub(super) reason: String,
}

/// A command that is never suggested.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DenylistedCommand {
    pub(super) id: String,
    pub(super) any: Vec<FailurePattern>,
    #[serde(default)]
    pub(super) none: Vec<FailurePattern>,
    pub(super) reason: String,
}

/// A failure and its requirement.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequirementRule {
    pub(super) id: String,
    #[serde(alias = "needs")]
    pub(super) requires: RequirementKind,
    #[serde(default)]
    pub(super) state: RequirementState,
    #[serde(default)]
    pub(super) ecosystem: Option<String>,
    /// The failure kinds it applies to; empty for all repairable kinds.
    #[serde(default)]
    pub(super) kinds: Vec<FailureKind>,
    /// Patterns of which one must match; the groups `path`, `name` and `port` capture the subject.
    pub(super) any: Vec<FailurePattern>,
    #[serde(default)]
    pub(super) all: Vec<FailurePattern>,
    #[serde(default)]
    pub(super) none: Vec<FailurePattern>,
    /// The path of the subject, if the text does not name it.
    #[serde(default)]
    pub(super) path: Option<String>,
    /// If set, every path of the matching line may be the subject.
    #[serde(default, alias = "mentioned")]
    pub(super) any_mentioned_path: bool,
    /// Files of which one must exist.
    #[serde(default)]
    pub(super) has: Vec<String>,
    /// If the text names no path: patterns of the files it may concern. `{name}` is the name of the subject.
    #[serde(default, alias = "found")]
    pub(super) path_patterns: Vec<String>,
    /// Texts of which the project files must contain one.
    #[serde(default)]
    pub(super) contains: Vec<String>,
    /// True if the failed command itself regenerates what was removed.
    #[serde(default, rename = "rebuilt_automatically", alias = "remade")]
    pub(super) is_rebuilt_automatically: bool,
    /// Conditions on the path.
    #[serde(default)]
    pub(super) path_is: Vec<PathCondition>,
    /// Required resources, by name.
    #[serde(default, alias = "things")]
    pub(super) resources: Vec<String>,
    pub(super) category: RepairCategory,
    #[serde(default = "default_confidence")]
    pub(super) confidence: ProposalConfidence,
    /// Precedence among several requirements; higher wins.
    #[serde(default = "default_priority")]
    pub(super) priority: i32,
    pub(super) cause: String,
    pub(super) outcome: String,
    /// Built-in commands in addition to those derived from the requirement.
    #[serde(default)]
    pub(super) command: Vec<RepairCommandTemplate>,
}

fn default_confidence() -> ProposalConfidence {
    ProposalConfidence::High
}

fn default_priority() -> i32 {
    50
}

/// A built-in command.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RepairCommandTemplate {
    /// The command; `{{ path }}`, `{{ directory }}`, `{{ name }}` and `{{ port }}` are filled in, quoted for the shell.
    pub(super) run: String,
    /// Files of which one must exist.
    #[serde(default)]
    pub(super) has: Vec<String>,
}

/// The kind of thing a failure requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RequirementKind {
    /// Packages of an ecosystem.
    Packages,
    /// Build output.
    Output,
    /// Generator output.
    Generated,
    /// A missing file.
    File,
    /// A missing directory.
    #[serde(alias = "folder")]
    Directory,
    /// An up-to-date database schema.
    Schema,
    /// The absence of a stale file.
    #[serde(alias = "gone")]
    StaleFile,
    /// A free port.
    Port,
    /// A running service.
    Service,
    /// An environment variable.
    Variable,
    /// File permissions.
    Mode,
    /// Line endings the system understands.
    LineEnds,
    /// A resource known by name.
    #[serde(alias = "thing")]
    Resource,
    /// A tool.
    Tool,
    /// A cache to be cleared.
    Cache,
    /// Disk space.
    #[serde(alias = "room")]
    DiskSpace,
    /// Derived from the path: packages, output, generated code or any file.
    #[serde(alias = "by_place")]
    ByPath,
}

/// The state of the required thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RequirementState {
    /// Does not exist.
    #[default]
    Missing,
    /// Exists, but is damaged or has the wrong version.
    Broken,
    /// Older than required.
    Outdated,
    /// The lockfile does not match the manifests.
    Drifted,
    /// The manifests contradict each other.
    Unresolved,
    /// Compiled for another runtime.
    Native,
}

/// A condition on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PathCondition {
    Missing,
    #[serde(alias = "there")]
    Exists,
    File,
    #[serde(alias = "folder")]
    Directory,
    #[serde(alias = "empty_folder")]
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

impl RepairKnowledgeFile {
    /// Returns the samples: failures in projects, each with the expected suggestion.
    pub fn samples(&self) -> impl Iterator<Item = &SuggestionSample> {
        self.sample.iter()
    }
}
