//! What is known about tools and their files (`data/guard_files.toml`).

use std::sync::OnceLock;

use serde::Deserialize;

use super::file_rule::FileRule;
use super::pattern::Pattern;

const BUILT_IN: &str = include_str!("../../data/guard_files.toml");

/// What is known about tools and their files.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardKnowledge {
    /// Programs that do not execute what they are given.
    pub harmless: Vec<String>,
    /// Programs that only start another one.
    pub wrappers: Vec<String>,
    /// Words after which a command goes on with another program or file.
    #[serde(rename = "carries")]
    pub carries: Vec<String>,
    /// Folders of installed packages.
    #[serde(rename = "installed")]
    pub installed: Vec<String>,
    /// Folders of what is built from sources.
    #[serde(rename = "built")]
    pub built: Vec<String>,
    /// Scripts of `package.json` that installing runs.
    pub lifecycle: Vec<String>,
    /// Files that count with every tool.
    pub always: Vec<String>,
    /// Programs that execute the files that they are given.
    pub interpreter: Vec<Interpreter>,
    /// Tools and their files.
    pub tool: Vec<Tool>,
    /// Files that tools write themselves.
    #[serde(rename = "written")]
    pub written: Vec<Written>,
    /// What of a file counts, where it is not the whole.
    pub file: Vec<FileRule>,
    #[serde(skip)]
    whole: FileRule,
}

/// A program that executes the files that it is given.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interpreter {
    /// What it is called.
    pub names: Vec<String>,
    /// What the name of a file may leave out at its end.
    pub endings: Vec<String>,
    /// The files of a module.
    #[serde(default)]
    pub modules: Vec<String>,
    /// Options after which program text follows instead of a file.
    #[serde(default)]
    inline: Option<Pattern>,
}

/// Files that some tools write themselves.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// The tools.
    pub programs: Vec<String>,
    /// The files.
    pub files: Vec<String>,
    /// Words with which they do not; none where empty.
    #[serde(default)]
    pub unless: Vec<String>,
    /// Words with one of which alone they do; all where empty.
    #[serde(default)]
    pub only: Vec<String>,
}

/// A tool, and the files that decide what it executes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// What it is called.
    pub names: Vec<String>,
    /// Its files in a folder and above.
    pub files: Vec<String>,
    /// Its files in folders below the project's root.
    #[serde(default)]
    #[serde(rename = "below")]
    pub below: Vec<String>,
    /// The files, or `file#key`, that list the folders in which those below count; all folders where empty.
    #[serde(default)]
    pub members: Vec<String>,
    /// Whether those below count also where they are no members.
    #[serde(default)]
    pub everywhere: bool,
    /// The words of which the command must have one; none where empty.
    #[serde(default)]
    pub words: Vec<String>,
    /// Options whose value is a file that it executes.
    #[serde(default)]
    pub options: Vec<String>,
    /// Whether its arguments may name scripts of `package.json`.
    #[serde(default)]
    pub scripts: bool,
}

impl GuardKnowledge {
    /// What comes with the program.
    pub fn built_in() -> &'static Self {
        static BUILT: OnceLock<GuardKnowledge> = OnceLock::new();
        // A test makes sure that it can be read.
        BUILT.get_or_init(|| toml::from_str(BUILT_IN).unwrap_or_default())
    }

    /// What of a file counts.
    pub fn rule(&self, path: &str) -> &FileRule {
        let found = self.file.iter().find(|rule| rule.is_for(path));
        found.unwrap_or(&self.whole)
    }

    /// Whether a command itself writes a file that decides what it does.
    pub fn is_written(&self, command: &str, path: &str) -> bool {
        super::steps(command).iter().any(|step| {
            self.written.iter().any(|one| {
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
                    && one.files.iter().any(|file| super::fits(file, path))
            })
        })
    }

    /// Whether a file is in a folder of installed packages, or of what is built.
    pub fn is_made(&self, path: &str) -> bool {
        let mut names = folders(path);
        names.any(|name| self.is_installed(name)) || self.is_built(path)
    }

    /// Whether a folder of that name holds installed packages.
    pub fn is_installed(&self, name: &str) -> bool {
        self.installed.iter().any(|known| known == name)
    }

    /// Whether a file is in a folder of what is built.
    pub fn is_built(&self, path: &str) -> bool {
        let mut names = folders(path);
        names.any(|name| self.built.iter().any(|known| known == name))
    }

    pub(super) fn interpreter_named(&self, program: &str) -> Option<&Interpreter> {
        let mut all = self.interpreter.iter();
        all.find(|one| is_one_of(&one.names, program))
    }

    pub(super) fn tools_named(&self, program: &str, words: &[String]) -> Vec<&Tool> {
        let is_meant = |tool: &Tool| {
            tool.words.is_empty() || tool.words.iter().any(|word| words.contains(word))
        };
        let all = self.tool.iter();
        all.filter(|one| is_one_of(&one.names, program) && is_meant(one))
            .collect()
    }
}

/// The names of the folders that a file is in.
fn folders(path: &str) -> impl Iterator<Item = &str> {
    let folders = path.rsplit_once('/').map_or("", |(folders, _)| folders);
    folders.split('/')
}

/// Whether a program is one of these, in whatever version: `python3.11` is `python`.
fn is_one_of(names: &[String], program: &str) -> bool {
    let version = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
    let short = program.trim_end_matches(version);
    let is_it = |name: &String| name == program || (!short.is_empty() && name == short);
    names.iter().any(is_it)
}

impl Interpreter {
    pub(super) fn is_inline(&self, option: &str) -> bool {
        let inline = self.inline.as_ref();
        inline.is_some_and(|pattern| pattern.0.is_match(option))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knowledge_can_be_read() {
        let read: Result<GuardKnowledge, _> = toml::from_str(BUILT_IN);
        let known = read.unwrap();
        assert!(known.tool.len() > 20 && !known.file.is_empty());
        // A rule for a file that no tool names would never be used.
        let named = |name: &String| {
            let mut files = known.tool.iter().flat_map(|tool| &tool.files);
            files.any(|file| file == name || super::super::fits(name, &file.replace('*', "x")))
        };
        for rule in &known.written {
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
