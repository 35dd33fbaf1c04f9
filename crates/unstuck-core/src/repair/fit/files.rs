//! Files and folders: missing ones, left-over ones, their rights and line ends, what git points to.

use super::{Fit, Judge};
use crate::repair::data::Work;
use crate::repair::deed::{Deed, Entry};
use crate::repair::need::Need;
use crate::repair::paths;

impl Judge<'_> {
    pub(super) fn file(&self, need: &Need<'_>, entry: &Entry) -> Option<Fit> {
        let path = need.path.as_deref()?;
        let brings =
            |one: &String| one == path || (paths::covers(one, path) && self.facts.is_missing(one));
        let creates = entry
            .doing(Work::Create)
            .any(|deed| deed.of.iter().any(brings));
        let restores = entry.doing(Work::Restore).any(|deed| {
            let all_gone = deed.of.iter().all(|one| self.facts.is_missing(one));
            all_gone && deed.of.iter().any(|one| one == path)
        });
        let by_script = || self.has_writing_script(entry) && self.makes(entry, path);
        match (creates, restores) {
            (true, _) => Fit::tied(0),
            (_, true) => Fit::tied(1),
            _ if by_script() => Fit::tied(2),
            _ => None,
        }
    }

    /// Whether it runs a script of the project that makes something.
    fn has_writing_script(&self, entry: &Entry) -> bool {
        let making = [
            Work::Generate,
            Work::Build,
            Work::Install,
            Work::Create,
            Work::MakeFolder,
        ];
        let text = |file: &String| self.facts.path(file)?.text.as_deref();
        entry.deeds.iter().any(|deed| {
            let own = deed.script.is_some() || deed.file.is_some();
            let writes = deed.file.as_ref().and_then(text);
            own && (deed.does_any(&making) || writes.is_some_and(|text| self.book.is_writing(text)))
        })
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
        let is_lockfile = self.book.is_lockfile(path);
        if is_lockfile || !entry.removes(path) || self.facts.is_missing(path) {
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

    /// Line ends of the file that is named or, where none is, of a file that has wrong ones.
    pub(super) fn line_ends(&self, need: &Need<'_>, entry: &Entry) -> Option<Fit> {
        if need.path.is_some() {
            return self.on_path(need, entry, Work::LineEnds);
        }
        let by_mark = need.rule.things.iter().any(|thing| thing == "mark");
        let is_wrong = |path: &String| {
            let fact = self.facts.path(path);
            fact.is_some_and(|fact| {
                if by_mark {
                    fact.starts_with_mark
                } else {
                    fact.crlf
                }
            })
        };
        let mut of = entry.doing(Work::LineEnds).flat_map(|deed| &deed.of);
        of.any(is_wrong).then_some(Fit {
            preference: 1,
            tied: true,
        })
    }

    /// A variable comes from a template that names it, copied to where nothing is yet.
    pub(super) fn variable(&self, need: &Need<'_>, entry: &Entry) -> Option<Fit> {
        let name = need.name.as_deref()?;
        let mut copies = entry.doing(Work::Create);
        let brings = copies.any(|deed| {
            let fresh = deed.of.iter().all(|path| self.facts.is_missing(path));
            let mut named = self.facts.files_naming(name);
            fresh && named.any(|file| deed.reads.iter().any(|read| read == file))
        });
        brings.then_some(Fit {
            preference: 0,
            tied: true,
        })
    }

    /// What is known by name: the command works on a thing of that name.
    pub(super) fn thing(&self, need: &Need<'_>, entry: &Entry) -> Option<Fit> {
        let wanted = &need.rule.things;
        let is_it = |deed: &Deed| {
            let named = deed.things.iter().any(|thing| wanted.contains(thing));
            named && !deed.works.is_empty()
        };
        entry.deeds.iter().any(is_it).then_some(Fit {
            preference: 0,
            tied: true,
        })
    }

    /// Room on a disk comes from removing what lies where the failure could not write.
    pub(super) fn room(&self, need: &Need<'_>, entry: &Entry) -> Option<Fit> {
        let Some(path) = need.path.as_deref() else {
            let caches: Vec<&str> = self.caches_removed(entry).map(|(path, _)| path).collect();
            let mut named = caches
                .iter()
                .filter(|path| self.is_named_by_the_failed(path));
            return match named.next() {
                Some(_) => Fit::tied(0),
                None if !caches.is_empty() => Fit::loose(2),
                None => None,
            };
        };
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

    /// A tool comes from what names it, be it by the name of its package.
    pub(super) fn tool(&self, need: &Need<'_>, entry: &Entry) -> Option<Fit> {
        let name = need.name.as_deref().unwrap_or_default();
        let mut wanted = need.rule.things.clone();
        wanted.extend(self.book.packages_of("program", name));
        let providing = [Work::Provide, Work::Install];
        let mut deeds = entry.deeds.iter().filter(|deed| deed.does_any(&providing));
        let provides = deeds.any(|deed| {
            let mut things = deed.things.iter().chain(&deed.named);
            things.any(|one| !one.is_empty() && wanted.contains(one))
        });
        provides.then_some(Fit {
            preference: 0,
            tied: true,
        })
    }
}
