//! What is known about programs that must not run unasked, and about those that start others (`data/programs.toml`).

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use regex::Regex;
use serde::Deserialize;

use crate::knowledge::{self, KnowledgeError};

/// The line that parts what is known from the samples, which only tests read.
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

/// Programs of one sort.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramGroup {
    /// What each of them is, as it stands in a sentence.
    is: String,
    /// Whether they start other programs.
    #[serde(default)]
    #[serde(rename = "starts")]
    starts_programs: bool,
    /// Whether only a shell can do what they do.
    #[serde(default)]
    #[serde(rename = "of_shell")]
    is_shell_builtin: bool,
    programs: Vec<String>,
}

/// A program that may run unasked, and with what.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnaskedProgram {
    program: String,
    /// Patterns of all that may follow it.
    lines: Vec<String>,
}

/// What is known about programs.
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
                // The embedded file is tested; this can only be reached by a build that skipped its tests.
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
            // A test makes sure that all can be read; one that cannot lets nothing run.
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

    /// What keeps a program from running unasked with these arguments, as the end of a sentence.
    pub(super) fn objection(&self, program: &str, arguments: &[&str]) -> Option<String> {
        if let Some(group) = self.group(program) {
            return Some(format!("`{program}` is {}", group.is));
        }
        let climbs = |argument: &&str| {
            let value = argument
                .split_once('=')
                .map_or(*argument, |(_, value)| value);
            value.split('/').any(|part| part == "..")
        };
        if let Some(argument) = arguments.iter().find(|argument| climbs(argument)) {
            return Some(format!("`{argument}` may lead out of the project"));
        }
        let line = arguments.join(" ");
        match self.plain.get(program) {
            Some(lines) if lines.iter().any(|known| known.is_match(&line)) => None,
            Some(_) => Some(format!("`{program}` is not plain with these arguments")),
            None => Some(format!(
                "`{program}` may execute files of the project, or another program"
            )),
        }
    }

    /// Whether only a shell understands this word in the place of a program.
    pub(super) fn is_shell_builtin(&self, program: &str) -> bool {
        let group = self.group_of.get(program).map(|at| &self.groups[*at]);
        group.is_some_and(|group| group.is_shell_builtin)
    }

    /// Whether words begin with a program that starts another one, and how many words of its own come before that.
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

/// The names under which a program may be known: its own, without its version, and the first part of it.
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
