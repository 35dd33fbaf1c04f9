//! Matches commands with required packages: missing, damaged, outdated or conflicting.

use super::{RequirementMatch, RequirementMatcher};
use crate::repair::command_effects::{CommandAnalysis, CommandEffect};
use crate::repair::failure_requirement::Requirement;
use crate::repair::path_strings;
use crate::repair::project_facts::ProjectFacts;
use crate::repair::repair_catalog::RepairCatalog;
use crate::repair::repair_knowledge_file::{EffectKind, PackageManager, RequirementState};

impl RequirementMatcher<'_> {
    pub(super) fn match_packages(
        &self,
        need: &Requirement<'_>,
        entry: &CommandAnalysis,
    ) -> Option<RequirementMatch> {
        let works = [EffectKind::Install, EffectKind::Lock, EffectKind::Rebuild];
        let of_ecosystem = |deed: &&CommandEffect| {
            deed.has_any_effect(&works) && deed.ecosystem.as_deref() == need.ecosystem
        };
        let installs: Vec<&CommandEffect> = entry.effects.iter().filter(of_ecosystem).collect();
        let missing =
            |deed: &&&CommandEffect| deed.offline && !self.is_installable_offline(need, deed);
        if installs.is_empty() || installs.iter().find(missing).is_some() {
            return None;
        }
        if !self.installs_missing_package(need, &installs) {
            return None;
        }
        let preference = self.package_preference(need, entry, &installs)?;
        RequirementMatch::tied(preference)
    }

    fn package_preference(
        &self,
        need: &Requirement<'_>,
        entry: &CommandAnalysis,
        installs: &[&CommandEffect],
    ) -> Option<u8> {
        let does = |work| installs.iter().any(|deed| deed.has_effect(work));
        let fresh = self.is_clean_install(need, entry, installs);
        let frozen = installs.iter().all(|deed| deed.frozen);
        let loose = installs.iter().any(|deed| deed.loose);
        let plain = does(EffectKind::Install);
        // Options that override conflicts are only for conflicts, and newer versions were not requested.
        let upgrades = does(EffectKind::Upgrade);
        let extra = 3 * (u8::from(loose) + u8::from(upgrades));
        match need.state {
            RequirementState::Missing | RequirementState::Outdated if fresh => Some(2 + extra),
            RequirementState::Missing | RequirementState::Outdated if plain => Some(extra),
            RequirementState::Missing | RequirementState::Outdated => None,
            RequirementState::Broken => fresh.then_some(extra),
            RequirementState::Drifted if frozen || !does(EffectKind::Lock) => None,
            RequirementState::Drifted if fresh => Some(2 + extra),
            RequirementState::Drifted => Some(extra),
            RequirementState::Unresolved => loose.then_some(u8::from(fresh)),
            RequirementState::Native if does(EffectKind::Rebuild) => Some(0),
            RequirementState::Native => fresh.then_some(1),
        }
    }

    /// Returns true if everything can be installed offline: the lockfile contains no URL.
    fn is_installable_offline(&self, need: &Requirement<'_>, deed: &CommandEffect) -> bool {
        let manager = deed
            .manager
            .as_deref()
            .and_then(|name| self.book.manager(name));
        let has = |folder: &String| self.facts.exists(folder);
        if !deed.sources.is_empty() {
            return deed.sources.iter().all(has);
        }
        let stores = manager.into_iter().flat_map(|manager| &manager.stores);
        let mut stores = stores.map(|store| path_strings::join(&need.directory, store));
        if stores.any(|store| has(&store)) {
            return true;
        }
        let locks = manager.into_iter().flat_map(|manager| &manager.locks);
        let mut locks = locks.map(|lock| path_strings::join(&need.directory, lock));
        let lock = locks.find(|lock| self.facts.exists(lock));
        // A manager that reported a conflict had read the requirements of every package.
        let was_read = need.state == RequirementState::Unresolved;
        if was_read || lock.is_none() && need.state == RequirementState::Drifted {
            return true;
        }
        let known = self.facts.named_in.contains_key("https");
        let addresses = ["http", "https"];
        let mut addressed = addresses
            .iter()
            .flat_map(|name| self.facts.files_naming(name));
        known && lock.is_some_and(|lock| !addressed.any(|file| file == lock))
    }

    /// Returns true if the packages are reinstalled from scratch.
    fn is_clean_install(
        &self,
        need: &Requirement<'_>,
        entry: &CommandAnalysis,
        installs: &[&CommandEffect],
    ) -> bool {
        if installs.iter().any(|deed| deed.fresh) {
            return true;
        }
        if let Some(path) = &need.path {
            return entry.removes(path);
        }
        let managers = managers(self.book, need);
        let mut folders = managers.flat_map(|manager| &manager.directories);
        folders.any(|folder| entry.removes(&path_strings::join(&need.directory, folder)))
    }

    /// Returns true if installing named packages includes the missing one, or an unnamed install can resolve it.
    fn installs_missing_package(
        &self,
        need: &Requirement<'_>,
        installs: &[&CommandEffect],
    ) -> bool {
        let named = |deed: &&&CommandEffect| !deed.packages.is_empty();
        let Some(name) = need.name.as_deref() else {
            return !installs.iter().any(|deed| named(&deed));
        };
        let ecosystem = need.ecosystem.unwrap_or_default();
        let packages = self.book.packages_of(ecosystem, name);
        let is_it = |one: &String| packages.iter().any(|package| is_same_package(package, one));
        match installs.iter().find(named) {
            Some(deed) => deed.packages.iter().any(is_it),
            None => {
                let knows = |deed: &&CommandEffect| self.reads_list_naming(deed, &packages);
                is_declared(self.book, self.facts, need) && installs.iter().any(knows)
            }
        }
    }

    /// Returns true if the manifests that an install reads name the package, or files they include may do so.
    fn reads_list_naming(&self, deed: &CommandEffect, packages: &[String]) -> bool {
        let text = |path: &&String| self.facts.path_fact(path)?.text.as_deref();
        let manager = deed
            .manager
            .as_deref()
            .and_then(|name| self.book.manager(name));
        let packaging = manager.into_iter().flat_map(|manager| &manager.packaging);
        let packaging: Vec<String> = packaging
            .flat_map(|file| {
                deed.projects
                    .iter()
                    .map(move |folder| path_strings::join(folder, file))
            })
            .collect();
        let lists = || {
            let lists = deed.reads.iter().filter(|path| path.ends_with(".txt"));
            lists.chain(&packaging)
        };
        let names = |path: &String| {
            let mut naming = packages.iter().flat_map(|one| self.facts.files_naming(one));
            naming.any(|file| file == path)
        };
        let includes = |text: &str| text.lines().any(|line| line.starts_with(['-', '.']));
        let known = packages
            .iter()
            .any(|one| self.facts.named_in.contains_key(one));
        !known
            || lists().next().is_none()
            || lists().any(names)
            || lists().filter_map(|path| text(&path)).any(includes)
    }
}

/// Returns true if a plain install provides the missing package: it is declared, or nothing is installed at all.
pub(in crate::repair) fn is_declared(
    book: &RepairCatalog,
    facts: &ProjectFacts,
    need: &Requirement<'_>,
) -> bool {
    let (Some(name), Some(ecosystem)) = (need.name.as_deref(), need.ecosystem) else {
        return true;
    };
    let all: Vec<&PackageManager> = managers(book, need).collect();
    let mut folders = all.iter().flat_map(|manager| &manager.directories);
    let known = facts.named_in.contains_key(name);
    let packages = book.packages_of(ecosystem, name);
    let mut files = packages
        .iter()
        .flat_map(|package| facts.files_naming(package));
    let declares = |file: &str| {
        let base = path_strings::base_name(file);
        all.iter().any(|manager| {
            let mut lists = manager.manifests.iter().chain(&manager.locks);
            lists.any(|list| path_strings::matches_glob(list, base))
        })
    };
    let nothing_there = folders
        .any(|folder| facts.is_missing(&path_strings::join(&need.directory, folder)))
        && need.rule.resources.iter().any(|thing| thing == "program");
    !known || nothing_there || files.any(declares)
}

/// Returns the managers of the requirement's ecosystem.
pub(in crate::repair) fn managers<'b>(
    book: &'b RepairCatalog,
    need: &Requirement<'_>,
) -> impl Iterator<Item = &'b PackageManager> {
    let ecosystem = need.ecosystem.map(str::to_owned);
    let all = book.managers();
    all.filter(move |manager| Some(manager.ecosystem.as_str()) == ecosystem.as_deref())
}

/// Compares package names, ignoring case and word separators.
fn is_same_package(one: &str, other: &str) -> bool {
    let plain = |name: &str| name.to_ascii_lowercase().replace(['_', '.'], "-");
    plain(one) == plain(other)
}
