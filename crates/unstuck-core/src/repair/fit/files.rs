//! Files and folders: missing ones, left-over ones, their rights and line ends, what git points to.

use super::{Fit, Judge};
use crate::repair::data::Work;
use crate::repair::deed::Entry;
use crate::repair::need::Need;
use crate::repair::paths;

impl Judge<'_> {
    pub(super) fn file(&self, need: &Need<'_>, entry: &Entry) -> Option<Fit> {
        let path = need.path.as_deref()?;
        let creates = entry
            .doing(Work::Create)
            .any(|deed| deed.of.iter().any(|one| one == path));
        let restores = entry.doing(Work::Restore).any(|deed| {
            let all_gone = deed.of.iter().all(|one| self.facts.is_missing(one));
            all_gone && deed.of.iter().any(|one| one == path)
        });
        let by_script = entry
            .deeds
            .iter()
            .any(|deed| deed.file.is_some() || deed.script.is_some());
        match (creates, restores) {
            (true, _) => Fit::tied(0),
            (_, true) => Fit::tied(1),
            _ if by_script && self.makes(entry, path) => Fit::tied(2),
            _ => None,
        }
    }

    pub(super) fn folder(&self, need: &Need<'_>, entry: &Entry) -> Option<Fit> {
        let path = need.path.as_deref()?;
        let above = paths::parent(path);
        let is_it = |made: &String| made == above || made == path || paths::covers(above, made);
        let makes = entry
            .doing(Work::MakeFolder)
            .any(|deed| deed.of.iter().any(is_it));
        makes.then_some(Fit {
            preference: 0,
            tied: true,
        })
    }

    /// A file that was left behind: it must be there, and nobody who lives may need it.
    pub(super) fn gone(&self, need: &Need<'_>, entry: &Entry) -> Option<Fit> {
        let path = need.path.as_deref()?;
        if !entry.removes(path) || self.facts.is_missing(path) {
            return None;
        }
        let stops = entry.does(Work::Stop);
        let alive = self
            .facts
            .pid_files
            .get(path)
            .is_some_and(|file| file.alive);
        let fact = self.facts.path(path);
        let in_use = fact.is_some_and(|fact| fact.in_use == Some(true));
        match (alive || in_use, stops) {
            (true, false) => None,
            (true, true) => Fit::tied(1),
            (false, true) => Fit::tied(1),
            (false, false) => Fit::tied(0),
        }
    }

    /// Work on the very file that the failure names.
    pub(super) fn on_path(&self, need: &Need<'_>, entry: &Entry, work: Work) -> Option<Fit> {
        let path = need.path.as_deref()?;
        let of = || entry.doing(work).flat_map(|deed| &deed.of);
        if of().any(|one| one == path) {
            Fit::tied(0)
        } else if of().any(|one| paths::covers(one, path)) {
            Fit::tied(1)
        } else {
            None
        }
    }

    pub(super) fn fetched(&self, need: &Need<'_>, entry: &Entry) -> Option<Fit> {
        let wanted = &need.rule.things;
        let fetches = entry
            .doing(Work::Fetch)
            .any(|deed| deed.things.iter().any(|thing| wanted.contains(thing)));
        fetches.then_some(Fit {
            preference: 0,
            tied: true,
        })
    }

    /// Room on a disk comes from removing what lies where the failure could not write.
    pub(super) fn room(&self, need: &Need<'_>, entry: &Entry) -> Option<Fit> {
        let path = need.path.as_deref()?;
        let beside = paths::parent(path);
        let near = |one: &str| {
            paths::covers(one, path) || (!beside.is_empty() && paths::covers(beside, one))
        };
        let removing = [Work::Remove, Work::Clean];
        let mut deeds = entry.deeds.iter().filter(|deed| deed.does_any(&removing));
        let frees = deeds.any(|deed| deed.of.iter().any(|one| near(one)));
        frees.then_some(Fit {
            preference: 0,
            tied: true,
        })
    }

    pub(super) fn tool(&self, need: &Need<'_>, entry: &Entry) -> Option<Fit> {
        let wanted = &need.rule.things;
        let name = need.name.as_deref();
        let mut deeds = entry.deeds.iter();
        let provides = deeds.any(|deed| {
            let by_name = |one: &String| Some(one.as_str()) == name || wanted.contains(one);
            let mut things = deed.things.iter().chain(&deed.named);
            deed.does_any(&[Work::Provide, Work::Install]) && things.any(by_name)
        });
        provides.then_some(Fit {
            preference: 0,
            tied: true,
        })
    }
}
