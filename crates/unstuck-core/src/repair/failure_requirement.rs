//! Requirements of a failure: first derived from its text, then resolved against the project.

use regex::Captures;

use super::failure_message::FailureMessage;
use super::path_strings;
use super::project_facts::{FsEntryKind, ProjectFacts};
use super::repair_catalog::RepairCatalog;
use super::repair_knowledge_file::{
    GeneratedContents, GeneratedPath, PathCondition, RequirementKind, RequirementRule,
    RequirementState,
};
use crate::failure::FailureKind;
use crate::knowledge::KnowledgeError;

/// Maximum number of matches examined per rule.
const MAX_MATCHES: usize = 6;

/// A requirement as derived from the text of a failure.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RequirementHint<'b> {
    pub(super) rule: &'b RequirementRule,
    /// The path as written in the text.
    pub(super) path: Option<String>,
    pub(super) name: Option<String>,
    pub(super) port: Option<u16>,
    /// The line it was derived from.
    pub(super) line: String,
}

/// A requirement, resolved against the project.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Requirement<'b> {
    pub(super) rule: &'b RequirementRule,
    pub(super) kind: RequirementKind,
    pub(super) state: RequirementState,
    pub(super) ecosystem: Option<&'b str>,
    /// The path, relative to the root.
    pub(super) path: Option<String>,
    pub(super) name: Option<String>,
    pub(super) port: Option<u16>,
    /// The project directory it concerns.
    pub(super) directory: String,
    /// The generated path that contains the path.
    pub(super) generated_path: Option<&'b GeneratedPath>,
    pub(super) priority: i32,
    pub(super) line: String,
}

impl RequirementRule {
    /// Returns the problem of the rule, apart from its patterns.
    pub(super) fn problem(&self) -> Option<KnowledgeError> {
        let problem = if self.id.trim().is_empty() {
            "missing `id`"
        } else if self.any.is_empty() {
            "missing patterns (`any`): it would match everything"
        } else if self.requires == RequirementKind::Packages && self.ecosystem.is_none() {
            "missing `ecosystem` of the packages"
        } else {
            return None;
        };
        Some(KnowledgeError {
            location: format!("repair `{}`", self.id),
            problem: problem.to_owned(),
        })
    }

    fn applies_to(&self, kind: FailureKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    fn hints<'b>(&'b self, message: &FailureMessage) -> Vec<RequirementHint<'b>> {
        let text = message.text.as_str();
        let wanted = self.all.iter().all(|pattern| pattern.is_match(text));
        let unwanted = self.none.iter().any(|pattern| pattern.is_match(text));
        if !wanted || unwanted {
            return Vec::new();
        }
        let mut clues: Vec<RequirementHint<'b>> = Vec::new();
        for found in self
            .any
            .iter()
            .flat_map(|pattern| pattern.all_captures(text))
        {
            let clue = self.hint(message, &found);
            if !clues.contains(&clue) {
                clues.push(clue);
            }
        }
        clues.truncate(MAX_MATCHES);
        if self.any_mentioned_path {
            clues
                .iter()
                .flat_map(RequirementHint::for_each_path)
                .collect()
        } else {
            clues
        }
    }

    fn hint<'b>(&'b self, message: &FailureMessage, found: &Captures<'_>) -> RequirementHint<'b> {
        let group = |name: &str| {
            found
                .name(name)
                .map(|group| group.as_str().trim().to_owned())
        };
        let range = found.get(0).map_or(0..0, |whole| whole.range());
        RequirementHint {
            rule: self,
            path: group("path")
                .filter(|path| !path.is_empty())
                .or_else(|| self.path.clone()),
            name: group("name").filter(|name| !name.is_empty()),
            port: group("port").and_then(|port| port.parse().ok()),
            line: message.line_at(&range).to_owned(),
        }
    }
}

impl RequirementHint<'_> {
    /// Returns the same hint for each path of its line.
    fn for_each_path(&self) -> Vec<Self> {
        let found = path_strings::find_paths(&self.line);
        let others = found
            .into_iter()
            .map(Some)
            .filter(|path| *path != self.path);
        let own = self.path.is_some().then(|| self.path.clone());
        let all = own.into_iter().chain(others);
        all.map(|path| Self {
            path,
            ..self.clone()
        })
        .collect()
    }
}

/// Returns the requirements stated by the text of a failure.
pub(super) fn find_hints<'b>(
    book: &'b RepairCatalog,
    kind: FailureKind,
    message: &FailureMessage,
) -> Vec<RequirementHint<'b>> {
    let rules = book
        .requirement_rules()
        .filter(|rule| rule.applies_to(kind));
    rules.flat_map(|rule| rule.hints(message)).collect()
}

/// Resolves the hints to requirements that the project confirms.
pub(super) fn resolve_requirements<'b>(
    book: &'b RepairCatalog,
    facts: &ProjectFacts,
    message: &FailureMessage,
    clues: &[RequirementHint<'b>],
) -> Vec<Requirement<'b>> {
    let mut needs: Vec<Requirement<'b>> = Vec::new();
    let resolver = RequirementResolver {
        book,
        facts,
        message,
    };
    for clue in clues {
        for need in resolver.resolve(clue) {
            if !needs.contains(&need) {
                needs.push(need);
            }
        }
    }
    needs
}

struct RequirementResolver<'a, 'b> {
    book: &'b RepairCatalog,
    facts: &'a ProjectFacts,
    message: &'a FailureMessage,
}

impl<'b> RequirementResolver<'_, 'b> {
    fn resolve(&self, clue: &RequirementHint<'b>) -> Vec<Requirement<'b>> {
        let rule = clue.rule;
        let contains = |text: &String| self.facts.files_naming(text).next().is_some();
        let has = rule.has.is_empty() || self.facts.has_any("", &rule.has);
        let says = rule.contains.is_empty() || rule.contains.iter().any(contains);
        if !has || !says {
            return Vec::new();
        }
        let Some(written) = clue.path.as_deref() else {
            let paths = if rule.path_patterns.is_empty() {
                vec![None]
            } else {
                self.find_paths(clue).into_iter().map(Some).collect()
            };
            let needs = paths
                .into_iter()
                .flat_map(|path| self.resolve_at(clue, path));
            return needs.collect();
        };
        let path = self.relative(written, &clue.line);
        path.map_or_else(Vec::new, |path| {
            self.resolve_at(clue, Some(self.facts.resolve_links(&path)))
        })
    }

    /// Resolves the requirements at a path, or independent of a path.
    fn resolve_at(&self, clue: &RequirementHint<'b>, path: Option<String>) -> Vec<Requirement<'b>> {
        let rule = clue.rule;
        if !self.path_holds(rule, path.as_deref()) {
            return Vec::new();
        }
        let mut need = Requirement {
            rule,
            kind: rule.requires,
            state: rule.state,
            ecosystem: rule.ecosystem.as_deref(),
            generated_path: path
                .as_deref()
                .and_then(|path| self.book.generated_path_of(self.facts, path)),
            path,
            name: clue.name.clone(),
            port: clue.port,
            directory: String::new(),
            priority: rule.priority,
            line: clue.line.clone(),
        };
        let mut needs = Vec::new();
        if need.kind == RequirementKind::ByPath {
            needs.extend(self.parent_requirement(&need));
            if !self.set_kind_by_path(&mut need) {
                return needs;
            }
        }
        self.complete(&mut need);
        needs.push(need);
        needs
    }

    /// Returns the project paths a rule may concern if the text names none.
    fn find_paths(&self, clue: &RequirementHint<'b>) -> Vec<String> {
        let mut found = Vec::new();
        for pattern in &clue.rule.path_patterns {
            let values: Vec<String> = match pattern {
                one if one.contains("{submodule}") => {
                    self.facts.submodules.iter().cloned().collect()
                }
                one if one.contains("{name}") => clue.name.iter().cloned().collect(),
                _ => vec![String::new()],
            };
            let keys = ["{submodule}", "{name}"];
            for value in values {
                let filled = keys
                    .iter()
                    .fold(pattern.clone(), |text, key| text.replace(key, &value));
                let listed = self.facts.listed.iter();
                let like = listed.filter(|path| path_strings::covers(&filled, path));
                found.extend(like.take(MAX_MATCHES).cloned());
            }
        }
        found.dedup();
        found.truncate(MAX_MATCHES);
        found
    }

    /// Resolves a relative path, possibly relative to the file that names it.
    fn relative(&self, path: &str, line: &str) -> Option<String> {
        let plain = self.facts.relative(path);
        if !path.starts_with('.') || plain.as_deref().is_some_and(|path| self.facts.exists(path)) {
            return plain;
        }
        let named = path_strings::find_paths(line);
        let others = named.iter().filter(|other| !other.starts_with('.'));
        let beside = others.filter_map(|other| {
            let file = self.facts.relative(other)?;
            path_strings::normalize(path_strings::parent(&file), path)
        });
        beside.rev().find(|found| *found != path).or(plain)
    }

    fn path_holds(&self, rule: &RequirementRule, path: Option<&str>) -> bool {
        let Some(path) = path else {
            return rule.path_is.is_empty();
        };
        let fact = self.facts.path_fact(path);
        let fact_holds =
            |test: fn(&super::project_facts::ProjectPathFacts) -> bool| fact.is_some_and(test);
        let holds = |is: &PathCondition| match is {
            PathCondition::Missing => self.facts.is_missing(path),
            PathCondition::Exists => self.facts.exists(path),
            PathCondition::File => self.facts.entry_at(path) == Some(FsEntryKind::File),
            PathCondition::Directory => self.facts.entry_at(path) == Some(FsEntryKind::Directory),
            PathCondition::EmptyDirectory => {
                fact_holds(|fact| fact.entry == FsEntryKind::Directory && fact.empty)
            }
            PathCondition::Dangling => self.facts.entry_at(path) == Some(FsEntryKind::DanglingLink),
            PathCondition::Crlf => fact_holds(|fact| fact.crlf),
            PathCondition::NotExecutable => {
                fact_holds(|fact| fact.entry == FsEntryKind::File && !fact.executable)
            }
            PathCondition::LfsPointer => fact_holds(|fact| fact.lfs_pointer),
            PathCondition::NotInUse => fact_holds(|fact| fact.in_use != Some(true)),
            PathCondition::StartsWithMark => fact_holds(|fact| fact.has_bom),
            PathCondition::InSubmodule => self
                .facts
                .submodules
                .iter()
                .any(|one| path_strings::covers(one, path)),
            PathCondition::InCache => {
                let place = self.book.generated_path_of(self.facts, path);
                place.is_some_and(|place| place.contents == GeneratedContents::Cache)
            }
        };
        rule.path_is.iter().all(holds)
    }

    /// If the parent directory of a missing path is missing too, the directory may be the whole requirement.
    fn parent_requirement(&self, need: &Requirement<'b>) -> Option<Requirement<'b>> {
        let path = need.path.as_deref()?;
        let above = path_strings::parent(path);
        let packages = need
            .generated_path
            .is_some_and(|place| place.contents == GeneratedContents::Packages);
        if need.state != RequirementState::Missing || packages || !self.facts.is_missing(above) {
            return None;
        }
        // Writing a file requires its directory; reading one may require the file.
        let is_writing = self.book.mentions_writing(&self.message.text);
        let change = if is_writing { 5 } else { -5 };
        Some(Requirement {
            kind: RequirementKind::Directory,
            priority: need.priority + change,
            ..need.clone()
        })
    }

    /// Sets the kind by the path; false if that is not possible.
    fn set_kind_by_path(&self, need: &mut Requirement<'b>) -> bool {
        let Some(path) = need.path.as_deref() else {
            return false;
        };
        let Some(place) = need.generated_path else {
            // A file that is not generated was written by a human: it can be missing, but not repaired.
            need.kind = RequirementKind::File;
            return need.state == RequirementState::Missing && self.facts.is_missing(path);
        };
        need.ecosystem = need.ecosystem.or(place.ecosystem.as_deref());
        need.kind = match place.contents {
            GeneratedContents::Packages if need.ecosystem.is_none() => return false,
            GeneratedContents::Packages => RequirementKind::Packages,
            GeneratedContents::Output => RequirementKind::Output,
            GeneratedContents::Generated => RequirementKind::Generated,
            GeneratedContents::Cache => RequirementKind::Cache,
            GeneratedContents::Marks => RequirementKind::StaleFile,
        };
        true
    }

    /// Completes the derived fields: the directory, and whether packages are missing or damaged.
    fn complete(&self, need: &mut Requirement<'b>) {
        let start = match &need.path {
            Some(path) => path.clone(),
            None => self.facts.working_dir.clone(),
        };
        need.directory = self.managed_directory(need.ecosystem, &start);
        if need.kind != RequirementKind::Packages {
            return;
        }
        if need.state == RequirementState::Missing && self.is_damaged(need) {
            need.state = RequirementState::Broken;
        }
        if need.state == RequirementState::Broken && self.misses_only_program(need) {
            need.state = RequirementState::Missing;
        }
    }

    /// Returns true if the only problem is a missing program in an environment whose interpreter exists.
    fn misses_only_program(&self, need: &Requirement<'b>) -> bool {
        let Some(path) = need.path.as_deref() else {
            return false;
        };
        let interpreter = path_strings::sibling_interpreter(path);
        self.facts.entry_at(path) == Some(FsEntryKind::Nothing)
            && interpreter.is_some_and(|interpreter| self.facts.exists(&interpreter))
    }

    /// Returns the nearest directory from which packages of the ecosystem are managed.
    fn managed_directory(&self, ecosystem: Option<&str>, start: &str) -> String {
        let managers = || {
            let all = self.book.managers();
            all.filter(move |manager| Some(manager.ecosystem.as_str()) == ecosystem)
        };
        let managed = |folder: &&str| {
            managers().any(|manager| {
                let locked = self.facts.has_any(folder, &manager.locks);
                locked || (folder.is_empty() && self.facts.has_any(folder, &manager.manifests))
            })
        };
        let all = path_strings::ancestors(start).chain(std::iter::once(""));
        all.filter(|folder| *folder != start || start.is_empty() || self.facts.exists(start))
            .find(managed)
            .unwrap_or_default()
            .to_owned()
    }

    /// Returns true if parts of the missing packages are left.
    fn is_damaged(&self, need: &Requirement<'b>) -> bool {
        let dangling = |path: &str| self.facts.entry_at(path) == Some(FsEntryKind::DanglingLink);
        if let Some(path) = &need.path {
            return path_strings::ancestors(path).any(dangling);
        }
        let Some(name) = &need.name else {
            return false;
        };
        let folders = self
            .book
            .managers()
            .flat_map(|manager| &manager.directories);
        let mut places = folders.map(|folder| {
            let folder = path_strings::join(&need.directory, folder);
            path_strings::join(&folder, name)
        });
        places.any(|place| dangling(&place) || self.facts.exists(&place))
    }
}
