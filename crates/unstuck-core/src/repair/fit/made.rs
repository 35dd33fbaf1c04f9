//! What a project makes itself: builds, generated code, caches, the state of a database.

use super::{Fit, Judge};
use crate::repair::data::{Holds, Lack, State, Work};
use crate::repair::deed::{Deed, Entry};
use crate::repair::need::Need;

impl Judge<'_> {
    pub(super) fn made(&self, need: &Need<'_>, entry: &Entry) -> Option<Fit> {
        let removes = self.removes_what_is_made(need, entry);
        let tied = need
            .path
            .as_deref()
            .is_some_and(|path| self.makes(entry, path));
        let makes = self.makes_such(need, entry) || (tied && makes_anything(entry));
        let remade = need.place.is_some_and(|place| place.remade);
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
            Some(path) => entry.removes(path),
            None => self.removes_output(need, entry),
        }
    }

    /// Whether a tool throws away all that it made, in the ecosystem that is needed.
    fn is_cleaned(&self, need: &Need<'_>, entry: &Entry) -> bool {
        let cleans = |deed: &Deed| {
            let same = deed.ecosystem.is_some() && deed.ecosystem.as_deref() == need.ecosystem;
            let wanted = &need.rule.things;
            let thing = wanted.is_empty() || deed.things.iter().any(|one| wanted.contains(one));
            same && thing && deed.known
        };
        entry.doing(Work::Clean).any(cleans)
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
                Fit::best_if(named)
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
