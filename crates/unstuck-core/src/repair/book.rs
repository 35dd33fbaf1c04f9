//! All that is known about repairs, read and checked once.

use std::sync::LazyLock;

use super::data::{
    Alias, Forbidden, Manager, NameWord, NeedRule, Never, Place, Program, RepairFile, ServiceName,
    Work,
};
use super::facts::Facts;
use super::paths;
use super::pattern::Pattern;
use crate::knowledge::{KnowledgeError, read};

macro_rules! files {
    ($($name:literal)+) => {
        /// The embedded files.
        const FILES: &[(&str, &str)] = &[$((
            concat!("repairs/", $name, ".toml"),
            include_str!(concat!("../../data/repairs/", $name, ".toml")),
        )),+];
    };
}

files! {
    "never" "shell" "names" "node" "python" "rust" "go" "java" "more-packages" "builds" "git" "files" "processes"
    "databases" "caches" "perl" "certificates"
}

/// All that is known about repairs.
#[derive(Debug, Clone, PartialEq)]
pub struct Book {
    files: Vec<RepairFile>,
}

impl Book {
    /// What is embedded in the program.
    pub fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<Book> = LazyLock::new(|| match Book::embedded() {
            Ok(book) => book,
            // The embedded files are tested; this can only be reached by a build that skipped its tests.
            Err(error) => unreachable!("embedded repairs: {error}"),
        });
        &BUILT_IN
    }

    fn embedded() -> Result<Self, KnowledgeError> {
        let files = FILES.iter().map(|(name, text)| read(name, text));
        let book = Self {
            files: files.collect::<Result<_, _>>()?,
        };
        book.check().map(|()| book)
    }

    /// The book with a user's additions; a need of a known id replaces that one. What is never repaired and never
    /// offered can only become more.
    pub fn overlaid(&self, own: RepairFile) -> Result<Self, KnowledgeError> {
        let mut book = self.clone();
        for file in &mut book.files {
            let is_kept = |known: &NeedRule| own.need.iter().all(|new| new.id != known.id);
            file.need.retain(is_kept);
        }
        // What the user says comes first where the first one counts.
        book.files.insert(0, own);
        book.check().map(|()| book)
    }

    fn check(&self) -> Result<(), KnowledgeError> {
        let needs = self.needs().flat_map(|rule| {
            let patterns = rule.any.iter().chain(&rule.all).chain(&rule.none);
            patterns.map(|pattern| (rule.id.as_str(), pattern))
        });
        let never = self.never().flat_map(|rule| {
            let patterns = rule.any.iter().chain(&rule.none);
            patterns.map(|pattern| (rule.id.as_str(), pattern))
        });
        let forbidden = self.forbidden().flat_map(|rule| {
            let patterns = rule.any.iter().chain(&rule.none);
            patterns.map(|pattern| (rule.id.as_str(), pattern))
        });
        let wrong = |(id, pattern): (&str, &Pattern)| {
            let place = format!("repair `{id}`");
            let problem = pattern.problem()?;
            Some(KnowledgeError { place, problem })
        };
        let found = needs.chain(never).chain(forbidden).find_map(wrong);
        let unclear = || self.needs().find_map(|rule| rule.problem());
        found.or_else(unclear).map_or(Ok(()), Err)
    }

    /// The files, each about its subject.
    pub fn files(&self) -> &[RepairFile] {
        &self.files
    }

    /// The ids of all needs, in the order in which they are looked for.
    pub fn need_ids(&self) -> impl Iterator<Item = &str> {
        self.needs().map(|rule| rule.id.as_str())
    }

    pub(super) fn needs(&self) -> impl Iterator<Item = &NeedRule> {
        self.files.iter().flat_map(|file| &file.need)
    }

    pub(super) fn never(&self) -> impl Iterator<Item = &Never> {
        self.files.iter().flat_map(|file| &file.never)
    }

    pub(super) fn forbidden(&self) -> impl Iterator<Item = &Forbidden> {
        self.files.iter().flat_map(|file| &file.forbidden)
    }

    pub(super) fn managers(&self) -> impl Iterator<Item = &Manager> {
        self.files.iter().flat_map(|file| &file.manager)
    }

    pub(super) fn manager(&self, name: &str) -> Option<&Manager> {
        self.managers().find(|manager| manager.name == name)
    }

    pub(super) fn programs(&self) -> impl Iterator<Item = &Program> {
        self.files.iter().flat_map(|file| &file.program)
    }

    /// The program of this name; a version at its end does not matter.
    pub(super) fn program(&self, name: &str) -> Option<&Program> {
        let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let called = |wanted: &str| {
            let mut all = self.programs();
            all.find(|program| program.names.iter().any(|known| known == wanted))
        };
        called(name).or_else(|| called(bare))
    }

    pub(super) fn services(&self) -> impl Iterator<Item = &ServiceName> {
        self.files.iter().flat_map(|file| &file.service)
    }

    fn words(&self) -> impl Iterator<Item = &NameWord> {
        self.files.iter().flat_map(|file| &file.word)
    }

    fn aliases(&self) -> impl Iterator<Item = &Alias> {
        self.files.iter().flat_map(|file| &file.alias)
    }

    /// The parts of names by which templates are known.
    pub(super) fn template_marks(&self) -> impl Iterator<Item = &str> {
        let marks = self.files.iter().flat_map(|file| &file.template);
        marks.map(String::as_str)
    }

    /// Whether a text, be it a program or what one says, is about writing files.
    pub(super) fn is_writing(&self, text: &str) -> bool {
        let mut patterns = self.files.iter().flat_map(|file| &file.writing);
        patterns.any(|pattern| pattern.is_match(text))
    }

    /// The names under which a project may declare the package of a module.
    pub(super) fn packages_of(&self, ecosystem: &str, module: &str) -> Vec<String> {
        let of_module = |alias: &&Alias| {
            alias.ecosystem == ecosystem && alias.module.eq_ignore_ascii_case(module)
        };
        let others = self.aliases().filter(of_module);
        let others = others.map(|alias| alias.package.clone());
        std::iter::once(module.to_owned()).chain(others).collect()
    }

    /// What a script of this name does.
    pub(super) fn works_of_name(&self, name: &str) -> Vec<Work> {
        let parts = words_of(name);
        let any = |words: &[String]| words.iter().any(|one| parts.contains(one));
        let is_in =
            |word: &&NameWord| any(&word.words) && (word.with.is_empty() || any(&word.with));
        self.words().filter(is_in).map(|word| word.work).collect()
    }

    /// What the place holds that a relative path lies in; of several the innermost counts.
    pub(super) fn place(&self, facts: &Facts, path: &str) -> Option<&Place> {
        paths::upwards(path).find_map(|inner| {
            let places = self.files.iter().flat_map(|file| &file.place);
            let mut fitting = places.filter(|place| place.is_at(facts, inner));
            fitting.next()
        })
    }

    /// Whether a path is the lockfile of some package manager.
    pub(super) fn is_lockfile(&self, path: &str) -> bool {
        let name = paths::base(path);
        let mut locks = self.managers().flat_map(|manager| &manager.locks);
        locks.any(|lock| lock == name)
    }
}

impl Place {
    /// Whether a relative path is such a place itself.
    fn is_at(&self, facts: &Facts, path: &str) -> bool {
        let named = |name: &String| match name.contains('/') {
            true => path == name || path.ends_with(&format!("/{name}")),
            false => paths::is_like(name, paths::base(path)),
        };
        let beside = paths::parent(path);
        self.names.iter().any(named)
            && (self.beside.is_empty() || facts.has_any(beside, &self.beside))
    }
}

/// The words of a name, in lower case: parted by signs and by capital letters.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for c in name.chars() {
        let starts = c.is_ascii_uppercase() && was_small;
        if !c.is_ascii_alphanumeric() || starts {
            words.push(String::new());
        }
        if c.is_ascii_alphanumeric()
            && let Some(last) = words.last_mut()
        {
            last.push(c.to_ascii_lowercase());
        }
        was_small = c.is_ascii_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}
