//! What has to be looked at in a project before repairs can be offered.

use std::collections::BTreeSet;

use super::book::Book;
use super::candidates;
use super::data::{Lack, NeedRule};
use super::facts::Facts;
use super::message::Message;
use super::need::{Clue, clues};
use super::paths;
use crate::action::shell_words;
use crate::diagnosis::Diagnosis;
use crate::failure::Failure;

/// What has to be looked at in a project before repairs can be offered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Questions {
    /// Paths as messages and commands write them.
    pub paths: BTreeSet<String>,
    /// Names to look for in the files of the project.
    pub names: BTreeSet<String>,
    /// Programs to look for outside the project.
    pub programs: BTreeSet<String>,
    /// Ports of which to find out who listens.
    pub ports: BTreeSet<u16>,
    /// Parts of names by which templates are known; see [`copy_of`](Self::copy_of).
    pub template_marks: BTreeSet<String>,
    /// Whether to find out on which ports processes of the project listen.
    pub processes: bool,
}

/// What has to be looked at for this failure and these entries of the owner.
pub fn questions(
    book: &Book,
    failure: &Failure,
    diagnosis: &Diagnosis,
    owner_entries: &[String],
) -> Questions {
    let message = Message::read(failure);
    let mut questions = Questions::default();
    for path in paths::mentioned(&message.text) {
        questions.add_path(&path);
    }
    for clue in clues(book, diagnosis.kind, &message) {
        questions.add_clue(book, &clue);
    }
    for entry in owner_entries {
        questions.add_entry(entry);
    }
    for advised in message.advised() {
        questions.add_entry(&advised);
    }
    questions
        .programs
        .extend(candidates::PROGRAMS.map(str::to_owned));
    for manager in book.managers() {
        let program = manager.program.as_deref().unwrap_or(&manager.name);
        questions.programs.insert(program.to_owned());
        let files = [&manager.manifests, &manager.locks, &manager.folders];
        let plain = files
            .into_iter()
            .flatten()
            .filter(|name| !name.contains('*'));
        questions.paths.extend(plain.cloned());
        for command in &manager.command {
            questions.add_entry(&command.run);
            let conditions = command.has.iter().chain(&command.lacks);
            questions.paths.extend(conditions.cloned());
        }
    }
    let marks = book.template_marks().map(str::to_owned);
    questions.template_marks.extend(marks);
    let addresses = ["http", "https"].map(str::to_owned);
    questions.names.extend(addresses);
    let commands = book.needs().flat_map(|rule: &NeedRule| &rule.command);
    for command in commands {
        questions.add_entry(&command.run);
    }
    questions
}

impl Questions {
    /// What a file is the template of, by its name: `.env` for `.env.example`. It has to be known whether that is there.
    pub fn copy_of(&self, path: &str) -> Option<String> {
        let mut marks = self.template_marks.iter();
        marks.find_map(|mark| paths::without_mark(path, mark))
    }

    /// A path, and the folders above it.
    fn add_path(&mut self, path: &str) {
        for one in paths::upwards(path).filter(|one| one.len() > 1).take(6) {
            self.paths.insert(one.to_owned());
        }
    }

    fn add_clue(&mut self, book: &Book, clue: &Clue<'_>) {
        if let Some(path) = &clue.path {
            self.add_path(path);
            self.paths.extend(paths::interpreter_beside(path));
            self.names.insert(paths::base(path).to_owned());
            let plain = Facts::default().relative(path.trim_start_matches('/'));
            self.names.extend(
                plain
                    .iter()
                    .flat_map(|path| path.split('/').next())
                    .map(str::to_owned),
            );
        }
        self.names.extend(clue.rule.contains.iter().cloned());
        self.ports.extend(clue.port);
        self.processes |= clue.rule.needs == Lack::Port;
        self.names.extend(clue.port.map(|port| port.to_string()));
        let Some(name) = &clue.name else {
            return;
        };
        let ecosystem = clue.rule.ecosystem.as_deref().unwrap_or_default();
        self.names.extend(book.packages_of(ecosystem, name));
        for folder in book.managers().flat_map(|manager| &manager.folders) {
            self.paths.insert(paths::join(folder, name));
        }
    }

    fn add_entry(&mut self, entry: &str) {
        let Ok(tokens) = shell_words(entry) else {
            return;
        };
        for token in &tokens {
            self.programs.insert(token.value.clone());
            self.paths.insert(token.value.clone());
            let parts = token.value.split([' ', '=', ')', '(', '"', '\'']);
            self.paths.extend(parts.filter_map(paths::path_in));
        }
        let programs = tokens.iter().map(|token| token.value.as_str());
        self.paths
            .extend(programs.filter_map(paths::interpreter_beside));
        self.programs.retain(|word| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "_.+-".contains(c);
            !word.is_empty() && word.chars().all(plain)
        });
    }
}
