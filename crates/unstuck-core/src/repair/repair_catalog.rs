//! The repair knowledge, parsed and validated once.

use std::sync::LazyLock;

use super::failure_pattern::FailurePattern;
use super::path_strings;
use super::project_facts::ProjectFacts;
use super::repair_knowledge_file::{
    DenylistedCommand, DenylistedFailure, EffectKind, GeneratedPath, PackageAlias, PackageManager,
    ProgramSpec, RepairKnowledgeFile, RequirementRule, ScriptNameRule, ServiceSpec,
};
use crate::knowledge::{KnowledgeError, parse_file};

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
    "denied_commands" "shell" "project_names" "node" "python" "rust" "go" "java" "more-packages" "builds" "git" "files" "processes"
    "databases" "caches" "perl" "certificates"
}

/// The repair knowledge.
#[derive(Debug, Clone, PartialEq)]
pub struct RepairCatalog {
    files: Vec<RepairKnowledgeFile>,
}

impl RepairCatalog {
    /// Returns the catalog embedded in the program.
    pub fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<RepairCatalog> =
            LazyLock::new(|| match RepairCatalog::embedded() {
                Ok(book) => book,
                // The embedded files are tested; only a build that skipped its tests can get here.
                Err(error) => unreachable!("embedded repairs: {error}"),
            });
        &BUILT_IN
    }

    fn embedded() -> Result<Self, KnowledgeError> {
        let files = FILES.iter().map(|(name, text)| parse_file(name, text));
        let book = Self {
            files: files.collect::<Result<_, _>>()?,
        };
        book.check().map(|()| book)
    }

    /// Returns the catalog with a user's additions; a rule replaces the one with the same id. The denylists can only
    /// grow.
    pub fn with_overlay(&self, own: RepairKnowledgeFile) -> Result<Self, KnowledgeError> {
        let mut book = self.clone();
        for file in &mut book.files {
            let is_kept =
                |known: &RequirementRule| own.requirement.iter().all(|new| new.id != known.id);
            file.requirement.retain(is_kept);
        }
        // The user's rules come first where the first match wins.
        book.files.insert(0, own);
        book.check().map(|()| book)
    }

    fn check(&self) -> Result<(), KnowledgeError> {
        let needs = self.requirement_rules().flat_map(|rule| {
            let patterns = rule.any.iter().chain(&rule.all).chain(&rule.none);
            patterns.map(|pattern| (rule.id.as_str(), pattern))
        });
        let never = self.denylisted_failures().flat_map(|rule| {
            let patterns = rule.any.iter().chain(&rule.none);
            patterns.map(|pattern| (rule.id.as_str(), pattern))
        });
        let forbidden = self.denylisted_commands().flat_map(|rule| {
            let patterns = rule.any.iter().chain(&rule.none);
            patterns.map(|pattern| (rule.id.as_str(), pattern))
        });
        let wrong = |(id, pattern): (&str, &FailurePattern)| {
            let place = format!("repair `{id}`");
            let problem = pattern.problem()?;
            Some(KnowledgeError {
                location: place,
                problem,
            })
        };
        let found = needs.chain(never).chain(forbidden).find_map(wrong);
        let unclear = || self.requirement_rules().find_map(|rule| rule.problem());
        found.or_else(unclear).map_or(Ok(()), Err)
    }

    /// The files, one per subject.
    pub fn files(&self) -> &[RepairKnowledgeFile] {
        &self.files
    }

    /// Returns the ids of all requirement rules, in matching order.
    pub fn requirement_ids(&self) -> impl Iterator<Item = &str> {
        self.requirement_rules().map(|rule| rule.id.as_str())
    }

    pub(super) fn requirement_rules(&self) -> impl Iterator<Item = &RequirementRule> {
        self.files.iter().flat_map(|file| &file.requirement)
    }

    pub(super) fn denylisted_failures(&self) -> impl Iterator<Item = &DenylistedFailure> {
        self.files.iter().flat_map(|file| &file.denied_failure)
    }

    pub(super) fn denylisted_commands(&self) -> impl Iterator<Item = &DenylistedCommand> {
        self.files.iter().flat_map(|file| &file.denied_command)
    }

    pub(super) fn managers(&self) -> impl Iterator<Item = &PackageManager> {
        self.files.iter().flat_map(|file| &file.manager)
    }

    pub(super) fn manager(&self, name: &str) -> Option<&PackageManager> {
        self.managers().find(|manager| manager.name == name)
    }

    pub(super) fn programs(&self) -> impl Iterator<Item = &ProgramSpec> {
        self.files.iter().flat_map(|file| &file.program)
    }

    /// Returns the program of this name, ignoring a version suffix.
    pub(super) fn program(&self, name: &str) -> Option<&ProgramSpec> {
        let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let called = |wanted: &str| {
            let mut all = self.programs();
            all.find(|program| program.names.iter().any(|known| known == wanted))
        };
        called(name).or_else(|| called(bare))
    }

    pub(super) fn services(&self) -> impl Iterator<Item = &ServiceSpec> {
        self.files.iter().flat_map(|file| &file.service)
    }

    fn script_name_rules(&self) -> impl Iterator<Item = &ScriptNameRule> {
        self.files.iter().flat_map(|file| &file.script_name)
    }

    fn aliases(&self) -> impl Iterator<Item = &PackageAlias> {
        self.files.iter().flat_map(|file| &file.alias)
    }

    /// Returns the name parts that identify templates.
    pub(super) fn template_marks(&self) -> impl Iterator<Item = &str> {
        let marks = self.files.iter().flat_map(|file| &file.template);
        marks.map(String::as_str)
    }

    /// Returns true if a text, a program or a message, is about writing files.
    pub(super) fn mentions_writing(&self, text: &str) -> bool {
        let mut patterns = self.files.iter().flat_map(|file| &file.write_patterns);
        patterns.any(|pattern| pattern.is_match(text))
    }

    /// Returns the names under which a project may declare the package of a module.
    pub(super) fn packages_of(&self, ecosystem: &str, module: &str) -> Vec<String> {
        let of_module = |alias: &&PackageAlias| {
            alias.ecosystem == ecosystem && alias.module.eq_ignore_ascii_case(module)
        };
        let others = self.aliases().filter(of_module);
        let others = others.map(|alias| alias.package.clone());
        std::iter::once(module.to_owned()).chain(others).collect()
    }

    /// Returns the effects of a script with this name.
    pub(super) fn effects_of_script_name(&self, name: &str) -> Vec<EffectKind> {
        let parts = split_name(name);
        let any = |words: &[String]| words.iter().any(|one| parts.contains(one));
        let is_in =
            |word: &&ScriptNameRule| any(&word.words) && (word.with.is_empty() || any(&word.with));
        self.script_name_rules()
            .filter(is_in)
            .map(|word| word.effect)
            .collect()
    }

    /// Returns the innermost generated path that contains a relative path.
    pub(super) fn generated_path_of(
        &self,
        facts: &ProjectFacts,
        path: &str,
    ) -> Option<&GeneratedPath> {
        path_strings::ancestors(path).find_map(|inner| {
            let places = self.files.iter().flat_map(|file| &file.generated_path);
            let mut fitting = places.filter(|place| place.matches_path(facts, inner));
            fitting.next()
        })
    }

    /// Returns true if a path is the lockfile of some package manager.
    pub(super) fn is_lockfile(&self, path: &str) -> bool {
        let name = path_strings::base_name(path);
        let mut locks = self.managers().flat_map(|manager| &manager.locks);
        locks.any(|lock| lock == name)
    }
}

impl GeneratedPath {
    /// Returns true if a relative path is such a generated path itself.
    fn matches_path(&self, facts: &ProjectFacts, path: &str) -> bool {
        let named = |name: &String| {
            if name.contains('/') {
                path == name || path.ends_with(&format!("/{name}"))
            } else {
                path_strings::matches_glob(name, path_strings::base_name(path))
            }
        };
        let beside = path_strings::parent(path);
        self.names.iter().any(named)
            && (self.siblings.is_empty() || facts.has_any(beside, &self.siblings))
    }
}

/// Splits a name into lower-case words at punctuation and capital letters.
fn split_name(name: &str) -> Vec<String> {
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
