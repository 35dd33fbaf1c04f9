//! Knowledge about tools and their files (`data/watched_files.toml`).

use std::sync::OnceLock;

use serde::Deserialize;

use super::deserializable_regex::RegexPattern;
use super::relevant_part_rule::WatchedFilePartRule;

const BUILT_IN: &str = include_str!("../../data/watched_files.toml");

/// Knowledge about tools and their files.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFileKnowledge {
    /// Programs that do not execute their arguments.
    pub harmless: Vec<String>,
    /// Programs that only start another one.
    pub wrappers: Vec<String>,
    /// Words after which a command continues with another program or file.
    pub continuation_words: Vec<String>,
    /// Directories of installed packages.
    pub package_directories: Vec<String>,
    /// Directories of build output.
    pub build_directories: Vec<String>,
    /// Scripts of `package.json` that run on installation.
    pub lifecycle: Vec<String>,
    /// Files that affect every tool.
    pub always: Vec<String>,
    /// Programs that execute the files they are given.
    pub interpreter: Vec<InterpreterSpec>,
    /// Tools and their files.
    pub tool: Vec<ToolWatchedFiles>,
    /// Files that tools write themselves.
    pub self_written: Vec<ToolWrittenFiles>,
    /// The rules for the relevant parts of files.
    pub file: Vec<WatchedFilePartRule>,
    #[serde(skip)]
    whole: WatchedFilePartRule,
}

/// A program that executes the files it is given.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterpreterSpec {
    /// The program names.
    pub names: Vec<String>,
    /// File endings that may be omitted.
    pub endings: Vec<String>,
    /// The files of a module.
    #[serde(default)]
    pub modules: Vec<String>,
    /// Options followed by program text instead of a file.
    #[serde(default)]
    inline: Option<RegexPattern>,
}

/// Files that some tools write themselves.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolWrittenFiles {
    /// The tools.
    pub programs: Vec<String>,
    /// The files.
    pub files: Vec<String>,
    /// Words with which they do not write them; none if empty.
    #[serde(default)]
    pub unless: Vec<String>,
    /// Words of which one is required for writing them; none required if empty.
    #[serde(default)]
    pub only: Vec<String>,
}

/// A tool, and the files that decide what it executes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolWatchedFiles {
    /// The program names.
    pub names: Vec<String>,
    /// Its files in a directory and its parents.
    pub files: Vec<String>,
    /// Its files in directories below the project root.
    #[serde(default)]
    pub files_below: Vec<String>,
    /// The files, or `file#key`, that list the directories for `files_below`; all directories if empty.
    #[serde(default)]
    pub members: Vec<String>,
    /// If set, `files_below` apply outside of member directories too.
    #[serde(default)]
    pub everywhere: bool,
    /// Words of which the command must contain one; none required if empty.
    #[serde(default)]
    pub words: Vec<String>,
    /// Options whose value is a file that it executes.
    #[serde(default)]
    pub options: Vec<String>,
    /// If set, its arguments may name scripts of `package.json`.
    #[serde(default)]
    pub scripts: bool,
}

impl ToolFileKnowledge {
    /// Returns the embedded knowledge.
    pub fn built_in() -> &'static Self {
        static BUILT: OnceLock<ToolFileKnowledge> = OnceLock::new();
        // A test ensures that it is valid.
        BUILT.get_or_init(|| toml::from_str(BUILT_IN).unwrap_or_default())
    }

    /// Returns the rule for a file.
    pub fn rule_for(&self, path: &str) -> &WatchedFilePartRule {
        let found = self.file.iter().find(|rule| rule.applies_to(path));
        found.unwrap_or(&self.whole)
    }

    /// Returns true if a command itself writes a file that decides what it does.
    pub fn writes_itself(&self, command: &str, path: &str) -> bool {
        super::split_commands(command).iter().any(|step| {
            self.self_written.iter().any(|one| {
                let has = |words: &[String]| step.words.iter().any(|word| words.contains(word));
                let names = |word: &String| {
                    let name = word.rsplit('/').next().unwrap_or(word);
                    // `npx pnpm@9.15.0` is pnpm.
                    let bare = name.split('@').next().filter(|bare| !bare.is_empty());
                    is_one_of(&one.programs, bare.unwrap_or(name))
                };
                step.words.iter().any(names)
                    && !has(&one.unless)
                    && (one.only.is_empty() || has(&one.only))
                    && one.files.iter().any(|file| super::path_matches(file, path))
            })
        })
    }

    /// Returns true if a file is in a directory of installed packages or build output.
    pub fn is_installed_or_built(&self, path: &str) -> bool {
        let mut names = parent_directories(path);
        names.any(|name| self.is_installed(name)) || self.is_built(path)
    }

    /// Returns true if a directory of that name contains installed packages.
    pub fn is_installed(&self, name: &str) -> bool {
        self.package_directories.iter().any(|known| known == name)
    }

    /// Returns true if a file is in a directory of build output.
    pub fn is_built(&self, path: &str) -> bool {
        let mut names = parent_directories(path);
        names.any(|name| self.build_directories.iter().any(|known| known == name))
    }

    pub(super) fn interpreter_named(&self, program: &str) -> Option<&InterpreterSpec> {
        let mut all = self.interpreter.iter();
        all.find(|one| is_one_of(&one.names, program))
    }

    pub(super) fn tools_named(&self, program: &str, words: &[String]) -> Vec<&ToolWatchedFiles> {
        let is_meant = |tool: &ToolWatchedFiles| {
            tool.words.is_empty() || tool.words.iter().any(|word| words.contains(word))
        };
        let all = self.tool.iter();
        all.filter(|one| is_one_of(&one.names, program) && is_meant(one))
            .collect()
    }
}

/// Returns the names of the parent directories of a file.
fn parent_directories(path: &str) -> impl Iterator<Item = &str> {
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    folders.split('/')
}

/// Returns true if a program is one of these, in any version: `python3.11` is `python`.
fn is_one_of(names: &[String], program: &str) -> bool {
    let version = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
    let short = program.trim_end_matches(version);
    let is_it = |name: &String| name == program || (!short.is_empty() && name == short);
    names.iter().any(is_it)
}

impl InterpreterSpec {
    pub(super) fn is_inline(&self, option: &str) -> bool {
        let inline = self.inline.as_ref();
        inline.is_some_and(|pattern| pattern.0.is_match(option))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knowledge_is_valid() {
        let read: Result<ToolFileKnowledge, _> = toml::from_str(BUILT_IN);
        let known = read.unwrap();
        assert!(known.tool.len() > 20 && !known.file.is_empty());
        // A rule for a file that no tool uses would never apply.
        let named = |name: &String| {
            let mut files = known.tool.iter().flat_map(|tool| &tool.files);
            files.any(|file| {
                file == name || super::super::path_matches(name, &file.replace('*', "x"))
            })
        };
        for rule in &known.self_written {
            let unused: Vec<_> = rule.files.iter().filter(|name| !named(name)).collect();
            assert_eq!(unused, Vec::<&String>::new(), "{:?}", rule.programs);
        }
        for rule in &known.file {
            let unused: Vec<_> = rule.names.iter().filter(|name| !named(name)).collect();
            let scripts = ["*.sh", "*.bash", "*.gradle", "*.gradle.kts"];
            let expected = unused.iter().all(|name| scripts.contains(&name.as_str()));
            assert!(expected, "{unused:?}");
        }
    }
}
