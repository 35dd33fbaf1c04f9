//! Determines which project facts are needed to suggest repairs.

use std::collections::BTreeSet;

use super::built_in_commands;
use super::failure_message::FailureMessage;
use super::failure_requirement::{RequirementHint, find_hints};
use super::path_strings;
use super::project_facts::ProjectFacts;
use super::repair_catalog::RepairCatalog;
use super::repair_knowledge_file::{RequirementKind, RequirementRule};
use crate::diagnosis::Diagnosis;
use crate::failure::Failure;
use crate::recovery_plan::shell_tokens;

/// The parts of a project to inspect before repairs can be suggested.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectInspectionScope {
    /// Paths as written in messages and commands.
    pub paths: BTreeSet<String>,
    /// Names to look for in the files of the project.
    pub names: BTreeSet<String>,
    /// Programs to look for outside the project.
    pub programs: BTreeSet<String>,
    /// Ports whose listeners to find.
    pub ports: BTreeSet<u16>,
    /// Name parts that identify templates; see [`template_target`](Self::template_target).
    pub template_marks: BTreeSet<String>,
    /// If set, find the ports on which processes of the project listen.
    pub processes: bool,
}

/// Returns the probes for this failure and these entries of the owner.
pub fn probes_for(
    book: &RepairCatalog,
    failure: &Failure,
    diagnosis: &Diagnosis,
    owner_entries: &[String],
) -> ProjectInspectionScope {
    let message = FailureMessage::from_failure(failure);
    let mut questions = ProjectInspectionScope::default();
    for path in path_strings::find_paths(&message.text) {
        questions.add_path(&path);
    }
    for clue in find_hints(book, diagnosis.kind, &message) {
        questions.add_hint(book, &clue);
    }
    for entry in owner_entries {
        questions.add_entry(entry);
    }
    for advised in message.advised_commands() {
        questions.add_entry(&advised);
    }
    questions
        .programs
        .extend(built_in_commands::PROGRAMS.map(str::to_owned));
    for manager in book.managers() {
        let program = manager.program.as_deref().unwrap_or(&manager.name);
        questions.programs.insert(program.to_owned());
        let files = [&manager.manifests, &manager.locks, &manager.directories];
        let plain = files
            .into_iter()
            .flatten()
            .filter(|name| !name.contains('*'));
        questions.paths.extend(plain.cloned());
        for command in &manager.command {
            questions.add_entry(&command.run);
            let conditions = command.has.iter().chain(&command.has_not);
            questions.paths.extend(conditions.cloned());
        }
    }
    let marks = book.template_marks().map(str::to_owned);
    questions.template_marks.extend(marks);
    let addresses = ["http", "https"].map(str::to_owned);
    questions.names.extend(addresses);
    let commands = book
        .requirement_rules()
        .flat_map(|rule: &RequirementRule| &rule.command);
    for command in commands {
        questions.add_entry(&command.run);
    }
    questions
}

impl ProjectInspectionScope {
    /// Returns the file that this one is the template of, by name: `.env` for `.env.example`. Its existence must be
    /// probed.
    pub fn template_target(&self, path: &str) -> Option<String> {
        let mut marks = self.template_marks.iter();
        marks.find_map(|mark| path_strings::without_mark(path, mark))
    }

    /// Adds a path and its parent directories.
    fn add_path(&mut self, path: &str) {
        for one in path_strings::ancestors(path)
            .filter(|one| one.len() > 1)
            .take(6)
        {
            self.paths.insert(one.to_owned());
        }
    }

    fn add_hint(&mut self, book: &RepairCatalog, clue: &RequirementHint<'_>) {
        if let Some(path) = &clue.path {
            self.add_path(path);
            self.paths.extend(path_strings::sibling_interpreter(path));
            self.names.insert(path_strings::base_name(path).to_owned());
            let plain = ProjectFacts::default().relative(path.trim_start_matches('/'));
            self.names.extend(
                plain
                    .iter()
                    .flat_map(|path| path.split('/').next())
                    .map(str::to_owned),
            );
        }
        self.names.extend(clue.rule.contains.iter().cloned());
        self.ports.extend(clue.port);
        self.processes |= clue.rule.requires == RequirementKind::Port;
        self.names.extend(clue.port.map(|port| port.to_string()));
        let Some(name) = &clue.name else {
            return;
        };
        let ecosystem = clue.rule.ecosystem.as_deref().unwrap_or_default();
        self.names.extend(book.packages_of(ecosystem, name));
        for folder in book.managers().flat_map(|manager| &manager.directories) {
            self.paths.insert(path_strings::join(folder, name));
        }
    }

    fn add_entry(&mut self, entry: &str) {
        let Ok(tokens) = shell_tokens(entry) else {
            return;
        };
        for token in &tokens {
            self.programs.insert(token.value.clone());
            self.paths.insert(token.value.clone());
            let parts = token.value.split([' ', '=', ')', '(', '"', '\'']);
            self.paths.extend(parts.filter_map(path_strings::path_in));
        }
        let programs = tokens.iter().map(|token| token.value.as_str());
        self.paths
            .extend(programs.filter_map(path_strings::sibling_interpreter));
        self.programs.retain(|word| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "_.+-".contains(c);
            !word.is_empty() && word.chars().all(plain)
        });
    }
}
