//! What a project makes itself: builds, generated code, caches, the state of a database.

use super::{Fit, Judge, contains_word};
use crate::repair::data::{Holds, Lack, Place, State, Work};
use crate::repair::deed::{Deed, Entry};
use crate::repair::need::Need;
use crate::repair::paths;

impl Judge<'_> {
    pub(super) fn made(&self, need: &Need<'_>, entry: &Entry) -> Option<Fit> {
        let removes = self.removes_what_is_made(need, entry);
        let tied = need
            .path
            .as_deref()
            .is_some_and(|path| self.makes(entry, path));
        let makes = self.makes_such(need, entry) || (tied && makes_anything(entry));
        let remade = need.rule.remade || need.place.is_some_and(|place| place.remade);
        let by_itself = remade || need.lack == Lack::Cache || self.is_cleaned(need, entry);
        let preference = match (need.state, removes, makes) {
            _ if need.lack == Lack::Cache => match (removes, makes) {
                (true, false) => 0,
                (true, true) => 1,
                _ => return None,
            },
            (State::Missing, _, true) => u8::from(removes) + u8::from(!tied),
            (State::Missing, ..) => return None,
            (_, true, true) => 0,
            (_, true, false) if by_itself => 1,
            (_, false, true) if need.lack == Lack::Generated || tied => 1,
            (_, false, true) => 2,
            _ => return None,
        };
        Some(Fit {
            preference,
            tied: tied || removes,
        })
    }

    /// Whether it builds or generates, as is needed, and in the same ecosystem.
    fn makes_such(&self, need: &Need<'_>, entry: &Entry) -> bool {
        let work = match need.lack {
            Lack::Generated => Work::Generate,
            _ => Work::Build,
        };
        let same = |deed: &Deed| match (need.ecosystem, deed.ecosystem.as_deref()) {
            (Some(wanted), Some(ecosystem)) => wanted == ecosystem,
            _ => true,
        };
        entry.doing(work).any(same)
    }

    fn removes_what_is_made(&self, need: &Need<'_>, entry: &Entry) -> bool {
        if self.is_cleaned(need, entry) {
            return true;
        }
        match need.path.as_deref() {
            Some(path) => entry.removes(path) || self.clears(entry, path),
            None if need.lack == Lack::Cache => self.removes_cache(need, entry),
            None => self.removes_output(need, entry),
        }
    }

    /// Whether a tool throws away all that it made, in the ecosystem that is needed.
    fn is_cleaned(&self, need: &Need<'_>, entry: &Entry) -> bool {
        let cleans = |deed: &Deed| {
            let same = deed.ecosystem.is_some() && deed.ecosystem.as_deref() == need.ecosystem;
            let wanted = &need.rule.things;
            // A cache with a name is only to blame where the failure speaks of it.
            let thing = match deed.things.is_empty() {
                true => wanted.is_empty(),
                false => deed.things.iter().any(|one| wanted.contains(one)),
            };
            same && thing && deed.known
        };
        entry.doing(Work::Clean).any(cleans)
    }

    /// Whether a script of the project that clears something names what is at a path.
    fn clears(&self, entry: &Entry, path: &str) -> bool {
        let own = |deed: &Deed| deed.file.is_some() || deed.script.is_some();
        entry.doing(Work::Clean).any(own)
            && (self.names(entry, path) || self.names(entry, paths::base(path)))
    }

    /// Where nobody said which cache is to blame: whether it removes one of that ecosystem, or one that the failed
    /// program names.
    fn removes_cache(&self, need: &Need<'_>, entry: &Entry) -> bool {
        self.caches_removed(entry).any(|(path, place)| {
            let same = need.ecosystem.is_some() && place.ecosystem.as_deref() == need.ecosystem;
            same || self.is_named_by_the_failed(path)
        })
    }

    /// The caches of the project that a command removes.
    pub(super) fn caches_removed<'e>(
        &'e self,
        entry: &'e Entry,
    ) -> impl Iterator<Item = (&'e str, &'e Place)> {
        let of = entry.doing(Work::Remove).flat_map(|deed| &deed.of);
        let there = of.filter(|path| self.facts.has_like(path));
        let places =
            there.filter_map(|path| Some((path.as_str(), self.book.place(self.facts, path)?)));
        places.filter(|(_, place)| place.holds == Holds::Cache)
    }

    /// Whether a file of the project that the message mentions names a path or what lies in it.
    pub(super) fn is_named_by_the_failed(&self, path: &str) -> bool {
        let mentioned = paths::mentioned(&self.message.text);
        let mut files = mentioned
            .iter()
            .filter_map(|file| self.facts.relative(file));
        files.any(|file| {
            let fact = self.facts.path(&file);
            let text = fact.and_then(|fact| fact.text.as_deref());
            text.is_some_and(|text| contains_word(text, path))
        })
    }

    /// Where nobody said which output is broken: whether it removes output of that ecosystem.
    fn removes_output(&self, need: &Need<'_>, entry: &Entry) -> bool {
        let mut of = entry.doing(Work::Remove).flat_map(|deed| &deed.of);
        of.any(|path| {
            let place = self.book.place(self.facts, path);
            let place = place.filter(|_| self.facts.has_like(path));
            place.is_some_and(|place| {
                let made = matches!(place.holds, Holds::Output | Holds::Cache | Holds::Generated);
                let same =
                    place.ecosystem.is_none() || place.ecosystem.as_deref() == need.ecosystem;
                made && same && need.ecosystem.is_some()
            })
        })
    }

    pub(super) fn schema(&self, need: &Need<'_>, entry: &Entry) -> Option<Fit> {
        if !entry.does(Work::Migrate) {
            return None;
        }
        match need.name.as_deref() {
            // A table or column that nobody's migration names is a mistake in the code.
            Some(name) => {
                let migrates = |file: &str| {
                    let file = file.to_ascii_lowercase();
                    file.contains("migrat") || file.ends_with(".sql") || file.contains("schema")
                };
                let named = self.names(entry, name) || self.facts.files_naming(name).any(migrates);
                named.then_some(Fit {
                    preference: 0,
                    tied: true,
                })
            }
            None => Fit::loose(0),
        }
    }
}

fn makes_anything(entry: &Entry) -> bool {
    let making = [Work::Build, Work::Generate];
    entry
        .deeds
        .iter()
        .any(|deed| deed.does_any(&making) || deed.file.is_some())
}
