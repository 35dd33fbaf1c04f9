//! Built-in commands for a need: from its rule, from the package manager, from the scripts of the project.

use super::book::Book;
use super::data::{Lack, Manager, StateCommand, Work};
use super::deed::Entry;
use super::facts::Facts;
use super::feasible::{chosen_manager, obstacle};
use super::fit;
use super::message::Message;
use super::need::Need;
use super::paths;
use crate::action::shell_quote;
use crate::failure::Kind;

/// The programs that built-in commands begin with, beside package managers and those in the data.
pub(super) const PROGRAMS: [&str; 3] = ["cp", "make", "just"];

/// A command that may be offered for a need.
pub(super) struct Candidate {
    pub(super) command: String,
    pub(super) folder: String,
    /// Whether it still has to show that it fits.
    pub(super) unproven: bool,
}

impl Candidate {
    /// The command, run in its folder from the root of the project.
    pub(super) fn in_its_folder(&self) -> String {
        if self.folder.is_empty() {
            return self.command.clone();
        }
        format!("cd {} && {}", self.folder, self.command)
    }
}

/// The commands that a message advises and that run scripts of the project, and nothing else.
pub(super) fn advised(book: &Book, facts: &Facts, message: &Message) -> Vec<Entry> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:@%+=,- ".contains(c);
    let texts = message.advised().filter(|text| text.chars().all(plain));
    let entries = texts.map(|text| Entry::read(book, facts, &text));
    let own = |entry: &Entry| {
        let mut outer = entry.deeds.iter().filter(|deed| deed.depth == 0);
        outer.all(|deed| deed.script.is_some() || deed.file.is_some())
    };
    entries
        .filter(|entry| !entry.deeds.is_empty() && own(entry))
        .collect()
}

/// The built-in commands for a need. Where it is about rights, a full disk or memory there are none.
pub(super) fn candidates(
    book: &Book,
    facts: &Facts,
    kind: Kind,
    need: &Need<'_>,
) -> Vec<Candidate> {
    let is_for_people = [Kind::PermissionDenied, Kind::DiskFull, Kind::OutOfMemory];
    if is_for_people.contains(&kind) {
        return Vec::new();
    }
    let mut all: Vec<Candidate> = of_rule(facts, need).collect();
    if matches!(need.lack, Lack::File | Lack::ByPlace | Lack::Variable) {
        all.extend(of_templates(book, facts));
    }
    match need.lack {
        Lack::Packages => all.extend(of_manager(book, facts, need)),
        Lack::Output | Lack::Generated | Lack::Schema | Lack::File => {
            all.extend(of_scripts(book, facts));
        }
        _ => {}
    }
    all
}

fn of_rule<'n>(facts: &'n Facts, need: &'n Need<'_>) -> impl Iterator<Item = Candidate> + 'n {
    let fitting = need.rule.command.iter();
    let fitting = fitting.filter(|one| one.has.is_empty() || facts.has_any("", &one.has));
    fitting.filter_map(|template| {
        Some(Candidate {
            command: filled(&template.run, need, &shell_quote)?,
            folder: String::new(),
            unproven: false,
        })
    })
}

/// Fills a template with what the need is about; none if that is not known.
pub(super) fn filled(
    template: &str,
    need: &Need<'_>,
    quote: &dyn Fn(&str) -> String,
) -> Option<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (key, behind) = after.split_once("}}")?;
        let path = need.path.as_deref();
        let value = match key.trim() {
            "path" => path.map(str::to_owned),
            "folder" => path
                .map(paths::parent)
                .filter(|folder| !folder.is_empty())
                .map(str::to_owned),
            "name" => need.name.clone(),
            "port" => need.port.map(|port| port.to_string()),
            _ => None,
        };
        text.push_str(before);
        text.push_str(&quote(&value?));
        rest = behind;
    }
    text.push_str(rest);
    Some(text)
}

/// Copies of templates that are not there yet.
fn of_templates(book: &Book, facts: &Facts) -> Vec<Candidate> {
    let copy = |file: &String| {
        let mut marks = book.template_marks();
        let target = marks.find_map(|mark| paths::without_mark(file, mark))?;
        facts.is_missing(&target).then(|| Candidate {
            command: format!("cp {} {}", shell_quote(file), shell_quote(&target)),
            folder: String::new(),
            unproven: true,
        })
    };
    facts.listed.iter().filter_map(copy).collect()
}

fn of_manager(book: &Book, facts: &Facts, need: &Need<'_>) -> Vec<Candidate> {
    if !fit::is_declared(book, facts, need) {
        return Vec::new();
    }
    let Some(manager) = manager_for(book, facts, need) else {
        return Vec::new();
    };
    let fits = |one: &&StateCommand| {
        let has = one.has.is_empty() || facts.has_any(&need.folder, &one.has);
        one.states.contains(&need.state) && has && !facts.has_any(&need.folder, &one.lacks)
    };
    let candidates = manager.command.iter().filter(fits).map(|one| Candidate {
        command: one.run.clone(),
        folder: need.folder.clone(),
        unproven: false,
    });
    let can_work = |one: &Candidate| {
        let entry = Entry::read(book, facts, &one.in_its_folder());
        obstacle(book, facts, &entry).is_none()
    };
    candidates.filter(can_work).take(1).collect()
}

/// The manager that the project uses, or the usual one where its wishes are there.
fn manager_for<'b>(book: &'b Book, facts: &Facts, need: &Need<'_>) -> Option<&'b Manager> {
    let chosen = chosen_manager(book, facts, &need.folder, need.ecosystem?);
    let usual = || {
        let mut all = fit::managers(book, need);
        all.find(|manager| manager.usual && facts.has_any(&need.folder, &manager.manifests))
    };
    chosen.or_else(usual)
}

/// Scripts and targets of the project, each as the command that runs it.
fn of_scripts(book: &Book, facts: &Facts) -> Vec<Candidate> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_:.-".contains(c);
    let mut all = Vec::new();
    for (runner, scripts) in &facts.scripts {
        let Some(prefix) = prefix(book, facts, runner) else {
            continue;
        };
        let makes = |name: &str| {
            let making = [Work::Generate, Work::Build, Work::Migrate];
            let works = book.works_of_name(name);
            works.iter().any(|work| making.contains(work))
        };
        let names = scripts.keys();
        let names = names.filter(|name| name.chars().all(plain) && makes(name));
        all.extend(names.map(|name| Candidate {
            command: format!("{prefix} {name}"),
            folder: String::new(),
            unproven: true,
        }));
    }
    all
}

/// What runs the scripts of a runner.
fn prefix(book: &Book, facts: &Facts, runner: &str) -> Option<String> {
    match runner {
        "package.json" => {
            let manager = chosen_manager(book, facts, "", "node");
            let name = manager.map_or("npm", |manager| manager.name.as_str());
            Some(format!("{name} run"))
        }
        "make" | "just" => Some(runner.to_owned()),
        _ => None,
    }
}
