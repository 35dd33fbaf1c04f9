//! Preconditions of a command in this project: its programs, scripts and files must exist.

use super::command_effects::{CommandAnalysis, CommandEffect};
use super::path_strings;
use super::project_facts::{FsEntryKind, ProjectFacts};
use super::repair_catalog::RepairCatalog;
use super::repair_knowledge_file::{EffectKind, PackageManager};

/// Returns what prevents a command from working; none if nothing is known to.
pub(super) fn unmet_precondition(
    book: &RepairCatalog,
    facts: &ProjectFacts,
    entry: &CommandAnalysis,
) -> Option<String> {
    if entry.effects.is_empty() {
        return Some("the effect of the command is unknown".to_owned());
    }
    let mut made: Vec<&String> = Vec::new();
    for deed in entry.effects.iter().filter(|deed| deed.depth == 0) {
        let is_made = |path: &str| made.iter().any(|one| path_strings::covers(one, path));
        let found = missing_program(facts, deed, &is_made)
            .or_else(|| missing_script(facts, deed))
            .or_else(|| missing_file(facts, deed, &is_made))
            .or_else(|| wrong_manager(book, facts, deed))
            .or_else(|| directory_without_package(book, facts, deed));
        if found.is_some() {
            return found;
        }
        if deed.has_any_effect(&[
            EffectKind::Create,
            EffectKind::MakeDirectory,
            EffectKind::Build,
            EffectKind::Generate,
        ]) {
            made.extend(&deed.targets);
        }
    }
    None
}

fn missing_program(
    facts: &ProjectFacts,
    deed: &CommandEffect,
    is_made: &dyn Fn(&str) -> bool,
) -> Option<String> {
    match &deed.program_path {
        Some(path) if is_made(path) => None,
        Some(path) => is_unusable(facts, path).then(|| format!("`{path}` does not exist")),
        None if deed.builtin || deed.program.is_empty() => None,
        None => (!facts.has_program(&deed.program))
            .then(|| format!("program `{}` not found", deed.program)),
    }
}

/// Returns true if the program lies in an environment whose interpreter is missing.
fn is_unusable(facts: &ProjectFacts, path: &str) -> bool {
    let interpreter = path_strings::sibling_interpreter(path);
    facts.is_missing(path)
        || interpreter.is_some_and(|path| facts.entry_at(&path) == Some(FsEntryKind::DanglingLink))
}

fn missing_script(facts: &ProjectFacts, deed: &CommandEffect) -> Option<String> {
    let (runner, name) = deed.script.as_ref()?;
    let known = if deed.members {
        facts.member_scripts(runner, name).next().is_some()
    } else {
        facts.script(runner, name).is_some()
    };
    (!known).then(|| format!("the project has no {runner} script `{name}`"))
}

fn missing_file(
    facts: &ProjectFacts,
    deed: &CommandEffect,
    is_made: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let mut needed = deed.reads.iter().chain(&deed.file);
    let missing = needed
        .find(|path| !path.contains(['*', '?', '$']) && facts.is_missing(path) && !is_made(path));
    missing.map(|path| format!("`{path}` does not exist"))
}

/// Returns a directory that is to be installed as a package but is not one.
fn directory_without_package(
    book: &RepairCatalog,
    facts: &ProjectFacts,
    deed: &CommandEffect,
) -> Option<String> {
    let manager = book.manager(deed.manager.as_deref()?)?;
    let is_none = |folder: &&String| !facts.has_any(folder, &manager.packaging);
    let folder = deed.projects.iter().find(is_none);
    let folder = folder.filter(|_| !manager.packaging.is_empty())?;
    let wanted = path_strings::join(folder, manager.packaging.first()?);
    Some(format!("`{wanted}` does not exist"))
}

/// Returns a package manager that the project does not use, or that contradicts its lockfile.
fn wrong_manager(
    book: &RepairCatalog,
    facts: &ProjectFacts,
    deed: &CommandEffect,
) -> Option<String> {
    let wanted = |name: &String| facts.listed.iter().any(|path| has_base_name(path, name));
    if !deed.required_files.is_empty() && !deed.required_files.iter().any(wanted) {
        return Some(format!(
            "`{}` does not exist",
            deed.required_files.join("` or `")
        ));
    }
    let manager = book.manager(deed.manager.as_deref()?)?;
    let everywhere =
        deed.kinds.is_empty() || deed.has_effect(EffectKind::Provide) || affects_manager_only(deed);
    if everywhere || deed.script.is_some() || manager.manifests.is_empty() {
        return None;
    }
    let folder = deed.directory.as_str();
    if !facts.has_any(folder, &manager.manifests) {
        let manifest = manager.manifests.first().map_or("", String::as_str);
        return Some(format!(
            "`{}` does not exist",
            path_strings::join(folder, manifest)
        ));
    }
    let chosen = chosen_manager(book, facts, folder, &manager.ecosystem)?;
    let is_it = chosen.name == manager.name || manager.locks.is_empty();
    (!is_it).then(|| format!("the project uses {}", chosen.name))
}

/// Returns true if it only affects data the manager keeps for all projects, such as its cache.
fn affects_manager_only(deed: &CommandEffect) -> bool {
    deed.has_effect(EffectKind::Clean) && deed.targets.is_empty() && !deed.things.is_empty()
}

fn has_base_name(path: &str, name: &str) -> bool {
    path_strings::matches_glob(name, path_strings::base_name(path))
}

/// Returns the package manager of a directory: the one whose lockfile exists, or that the project declares.
pub(super) fn chosen_manager<'b>(
    book: &'b RepairCatalog,
    facts: &ProjectFacts,
    folder: &str,
    ecosystem: &str,
) -> Option<&'b PackageManager> {
    let of_ecosystem = || {
        let all = book.managers();
        all.filter(|manager| manager.ecosystem == ecosystem)
    };
    let named = facts.package_manager.as_deref();
    let by_name = of_ecosystem().find(|manager| Some(manager.name.as_str()) == named);
    let by_lock = || {
        path_strings::ancestors(folder)
            .chain(std::iter::once(""))
            .find_map(|folder| of_ecosystem().find(|one| facts.has_any(folder, &one.locks)))
    };
    by_name.or_else(by_lock)
}
