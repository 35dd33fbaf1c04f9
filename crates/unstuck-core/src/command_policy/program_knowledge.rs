//! Programs that require approval, and programs that start others (`data/programs.toml`).

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

use crate::knowledge::{self, KnowledgeError};

/// The line that separates the definitions from the samples, which only tests read.
const SAMPLES: &str = "\n# --- samples ---\n";
const FILE: &str = include_str!("../../data/programs.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramsFile {
    group: Vec<ProgramGroup>,
    plain: Vec<UnaskedProgram>,
    operands: HashMap<String, usize>,
    launchers: HashMap<String, Vec<String>>,
}

/// A group of programs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramGroup {
    /// A description of each program, as part of a sentence.
    description: String,
    /// True if they start other programs.
    #[serde(default)]
    starts_programs: bool,
    /// True if only a shell can run them.
    #[serde(default)]
    is_shell_builtin: bool,
    programs: Vec<String>,
}

/// A program that may run without approval, and its permitted arguments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnaskedProgram {
    program: String,
    /// Patterns of the complete arguments.
    lines: Vec<String>,
}

/// The knowledge about programs.
#[derive(Debug)]
pub(super) struct ProgramKnowledge {
    groups: Vec<ProgramGroup>,
    /// The group of each program.
    group_of: HashMap<String, usize>,
    plain: BTreeMap<String, Vec<Regex>>,
    operands: HashMap<String, usize>,
    launchers: HashMap<String, Vec<String>>,
}

impl ProgramKnowledge {
    pub(super) fn built_in() -> &'static Self {
        static READ: LazyLock<ProgramKnowledge> =
            LazyLock::new(|| match ProgramKnowledge::embedded() {
                Ok(programs) => programs,
                // The embedded file is tested; only a build that skipped its tests can get here.
                Err(error) => unreachable!("embedded data: {error}"),
            });
        &READ
    }

    fn embedded() -> Result<Self, KnowledgeError> {
        let known = FILE.split_once(SAMPLES).map_or(FILE, |(known, _)| known);
        let file: ProgramsFile = knowledge::parse_file("programs.toml", known)?;
        let mut group_of = HashMap::new();
        for (at, group) in file.group.iter().enumerate() {
            for program in &group.programs {
                group_of.entry(program.clone()).or_insert(at);
            }
        }
        let mut plain = BTreeMap::new();
        for one in file.plain {
            let lines: Result<Vec<_>, _> = one.lines.iter().map(|line| Regex::new(line)).collect();
            // A test ensures that all patterns are valid; an invalid one permits nothing.
            plain.insert(one.program, lines.unwrap_or_default());
        }
        Ok(Self {
            groups: file.group,
            group_of,
            plain,
            operands: file.operands,
            launchers: file.launchers,
        })
    }

    /// Returns why a program needs approval with these arguments, as the end of a sentence.
    pub(super) fn approval_reason(&self, program: &str, arguments: &[&str]) -> Option<String> {
        if let Some(group) = self.group(program) {
            return Some(format!("`{program}` is {}", group.description));
        }
        let climbs = |argument: &&str| {
            let value = argument
                .split_once('=')
                .map_or(*argument, |(_, value)| value);
            value.split('/').any(|part| part == "..")
        };
        if let Some(argument) = arguments.iter().find(|argument| climbs(argument)) {
            return Some(format!("`{argument}` may point outside the project"));
        }
        let line = arguments.join(" ");
        match self.plain.get(program) {
            Some(lines) if lines.iter().any(|known| known.is_match(&line)) => None,
            Some(_) => Some(format!(
                "`{program}` is not a simple command with these arguments"
            )),
            None => Some(format!(
                "`{program}` may execute project files or another program"
            )),
        }
    }

    /// Returns true if only a shell can run this word as a program.
    pub(super) fn is_shell_builtin(&self, program: &str) -> bool {
        let group = self.group_of.get(program).map(|at| &self.groups[*at]);
        group.is_some_and(|group| group.is_shell_builtin)
    }

    /// Returns the number of own operands if words begin with a program that starts another one.
    pub(super) fn launcher_operands(&self, words: &[&str]) -> Option<usize> {
        let program = words.first()?;
        let of = |name: &String| {
            let launches = self.launchers.get(name).is_some_and(|firsts| {
                let second = words.get(1);
                firsts.is_empty() || second.is_some_and(|word| firsts.iter().any(|one| one == word))
            });
            let starts = self.group_of.get(name);
            let starts = starts.is_some_and(|at| self.groups[*at].starts_programs);
            match self.operands.get(name) {
                Some(own) if starts => Some(*own),
                _ if launches => Some(2),
                _ if starts => Some(0),
                _ => None,
            }
        };
        candidate_names(program).find_map(|name| of(&name))
    }

    fn group(&self, program: &str) -> Option<&ProgramGroup> {
        let at = candidate_names(program).find_map(|name| self.group_of.get(&name).copied())?;
        self.groups.get(at)
    }
}

/// Returns the names under which a program may be known: its own, without its version, and its first part.
fn candidate_names(program: &str) -> impl Iterator<Item = String> {
    let name = program.to_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name).to_owned();
    let without_version = name
        .trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
        .to_owned();
    let first = name.split('.').next().unwrap_or_default().to_owned();
    let mut found = vec![name, without_version, first];
    found.retain(|name| !name.is_empty());
    found.into_iter()
}
