//! Matches commands with what a project generates itself: builds, generated code, caches, database state.

use super::{RequirementMatch, RequirementMatcher, contains_word};
use crate::repair::command_effects::{CommandAnalysis, CommandEffect};
use crate::repair::failure_requirement::Requirement;
use crate::repair::path_strings;
use crate::repair::repair_knowledge_file::{
    EffectKind, GeneratedContents, GeneratedPath, RequirementKind, RequirementState,
};

impl RequirementMatcher<'_> {
    pub(super) fn match_generated(
        &self,
        need: &Requirement<'_>,
        entry: &CommandAnalysis,
    ) -> Option<RequirementMatch> {
        let removes = self.removes_generated(need, entry);
        let tied = need
            .path
            .as_deref()
            .is_some_and(|path| self.makes_path(entry, path));
        let makes = self.generates_required(need, entry) || (tied && is_generator(entry));
        let remade = need.rule.is_rebuilt_automatically
            || need
                .generated_path
                .is_some_and(|place| place.is_rebuilt_automatically);
        let by_itself =
            remade || need.kind == RequirementKind::Cache || self.cleans_ecosystem(need, entry);
        let preference = match (need.state, removes, makes) {
            _ if need.kind == RequirementKind::Cache => match (removes, makes) {
                (true, false) => 0,
                (true, true) => 1,
                _ => return None,
            },
            (RequirementState::Missing, _, true) => u8::from(removes) + u8::from(!tied),
            (RequirementState::Missing, ..) => return None,
            (_, true, true) => 0,
            (_, true, false) if by_itself => 1,
            (_, false, true) if need.kind == RequirementKind::Generated || tied => 1,
            (_, false, true) => 2,
            _ => return None,
        };
        Some(RequirementMatch {
            preference,
            is_tied: tied || removes,
        })
    }

    /// Returns true if it builds or generates as required, in the same ecosystem.
    fn generates_required(&self, need: &Requirement<'_>, entry: &CommandAnalysis) -> bool {
        let work = match need.kind {
            RequirementKind::Generated => EffectKind::Generate,
            _ => EffectKind::Build,
        };
        let same = |deed: &CommandEffect| match (need.ecosystem, deed.ecosystem.as_deref()) {
            (Some(wanted), Some(ecosystem)) => wanted == ecosystem,
            _ => true,
        };
        entry.effects_of_kind(work).any(same)
    }

    fn removes_generated(&self, need: &Requirement<'_>, entry: &CommandAnalysis) -> bool {
        if self.cleans_ecosystem(need, entry) {
            return true;
        }
        match need.path.as_deref() {
            Some(path) => entry.removes(path) || self.script_clears(entry, path),
            None if need.kind == RequirementKind::Cache => self.removes_cache(need, entry),
            None => self.removes_output(need, entry),
        }
    }

    /// Returns true if a tool removes everything it built, in the required ecosystem.
    fn cleans_ecosystem(&self, need: &Requirement<'_>, entry: &CommandAnalysis) -> bool {
        let cleans = |deed: &CommandEffect| {
            let same = deed.ecosystem.is_some() && deed.ecosystem.as_deref() == need.ecosystem;
            let wanted = &need.rule.resources;
            // A named cache is only a suspect if the failure mentions it.
            let thing = if deed.things.is_empty() {
                wanted.is_empty()
            } else {
                deed.things.iter().any(|one| wanted.contains(one))
            };
            same && thing && deed.is_known_program
        };
        entry.effects_of_kind(EffectKind::Clean).any(cleans)
    }

    /// Returns true if a cleaning script of the project names the path.
    fn script_clears(&self, entry: &CommandAnalysis, path: &str) -> bool {
        let own = |deed: &CommandEffect| deed.file.is_some() || deed.script.is_some();
        entry.effects_of_kind(EffectKind::Clean).any(own)
            && (self.mentions(entry, path) || self.mentions(entry, path_strings::base_name(path)))
    }

    /// If no cache is named: returns true if it removes a cache of that ecosystem, or one that the failed program
    /// names.
    fn removes_cache(&self, need: &Requirement<'_>, entry: &CommandAnalysis) -> bool {
        self.removed_caches(entry).any(|(path, place)| {
            let same = need.ecosystem.is_some() && place.ecosystem.as_deref() == need.ecosystem;
            same || self.is_named_in_failed_files(path)
        })
    }

    /// Returns the caches of the project that a command removes.
    pub(super) fn removed_caches<'e>(
        &'e self,
        entry: &'e CommandAnalysis,
    ) -> impl Iterator<Item = (&'e str, &'e GeneratedPath)> {
        let of = entry
            .effects_of_kind(EffectKind::Remove)
            .flat_map(|deed| &deed.targets);
        let there = of.filter(|path| self.facts.has_matching(path));
        let places = there.filter_map(|path| {
            Some((
                path.as_str(),
                self.book.generated_path_of(self.facts, path)?,
            ))
        });
        places.filter(|(_, place)| place.contents == GeneratedContents::Cache)
    }

    /// Returns true if a project file mentioned in the message names a path or its contents.
    pub(super) fn is_named_in_failed_files(&self, path: &str) -> bool {
        let mentioned = path_strings::find_paths(&self.message.text);
        let mut files = mentioned
            .iter()
            .filter_map(|file| self.facts.relative(file));
        files.any(|file| {
            let fact = self.facts.path_fact(&file);
            let text = fact.and_then(|fact| fact.text.as_deref());
            text.is_some_and(|text| contains_word(text, path))
        })
    }

    /// If no output is named: returns true if it removes output of that ecosystem.
    fn removes_output(&self, need: &Requirement<'_>, entry: &CommandAnalysis) -> bool {
        let mut of = entry
            .effects_of_kind(EffectKind::Remove)
            .flat_map(|deed| &deed.targets);
        of.any(|path| {
            let place = self.book.generated_path_of(self.facts, path);
            let place = place.filter(|_| self.facts.has_matching(path));
            place.is_some_and(|place| {
                let made = matches!(
                    place.contents,
                    GeneratedContents::Output
                        | GeneratedContents::Cache
                        | GeneratedContents::Generated
                );
                let same =
                    place.ecosystem.is_none() || place.ecosystem.as_deref() == need.ecosystem;
                made && same && need.ecosystem.is_some()
            })
        })
    }

    pub(super) fn match_schema(
        &self,
        need: &Requirement<'_>,
        entry: &CommandAnalysis,
    ) -> Option<RequirementMatch> {
        if !entry.has_effect(EffectKind::Migrate) {
            return None;
        }
        match need.name.as_deref() {
            // A table or column that no migration names is a mistake in the code.
            Some(name) => {
                let migrates = |file: &str| {
                    let file = file.to_ascii_lowercase();
                    file.contains("migrat") || file.ends_with(".sql") || file.contains("schema")
                };
                let named =
                    self.mentions(entry, name) || self.facts.files_naming(name).any(migrates);
                named.then_some(RequirementMatch {
                    preference: 0,
                    is_tied: true,
                })
            }
            None => RequirementMatch::loose(0),
        }
    }
}

fn is_generator(entry: &CommandAnalysis) -> bool {
    let making = [EffectKind::Build, EffectKind::Generate];
    entry
        .effects
        .iter()
        .any(|deed| deed.has_any_effect(&making) || deed.file.is_some())
}
