//! What a failure needs: first what its text says, then what the project shows.

use regex::Captures;

use super::book::Book;
use super::data::{Holds, Lack, NeedRule, PathIs, Place, State};
use super::facts::{Facts, Thing};
use super::message::Message;
use super::paths;
use crate::failure::Kind;
use crate::knowledge::KnowledgeError;

/// So many places are looked at where one rule matches.
const MOST_MATCHES: usize = 6;

/// What the text of a failure says that is needed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Clue<'b> {
    pub(super) rule: &'b NeedRule,
    /// The path, as it is written.
    pub(super) path: Option<String>,
    pub(super) name: Option<String>,
    pub(super) port: Option<u16>,
    /// The line that says it.
    pub(super) line: String,
}

/// What is needed, after a look at the project.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Need<'b> {
    pub(super) rule: &'b NeedRule,
    pub(super) lack: Lack,
    pub(super) state: State,
    pub(super) ecosystem: Option<&'b str>,
    /// The path, relative to the root.
    pub(super) path: Option<String>,
    pub(super) name: Option<String>,
    pub(super) port: Option<u16>,
    /// The folder of the project that it is about.
    pub(super) folder: String,
    /// What the place holds that the path lies in.
    pub(super) place: Option<&'b Place>,
    pub(super) priority: i32,
    pub(super) line: String,
}

impl NeedRule {
    /// What is wrong with the rule apart from its patterns.
    pub(super) fn problem(&self) -> Option<KnowledgeError> {
        let problem = if self.id.trim().is_empty() {
            "it needs an `id`"
        } else if self.any.is_empty() {
            "it needs patterns (`any`), otherwise it would match everything"
        } else if self.needs == Lack::Packages && self.ecosystem.is_none() {
            "it must say of which `ecosystem` the packages are"
        } else {
            return None;
        };
        Some(KnowledgeError {
            place: format!("repair `{}`", self.id),
            problem: problem.to_owned(),
        })
    }

    fn is_for(&self, kind: Kind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    fn clues<'b>(&'b self, message: &Message) -> Vec<Clue<'b>> {
        let text = message.text.as_str();
        let wanted = self.all.iter().all(|pattern| pattern.is_match(text));
        let unwanted = self.none.iter().any(|pattern| pattern.is_match(text));
        if !wanted || unwanted {
            return Vec::new();
        }
        let mut clues: Vec<Clue<'b>> = Vec::new();
        for found in self
            .any
            .iter()
            .flat_map(|pattern| pattern.all_captures(text))
        {
            let clue = self.clue(message, &found);
            if !clues.contains(&clue) {
                clues.push(clue);
            }
        }
        clues.truncate(MOST_MATCHES);
        match self.mentioned {
            true => clues.iter().flat_map(Clue::for_each_path).collect(),
            false => clues,
        }
    }

    fn clue<'b>(&'b self, message: &Message, found: &Captures<'_>) -> Clue<'b> {
        let group = |name: &str| {
            found
                .name(name)
                .map(|group| group.as_str().trim().to_owned())
        };
        let range = found.get(0).map_or(0..0, |whole| whole.range());
        Clue {
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

impl Clue<'_> {
    /// The same clue for each path of its line.
    fn for_each_path(&self) -> Vec<Self> {
        let found = paths::mentioned(&self.line);
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

/// What the text of a failure says that is needed.
pub(super) fn clues<'b>(book: &'b Book, kind: Kind, message: &Message) -> Vec<Clue<'b>> {
    let rules = book.needs().filter(|rule| rule.is_for(kind));
    rules.flat_map(|rule| rule.clues(message)).collect()
}

/// What is needed, as far as the project bears it out.
pub(super) fn needs<'b>(
    book: &'b Book,
    facts: &Facts,
    message: &Message,
    clues: &[Clue<'b>],
) -> Vec<Need<'b>> {
    let mut needs: Vec<Need<'b>> = Vec::new();
    let resolver = Resolver {
        book,
        facts,
        message,
    };
    for clue in clues {
        for need in resolver.needs(clue) {
            if !needs.contains(&need) {
                needs.push(need);
            }
        }
    }
    needs
}

struct Resolver<'a, 'b> {
    book: &'b Book,
    facts: &'a Facts,
    message: &'a Message,
}

impl<'b> Resolver<'_, 'b> {
    fn needs(&self, clue: &Clue<'b>) -> Vec<Need<'b>> {
        let rule = clue.rule;
        let contains = |text: &String| self.facts.files_naming(text).next().is_some();
        let has = rule.has.is_empty() || self.facts.has_any("", &rule.has);
        let says = rule.contains.is_empty() || rule.contains.iter().any(contains);
        if !has || !says {
            return Vec::new();
        }
        let Some(written) = clue.path.as_deref() else {
            let paths = match rule.found.is_empty() {
                true => vec![None],
                false => self.found(clue).into_iter().map(Some).collect(),
            };
            let needs = paths.into_iter().flat_map(|path| self.at(clue, path));
            return needs.collect();
        };
        let path = self.relative(written, &clue.line);
        path.map_or_else(Vec::new, |path| {
            self.at(clue, Some(self.facts.without_links(&path)))
        })
    }

    /// What is needed at a path, or wherever it is.
    fn at(&self, clue: &Clue<'b>, path: Option<String>) -> Vec<Need<'b>> {
        let rule = clue.rule;
        if !self.path_holds(rule, path.as_deref()) {
            return Vec::new();
        }
        let mut need = Need {
            rule,
            lack: rule.needs,
            state: rule.state,
            ecosystem: rule.ecosystem.as_deref(),
            place: path
                .as_deref()
                .and_then(|path| self.book.place(self.facts, path)),
            path,
            name: clue.name.clone(),
            port: clue.port,
            folder: String::new(),
            priority: rule.priority,
            line: clue.line.clone(),
        };
        let mut needs = Vec::new();
        if need.lack == Lack::ByPlace {
            needs.extend(self.folder_above(&need));
            if !self.told_by_place(&mut need) {
                return needs;
            }
        }
        self.complete(&mut need);
        needs.push(need);
        needs
    }

    /// The paths of the project that a rule may be about where the text names none.
    fn found(&self, clue: &Clue<'b>) -> Vec<String> {
        let mut found = Vec::new();
        for pattern in &clue.rule.found {
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
                let like = listed.filter(|path| paths::covers(&filled, path));
                found.extend(like.take(MOST_MATCHES).cloned());
            }
        }
        found.dedup();
        found.truncate(MOST_MATCHES);
        found
    }

    /// A relative path may start at the file that names it.
    fn relative(&self, path: &str, line: &str) -> Option<String> {
        let plain = self.facts.relative(path);
        if !path.starts_with('.') || plain.as_deref().is_some_and(|path| self.facts.exists(path)) {
            return plain;
        }
        let named = paths::mentioned(line);
        let others = named.iter().filter(|other| !other.starts_with('.'));
        let beside = others.filter_map(|other| {
            let file = self.facts.relative(other)?;
            paths::resolved(paths::parent(&file), path)
        });
        beside.rev().find(|found| *found != path).or(plain)
    }

    fn path_holds(&self, rule: &NeedRule, path: Option<&str>) -> bool {
        let Some(path) = path else {
            return rule.path_is.is_empty();
        };
        let fact = self.facts.path(path);
        let fact_holds = |test: fn(&super::facts::PathFact) -> bool| fact.is_some_and(test);
        let holds = |is: &PathIs| match is {
            PathIs::Missing => self.facts.is_missing(path),
            PathIs::There => self.facts.exists(path),
            PathIs::File => self.facts.thing(path) == Some(Thing::File),
            PathIs::Folder => self.facts.thing(path) == Some(Thing::Folder),
            PathIs::EmptyFolder => fact_holds(|fact| fact.what == Thing::Folder && fact.empty),
            PathIs::Dangling => self.facts.thing(path) == Some(Thing::Dangling),
            PathIs::Crlf => fact_holds(|fact| fact.crlf),
            PathIs::NotExecutable => {
                fact_holds(|fact| fact.what == Thing::File && !fact.executable)
            }
            PathIs::LfsPointer => fact_holds(|fact| fact.lfs_pointer),
            PathIs::NotInUse => fact_holds(|fact| fact.in_use != Some(true)),
            PathIs::StartsWithMark => fact_holds(|fact| fact.starts_with_mark),
            PathIs::InSubmodule => self
                .facts
                .submodules
                .iter()
                .any(|one| paths::covers(one, path)),
            PathIs::InCache => {
                let place = self.book.place(self.facts, path);
                place.is_some_and(|place| place.holds == Holds::Cache)
            }
        };
        rule.path_is.iter().all(holds)
    }

    /// Where the folder of a missing path is missing, too, the folder may be all that is needed.
    fn folder_above(&self, need: &Need<'b>) -> Option<Need<'b>> {
        let path = need.path.as_deref()?;
        let above = paths::parent(path);
        let packages = need
            .place
            .is_some_and(|place| place.holds == Holds::Packages);
        if need.state != State::Missing || packages || !self.facts.is_missing(above) {
            return None;
        }
        // Who writes a file wants its folder; who reads one may want the file.
        let is_writing = self.book.is_writing(&self.message.text);
        let change = if is_writing { 5 } else { -5 };
        Some(Need {
            lack: Lack::Folder,
            priority: need.priority + change,
            ..need.clone()
        })
    }

    /// Tells by the path what is needed; false if that cannot be told.
    fn told_by_place(&self, need: &mut Need<'b>) -> bool {
        let Some(path) = need.path.as_deref() else {
            return false;
        };
        let Some(place) = need.place else {
            // What is nobody's product is a person's file: it can be missing, but not repaired.
            need.lack = Lack::File;
            return need.state == State::Missing && self.facts.is_missing(path);
        };
        need.ecosystem = need.ecosystem.or(place.ecosystem.as_deref());
        need.lack = match place.holds {
            Holds::Packages if need.ecosystem.is_none() => return false,
            Holds::Packages => Lack::Packages,
            Holds::Output => Lack::Output,
            Holds::Generated => Lack::Generated,
            Holds::Cache => Lack::Cache,
            Holds::Marks => Lack::Gone,
        };
        true
    }

    /// Adds what follows from the rest: the folder, and whether packages are missing or damaged.
    fn complete(&self, need: &mut Need<'b>) {
        let start = match &need.path {
            Some(path) => path.clone(),
            None => self.facts.at.clone(),
        };
        need.folder = self.folder_of(need.ecosystem, &start);
        if need.lack != Lack::Packages {
            return;
        }
        if need.state == State::Missing && self.is_damaged(need) {
            need.state = State::Broken;
        }
        if need.state == State::Broken && self.is_missing_beside_an_interpreter(need) {
            need.state = State::Missing;
        }
    }

    /// Whether all that is wrong is a program that is not there, in an environment whose interpreter is.
    fn is_missing_beside_an_interpreter(&self, need: &Need<'b>) -> bool {
        let Some(path) = need.path.as_deref() else {
            return false;
        };
        let interpreter = paths::interpreter_beside(path);
        self.facts.thing(path) == Some(Thing::Nothing)
            && interpreter.is_some_and(|interpreter| self.facts.exists(&interpreter))
    }

    /// The nearest folder from which packages of the ecosystem are managed.
    fn folder_of(&self, ecosystem: Option<&str>, start: &str) -> String {
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
        let all = paths::upwards(start).chain(std::iter::once(""));
        all.filter(|folder| *folder != start || start.is_empty() || self.facts.exists(start))
            .find(managed)
            .unwrap_or_default()
            .to_owned()
    }

    /// Whether something is left of the packages that are missing.
    fn is_damaged(&self, need: &Need<'b>) -> bool {
        let dangling = |path: &str| self.facts.thing(path) == Some(Thing::Dangling);
        if let Some(path) = &need.path {
            return paths::upwards(path).any(dangling);
        }
        let Some(name) = &need.name else {
            return false;
        };
        let folders = self.book.managers().flat_map(|manager| &manager.folders);
        let mut places = folders.map(|folder| {
            let folder = paths::join(&need.folder, folder);
            paths::join(&folder, name)
        });
        places.any(|place| dangling(&place) || self.facts.exists(&place))
    }
}
