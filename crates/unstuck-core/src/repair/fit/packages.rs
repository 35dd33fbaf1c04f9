//! Packages: missing, damaged, behind the wishes, or not to be reconciled.

use super::{Fit, Judge};
use crate::repair::book::Book;
use crate::repair::data::{Manager, State, Work};
use crate::repair::deed::{Deed, Entry};
use crate::repair::facts::Facts;
use crate::repair::need::Need;
use crate::repair::paths;

impl Judge<'_> {
    pub(super) fn packages(&self, need: &Need<'_>, entry: &Entry) -> Option<Fit> {
        let works = [Work::Install, Work::Lock, Work::Rebuild];
        let of_ecosystem =
            |deed: &&Deed| deed.does_any(&works) && deed.ecosystem.as_deref() == need.ecosystem;
        let installs: Vec<&Deed> = entry.deeds.iter().filter(of_ecosystem).collect();
        let missing = |deed: &&&Deed| deed.offline && !self.is_all_here(need, deed);
        if installs.is_empty() || installs.iter().find(missing).is_some() {
            return None;
        }
        if !self.installs_what_is_missing(need, &installs) {
            return None;
        }
        let preference = self.preference(need, entry, &installs)?;
        Fit::tied(preference)
    }

    fn preference(&self, need: &Need<'_>, entry: &Entry, installs: &[&Deed]) -> Option<u8> {
        let does = |work| installs.iter().any(|deed| deed.does(work));
        let fresh = self.is_fresh(need, entry, installs);
        let frozen = installs.iter().all(|deed| deed.frozen);
        let loose = installs.iter().any(|deed| deed.loose);
        let plain = does(Work::Install);
        // What overrides contradictions is for contradictions, and nobody asked for newer versions.
        let upgrades = does(Work::Upgrade);
        let extra = 3 * (u8::from(loose) + u8::from(upgrades));
        match need.state {
            State::Missing | State::Outdated if fresh => Some(2 + extra),
            State::Missing | State::Outdated if plain => Some(extra),
            State::Missing | State::Outdated => None,
            State::Broken => fresh.then_some(extra),
            State::Drifted if frozen || !does(Work::Lock) => None,
            State::Drifted if fresh => Some(2 + extra),
            State::Drifted => Some(extra),
            State::Unresolved => loose.then_some(u8::from(fresh)),
            State::Native if does(Work::Rebuild) => Some(0),
            State::Native => fresh.then_some(1),
        }
    }

    /// Whether everything can be installed without the network: the lockfile names no address.
    fn is_all_here(&self, need: &Need<'_>, deed: &Deed) -> bool {
        let manager = deed
            .manager
            .as_deref()
            .and_then(|name| self.book.manager(name));
        let has = |folder: &String| self.facts.exists(folder);
        if !deed.sources.is_empty() {
            return deed.sources.iter().all(has);
        }
        let stores = manager.into_iter().flat_map(|manager| &manager.stores);
        let mut stores = stores.map(|store| paths::join(&need.folder, store));
        if stores.any(|store| has(&store)) {
            return true;
        }
        let locks = manager.into_iter().flat_map(|manager| &manager.locks);
        let mut locks = locks.map(|lock| paths::join(&need.folder, lock));
        let lock = locks.find(|lock| self.facts.exists(lock));
        // Whoever found a contradiction had read what every package wants.
        let was_read = need.state == State::Unresolved;
        if was_read || lock.is_none() && need.state == State::Drifted {
            return true;
        }
        let known = self.facts.named_in.contains_key("https");
        let addresses = ["http", "https"];
        let mut addressed = addresses
            .iter()
            .flat_map(|name| self.facts.files_naming(name));
        known && lock.is_some_and(|lock| !addressed.any(|file| file == lock))
    }

    /// Whether the packages are installed from nothing.
    fn is_fresh(&self, need: &Need<'_>, entry: &Entry, installs: &[&Deed]) -> bool {
        if installs.iter().any(|deed| deed.fresh) {
            return true;
        }
        if let Some(path) = &need.path {
            return entry.removes(path);
        }
        let managers = managers(self.book, need);
        let mut folders = managers.flat_map(|manager| &manager.folders);
        folders.any(|folder| entry.removes(&paths::join(&need.folder, folder)))
    }

    /// Whether an installation of named packages names the missing one, and any other can know of it.
    fn installs_what_is_missing(&self, need: &Need<'_>, installs: &[&Deed]) -> bool {
        let named = |deed: &&&Deed| !deed.named.is_empty();
        let Some(name) = need.name.as_deref() else {
            return !installs.iter().any(|deed| named(&deed));
        };
        let ecosystem = need.ecosystem.unwrap_or_default();
        let packages = self.book.packages_of(ecosystem, name);
        let is_it = |one: &String| packages.iter().any(|package| is_same(package, one));
        match installs.iter().find(named) {
            Some(deed) => deed.named.iter().any(is_it),
            None => {
                let knows = |deed: &&Deed| self.reads_what_names(deed, &packages);
                is_declared(self.book, self.facts, need) && installs.iter().any(knows)
            }
        }
    }

    /// Whether the lists that an installation reads name the package, or lists that these include may do so.
    fn reads_what_names(&self, deed: &Deed, packages: &[String]) -> bool {
        let text = |path: &&String| self.facts.path(path)?.text.as_deref();
        let manager = deed
            .manager
            .as_deref()
            .and_then(|name| self.book.manager(name));
        let packaging = manager.into_iter().flat_map(|manager| &manager.packaging);
        let packaging: Vec<String> = packaging
            .flat_map(|file| {
                deed.projects
                    .iter()
                    .map(move |folder| paths::join(folder, file))
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

/// Whether a plain installation brings what is missing: the project declares it, or nothing is installed at all.
pub(in crate::repair) fn is_declared(book: &Book, facts: &Facts, need: &Need<'_>) -> bool {
    let (Some(name), Some(ecosystem)) = (need.name.as_deref(), need.ecosystem) else {
        return true;
    };
    let all: Vec<&Manager> = managers(book, need).collect();
    let mut folders = all.iter().flat_map(|manager| &manager.folders);
    let known = facts.named_in.contains_key(name);
    let packages = book.packages_of(ecosystem, name);
    let mut files = packages
        .iter()
        .flat_map(|package| facts.files_naming(package));
    let declares = |file: &str| {
        let base = paths::base(file);
        all.iter().any(|manager| {
            let mut lists = manager.manifests.iter().chain(&manager.locks);
            lists.any(|list| paths::is_like(list, base))
        })
    };
    let nothing_there = folders.any(|folder| facts.is_missing(&paths::join(&need.folder, folder)))
        && need.rule.things.iter().any(|thing| thing == "program");
    !known || nothing_there || files.any(declares)
}

/// The managers of the need's ecosystem.
pub(in crate::repair) fn managers<'b>(
    book: &'b Book,
    need: &Need<'_>,
) -> impl Iterator<Item = &'b Manager> {
    let ecosystem = need.ecosystem.map(str::to_owned);
    let all = book.managers();
    all.filter(move |manager| Some(manager.ecosystem.as_str()) == ecosystem.as_deref())
}

/// Names of packages compare without regard to case and to the sign between their words.
fn is_same(one: &str, other: &str) -> bool {
    let plain = |name: &str| name.to_ascii_lowercase().replace(['_', '.'], "-");
    plain(one) == plain(other)
}
