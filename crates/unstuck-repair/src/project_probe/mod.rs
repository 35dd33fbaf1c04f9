//! Collects facts about a project before a repair is offered: its files, breakage, and running processes.
//!
//! Nothing is run or changed. Listing and reading are bounded, and no file outside the project is read; for a link that
//! leads out, only the existence of its target is checked. Unreadable facts stay unknown, and an unknown fact never
//! counts in favor of a repair.

mod installed_programs;
mod name_search;
mod path_facts;
mod process_facts;
mod project_listing;
mod scripts;

use std::ffi::OsStr;
use std::path::Path;

use unstuck_core::repair::{ProjectFacts, ProjectInspectionScope};

use project_listing::ProjectListing;

/// Collects the requested facts about a project, and those that repairs usually depend on.
///
/// `at` is the directory in which the failed command ran; `own_search_path` is the search path for programs, of which
/// only absolute directories outside the project are used.
pub fn probe_project(
    root: &Path,
    at: &Path,
    search_path: Option<&OsStr>,
    questions: &ProjectInspectionScope,
) -> ProjectFacts {
    let tree = ProjectListing::list(root);
    let mut facts = ProjectFacts {
        roots: root_spellings(root),
        listed: tree.names(),
        scripts: scripts::scripts_by_runner(&tree),
        package_manager: scripts::package_manager(&tree),
        submodules: scripts::submodules(&tree),
        programs: search_path
            .map(|path| installed_programs::existing_programs(path, root, &questions.programs)),
        ..ProjectFacts::default()
    };
    facts.working_dir = relative_dir(&facts, at);
    let asked = questions
        .paths
        .iter()
        .filter_map(|path| facts.relative(path));
    let copies = facts.listed.iter();
    let copies = copies.filter_map(|file| questions.template_target(file));
    let asked = asked.chain(copies).chain(facts.submodules.iter().cloned());
    let asked: std::collections::BTreeSet<String> = asked.collect();
    let open = process_facts::open_files(root);
    facts.paths = path_facts::path_facts(&tree, &asked, &open);
    facts.copy_facts_to_link_targets();
    facts.named_in = name_search::files_containing(&tree, &questions.names);
    facts.pid_files = process_facts::pid_files(&tree, &asked);
    facts.ports = process_facts::port_facts(root, &questions.ports, questions.processes);
    facts
}

/// Returns the spellings of the root that a message may use.
fn root_spellings(root: &Path) -> Vec<String> {
    let mut roots = vec![root.to_string_lossy().into_owned()];
    if let Ok(real) = root.canonicalize() {
        let real = real.to_string_lossy().into_owned();
        if !roots.contains(&real) {
            roots.push(real);
        }
    }
    roots
}

fn relative_dir(facts: &ProjectFacts, at: &Path) -> String {
    let given = at.to_string_lossy();
    let real = at.canonicalize().ok();
    let real = real.map(|real| real.to_string_lossy().into_owned());
    let inside = |path: &str| facts.relative(path).filter(|_| at.is_absolute());
    let found = inside(&given).or_else(|| inside(&real?));
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests;
