//! Built-in commands for a requirement: from its rule, the package manager or the project's scripts.

use super::command_effects::CommandAnalysis;
use super::failure_message::FailureMessage;
use super::failure_requirement::Requirement;
use super::matching;
use super::path_strings;
use super::preconditions::{chosen_manager, unmet_precondition};
use super::project_facts::ProjectFacts;
use super::repair_catalog::RepairCatalog;
use super::repair_knowledge_file::{
    EffectKind, PackageManager, PackageStateCommand, RequirementKind,
};
use crate::failure::FailureKind;
use crate::recovery_plan::shell_quote;

/// Programs of built-in commands, in addition to package managers and those in the data.
pub(super) const PROGRAMS: [&str; 3] = ["cp", "make", "just"];

/// A command that may be suggested for a requirement.
pub(super) struct CommandCandidate {
    pub(super) command: String,
    pub(super) directory: String,
    /// If set, the command must still be shown to match the requirement.
    pub(super) needs_proof: bool,
}

impl CommandCandidate {
    /// Returns the command, run in its directory from the project root.
    pub(super) fn with_cd(&self) -> String {
        if self.directory.is_empty() {
            return self.command.clone();
        }
        format!("cd {} && {}", self.directory, self.command)
    }
}

/// Returns the commands that a message advises and that only run scripts of the project.
pub(super) fn advised_commands(
    book: &RepairCatalog,
    facts: &ProjectFacts,
    message: &FailureMessage,
) -> Vec<CommandAnalysis> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:@%+=,- ".contains(c);
    let texts = message
        .advised_commands()
        .filter(|text| text.chars().all(plain));
    let entries = texts.map(|text| CommandAnalysis::analyze(book, facts, &text));
    let own = |entry: &CommandAnalysis| {
        let mut outer = entry.effects.iter().filter(|deed| deed.depth == 0);
        outer.all(|deed| deed.script.is_some() || deed.file.is_some())
    };
    entries
        .filter(|entry| !entry.effects.is_empty() && own(entry))
        .collect()
}

/// Returns the built-in commands for a requirement. There are none for permissions, a full disk or memory.
pub(super) fn builtin_candidates(
    book: &RepairCatalog,
    facts: &ProjectFacts,
    kind: FailureKind,
    need: &Requirement<'_>,
) -> Vec<CommandCandidate> {
    let is_for_people = [
        FailureKind::PermissionDenied,
        FailureKind::DiskFull,
        FailureKind::OutOfMemory,
    ];
    if is_for_people.contains(&kind) {
        return Vec::new();
    }
    let mut all: Vec<CommandCandidate> = from_rule(facts, need).collect();
    if matches!(
        need.kind,
        RequirementKind::File | RequirementKind::ByPath | RequirementKind::Variable
    ) {
        all.extend(from_templates(book, facts));
    }
    match need.kind {
        RequirementKind::Packages => all.extend(from_package_manager(book, facts, need)),
        RequirementKind::Output
        | RequirementKind::Generated
        | RequirementKind::Schema
        | RequirementKind::File => {
            all.extend(from_scripts(book, facts));
        }
        _ => {}
    }
    all
}

fn from_rule<'n>(
    facts: &'n ProjectFacts,
    need: &'n Requirement<'_>,
) -> impl Iterator<Item = CommandCandidate> + 'n {
    let fitting = need.rule.command.iter();
    let fitting = fitting.filter(|one| one.has.is_empty() || facts.has_any("", &one.has));
    fitting.filter_map(|template| {
        Some(CommandCandidate {
            command: fill_template(&template.run, need, &shell_quote)?,
            directory: String::new(),
            needs_proof: false,
        })
    })
}

/// Fills a template with the values of the requirement; none if a value is unknown.
pub(super) fn fill_template(
    template: &str,
    need: &Requirement<'_>,
    quote: &dyn Fn(&str) -> String,
) -> Option<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (key, behind) = after.split_once("}}")?;
        let path = need.path.as_deref();
        let value = match key.trim() {
            "path" => path.map(str::to_owned),
            "directory" | "folder" => path
                .map(path_strings::parent)
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

/// Returns commands that copy templates whose target does not exist yet.
fn from_templates(book: &RepairCatalog, facts: &ProjectFacts) -> Vec<CommandCandidate> {
    let copy = |file: &String| {
        let mut marks = book.template_marks();
        let target = marks.find_map(|mark| path_strings::without_mark(file, mark))?;
        facts.is_missing(&target).then(|| CommandCandidate {
            command: format!("cp {} {}", shell_quote(file), shell_quote(&target)),
            directory: String::new(),
            needs_proof: true,
        })
    };
    facts.listed.iter().filter_map(copy).collect()
}

fn from_package_manager(
    book: &RepairCatalog,
    facts: &ProjectFacts,
    need: &Requirement<'_>,
) -> Vec<CommandCandidate> {
    if !matching::is_declared(book, facts, need) {
        return Vec::new();
    }
    let Some(manager) = manager_for(book, facts, need) else {
        return Vec::new();
    };
    let fits = |one: &&PackageStateCommand| {
        let has = one.has.is_empty() || facts.has_any(&need.directory, &one.has);
        one.states.contains(&need.state) && has && !facts.has_any(&need.directory, &one.has_not)
    };
    let candidates = manager
        .command
        .iter()
        .filter(fits)
        .map(|one| CommandCandidate {
            command: one.run.clone(),
            directory: need.directory.clone(),
            needs_proof: false,
        });
    let can_work = |one: &CommandCandidate| {
        let entry = CommandAnalysis::analyze(book, facts, &one.with_cd());
        unmet_precondition(book, facts, &entry).is_none()
    };
    candidates.filter(can_work).take(1).collect()
}

/// Returns the manager that the project uses, or the default one if its manifests exist.
fn manager_for<'b>(
    book: &'b RepairCatalog,
    facts: &ProjectFacts,
    need: &Requirement<'_>,
) -> Option<&'b PackageManager> {
    let chosen = chosen_manager(book, facts, &need.directory, need.ecosystem?);
    let usual = || {
        let mut all = matching::managers(book, need);
        all.find(|manager| manager.default && facts.has_any(&need.directory, &manager.manifests))
    };
    chosen.or_else(usual)
}

/// Returns the scripts and targets of the project, each as the command that runs it.
fn from_scripts(book: &RepairCatalog, facts: &ProjectFacts) -> Vec<CommandCandidate> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_:.-".contains(c);
    let mut all = Vec::new();
    for (runner, scripts) in &facts.scripts {
        let Some(prefix) = runner_prefix(book, facts, runner) else {
            continue;
        };
        let makes = |name: &str| {
            let making = [EffectKind::Generate, EffectKind::Build, EffectKind::Migrate];
            let works = book.effects_of_script_name(name);
            works.iter().any(|work| making.contains(work))
        };
        let names = scripts.keys();
        let names = names.filter(|name| name.chars().all(plain) && makes(name));
        all.extend(names.map(|name| CommandCandidate {
            command: format!("{prefix} {name}"),
            directory: String::new(),
            needs_proof: true,
        }));
    }
    all
}

/// Returns the command prefix that runs the scripts of a runner.
fn runner_prefix(book: &RepairCatalog, facts: &ProjectFacts, runner: &str) -> Option<String> {
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
