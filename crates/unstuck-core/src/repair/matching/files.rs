//! Matches commands with required files and directories: missing, stale, permissions, line endings, submodules and LFS.

use super::{RequirementMatch, RequirementMatcher};
use crate::repair::command_effects::{CommandAnalysis, CommandEffect};
use crate::repair::failure_requirement::Requirement;
use crate::repair::path_strings;
use crate::repair::repair_knowledge_file::EffectKind;

impl RequirementMatcher<'_> {
    pub(super) fn match_missing_file(
        &self,
        need: &Requirement<'_>,
        entry: &CommandAnalysis,
    ) -> Option<RequirementMatch> {
        let path = need.path.as_deref()?;
        let brings = |one: &String| {
            one == path || (path_strings::covers(one, path) && self.facts.is_missing(one))
        };
        let creates = entry
            .effects_of_kind(EffectKind::Create)
            .any(|deed| deed.targets.iter().any(brings));
        let restores = entry.effects_of_kind(EffectKind::Restore).any(|deed| {
            let all_gone = deed.targets.iter().all(|one| self.facts.is_missing(one));
            all_gone && deed.targets.iter().any(|one| one == path)
        });
        let by_script = || self.has_writing_script(entry) && self.makes_path(entry, path);
        match (creates, restores) {
            (true, _) => RequirementMatch::tied(0),
            (_, true) => RequirementMatch::tied(1),
            _ if by_script() => RequirementMatch::tied(2),
            _ => None,
        }
    }

    /// Returns true if it runs a project script that creates something.
    fn has_writing_script(&self, entry: &CommandAnalysis) -> bool {
        let making = [
            EffectKind::Generate,
            EffectKind::Build,
            EffectKind::Install,
            EffectKind::Create,
            EffectKind::MakeDirectory,
        ];
        let text = |file: &String| self.facts.path_fact(file)?.text.as_deref();
        entry.effects.iter().any(|deed| {
            let own = deed.script.is_some() || deed.file.is_some();
            let writes = deed.file.as_ref().and_then(text);
            own && (deed.has_any_effect(&making)
                || writes.is_some_and(|text| self.book.mentions_writing(text)))
        })
    }

    pub(super) fn match_missing_directory(
        &self,
        need: &Requirement<'_>,
        entry: &CommandAnalysis,
    ) -> Option<RequirementMatch> {
        let path = need.path.as_deref()?;
        let above = path_strings::parent(path);
        let is_it =
            |made: &String| made == above || made == path || path_strings::covers(above, made);
        let makes = entry
            .effects_of_kind(EffectKind::MakeDirectory)
            .any(|deed| deed.targets.iter().any(is_it));
        makes.then_some(RequirementMatch {
            preference: 0,
            is_tied: true,
        })
    }

    /// Matches the removal of a stale file: it must exist, and no living process may use it.
    pub(super) fn match_stale_file(
        &self,
        need: &Requirement<'_>,
        entry: &CommandAnalysis,
    ) -> Option<RequirementMatch> {
        let path = need.path.as_deref()?;
        let is_lockfile = self.book.is_lockfile(path);
        if is_lockfile || !entry.removes(path) || self.facts.is_missing(path) {
            return None;
        }
        let stops = entry.has_effect(EffectKind::Stop);
        let alive = self
            .facts
            .pid_files
            .get(path)
            .is_some_and(|file| file.alive);
        let fact = self.facts.path_fact(path);
        let in_use = fact.is_some_and(|fact| fact.in_use == Some(true));
        match (alive || in_use, stops) {
            (true, false) => None,
            (true, true) => RequirementMatch::tied(1),
            (false, true) => RequirementMatch::tied(1),
            (false, false) => RequirementMatch::tied(0),
        }
    }

    /// Matches work on the very file that the failure names.
    pub(super) fn match_work_on_path(
        &self,
        need: &Requirement<'_>,
        entry: &CommandAnalysis,
        work: EffectKind,
    ) -> Option<RequirementMatch> {
        let path = need.path.as_deref()?;
        let of = || entry.effects_of_kind(work).flat_map(|deed| &deed.targets);
        if of().any(|one| one == path) {
            RequirementMatch::tied(0)
        } else if of().any(|one| path_strings::covers(one, path)) {
            RequirementMatch::tied(1)
        } else {
            None
        }
    }

    /// Matches a line-ending fix for the named file or, if none is named, for a file with wrong line endings.
    pub(super) fn match_line_ends(
        &self,
        need: &Requirement<'_>,
        entry: &CommandAnalysis,
    ) -> Option<RequirementMatch> {
        if need.path.is_some() {
            return self.match_work_on_path(need, entry, EffectKind::LineEnds);
        }
        let by_mark = need.rule.resources.iter().any(|thing| thing == "mark");
        let is_wrong = |path: &String| {
            let fact = self.facts.path_fact(path);
            fact.is_some_and(|fact| if by_mark { fact.has_bom } else { fact.crlf })
        };
        let mut of = entry
            .effects_of_kind(EffectKind::LineEnds)
            .flat_map(|deed| &deed.targets);
        of.any(is_wrong).then_some(RequirementMatch {
            preference: 1,
            is_tied: true,
        })
    }

    /// Matches copying the template that names a missing variable to where no file exists yet.
    pub(super) fn match_variable(
        &self,
        need: &Requirement<'_>,
        entry: &CommandAnalysis,
    ) -> Option<RequirementMatch> {
        let name = need.name.as_deref()?;
        let mut copies = entry.effects_of_kind(EffectKind::Create);
        let brings = copies.any(|deed| {
            let fresh = deed.targets.iter().all(|path| self.facts.is_missing(path));
            let mut named = self.facts.files_naming(name);
            fresh && named.any(|file| deed.reads.iter().any(|read| read == file))
        });
        brings.then_some(RequirementMatch {
            preference: 0,
            is_tied: true,
        })
    }

    /// Matches a command that works on an object of the required name.
    pub(super) fn match_named_object(
        &self,
        need: &Requirement<'_>,
        entry: &CommandAnalysis,
    ) -> Option<RequirementMatch> {
        let wanted = &need.rule.resources;
        let is_it = |deed: &CommandEffect| {
            let named = deed.things.iter().any(|thing| wanted.contains(thing));
            named && !deed.kinds.is_empty()
        };
        entry.effects.iter().any(is_it).then_some(RequirementMatch {
            preference: 0,
            is_tied: true,
        })
    }

    /// Matches freeing disk space by removing files where the failure could not write.
    pub(super) fn match_disk_space(
        &self,
        need: &Requirement<'_>,
        entry: &CommandAnalysis,
    ) -> Option<RequirementMatch> {
        let Some(path) = need.path.as_deref() else {
            let caches: Vec<&str> = self.removed_caches(entry).map(|(path, _)| path).collect();
            let mut named = caches
                .iter()
                .filter(|path| self.is_named_in_failed_files(path));
            return match named.next() {
                Some(_) => RequirementMatch::tied(0),
                None if !caches.is_empty() => RequirementMatch::loose(2),
                None => None,
            };
        };
        let beside = path_strings::parent(path);
        let near = |one: &str| {
            path_strings::covers(one, path)
                || (!beside.is_empty() && path_strings::covers(beside, one))
        };
        let removing = [EffectKind::Remove, EffectKind::Clean];
        let mut deeds = entry
            .effects
            .iter()
            .filter(|deed| deed.has_any_effect(&removing));
        let frees = deeds.any(|deed| deed.targets.iter().any(|one| near(one)));
        frees.then_some(RequirementMatch {
            preference: 0,
            is_tied: true,
        })
    }

    /// Matches providing a tool by its name or the name of its package.
    pub(super) fn match_tool(
        &self,
        need: &Requirement<'_>,
        entry: &CommandAnalysis,
    ) -> Option<RequirementMatch> {
        let name = need.name.as_deref().unwrap_or_default();
        let mut wanted = need.rule.resources.clone();
        wanted.extend(self.book.packages_of("program", name));
        let providing = [EffectKind::Provide, EffectKind::Install];
        let mut deeds = entry
            .effects
            .iter()
            .filter(|deed| deed.has_any_effect(&providing));
        let provides = deeds.any(|deed| {
            let mut things = deed.things.iter().chain(&deed.packages);
            things.any(|one| !one.is_empty() && wanted.contains(one))
        });
        provides.then_some(RequirementMatch {
            preference: 0,
            is_tied: true,
        })
    }
}
