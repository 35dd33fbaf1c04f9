//! Matches commands with requirements and rates the match.

mod files;
mod generated_files;
mod packages;
mod processes;

pub(super) use packages::{is_declared, managers};

use super::command_effects::{CommandAnalysis, CommandEffect};
use super::failure_message::FailureMessage;
use super::failure_requirement::Requirement;
use super::path_strings;
use super::project_facts::ProjectFacts;
use super::repair_catalog::RepairCatalog;
use super::repair_knowledge_file::{EffectKind, RequirementKind};

/// How well a command matches a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RequirementMatch {
    /// 0 for the preferred way to meet the requirement, higher for worse ones.
    pub(super) preference: u8,
    /// True if the failure or the project links the command to the requirement, beyond the kind of work.
    pub(super) is_tied: bool,
}

impl RequirementMatch {
    fn tied(preference: u8) -> Option<Self> {
        Some(Self {
            preference,
            is_tied: true,
        })
    }

    fn loose(preference: u8) -> Option<Self> {
        Some(Self {
            preference,
            is_tied: false,
        })
    }
}

/// The inputs for matching a command.
#[derive(Clone, Copy)]
pub(super) struct RequirementMatcher<'a> {
    pub(super) book: &'a RepairCatalog,
    pub(super) facts: &'a ProjectFacts,
    pub(super) message: &'a FailureMessage,
}

impl RequirementMatcher<'_> {
    /// Rates how well a command matches a requirement; none if it does not.
    pub(super) fn match_requirement(
        &self,
        need: &Requirement<'_>,
        entry: &CommandAnalysis,
    ) -> Option<RequirementMatch> {
        let fit = match need.kind {
            RequirementKind::Packages => self.match_packages(need, entry),
            RequirementKind::Output | RequirementKind::Generated | RequirementKind::Cache => {
                self.match_generated(need, entry)
            }
            RequirementKind::File | RequirementKind::ByPath => self.match_missing_file(need, entry),
            RequirementKind::Directory => self.match_missing_directory(need, entry),
            RequirementKind::Schema => self.match_schema(need, entry),
            RequirementKind::StaleFile => self.match_stale_file(need, entry),
            RequirementKind::Port => self.match_port(need, entry),
            RequirementKind::Service => self.match_service(need, entry),
            RequirementKind::Mode => self.match_work_on_path(need, entry, EffectKind::Mode),
            RequirementKind::LineEnds => self.match_line_ends(need, entry),
            RequirementKind::Variable => self.match_variable(need, entry),
            RequirementKind::Resource => self.match_named_object(need, entry),
            RequirementKind::Tool => self.match_tool(need, entry),
            RequirementKind::DiskSpace => self.match_disk_space(need, entry),
        };
        fit.filter(|_| self.unrelated_removal(Some(need), entry).is_none())
    }

    /// Returns a path the command would remove that is unrelated to the requirement.
    pub(super) fn unrelated_removal(
        &self,
        need: Option<&Requirement<'_>>,
        entry: &CommandAnalysis,
    ) -> Option<String> {
        // Cleaning scripts of the project may remove what the project declares.
        let removing = |deed: &&CommandEffect| {
            deed.depth == 0 && deed.has_any_effect(&[EffectKind::Remove, EffectKind::Clean])
        };
        let deeds = entry.effects.iter().filter(removing);
        let mut of = deeds.flat_map(|deed| &deed.targets);
        of.find(|path| !self.may_remove(need, path)).cloned()
    }

    fn may_remove(&self, need: Option<&Requirement<'_>>, path: &str) -> bool {
        let is_subject = need.is_some_and(|need| match need.kind {
            RequirementKind::StaleFile | RequirementKind::Cache => {
                let subject = need.path.as_deref();
                subject.is_some_and(|subject| is_exactly(path, subject))
            }
            RequirementKind::DiskSpace => {
                let spare = &need.rule.resources;
                let mut parts = path.split('/');
                parts.any(|part| {
                    spare
                        .iter()
                        .any(|name| path_strings::matches_glob(name, part))
                })
            }
            _ => false,
        });
        if self.book.is_lockfile(path) {
            return self.is_lockfile_to_blame(need, path);
        }
        is_subject
            || self.facts.is_missing(path)
            || self.book.generated_path_of(self.facts, path).is_some()
    }

    /// Returns true if the lockfile itself is unusable; removing it otherwise would hide a mismatch.
    fn is_lockfile_to_blame(&self, need: Option<&Requirement<'_>>, path: &str) -> bool {
        let is_subject = need.is_some_and(|need| need.path.as_deref() == Some(path));
        is_subject || self.message.advises_removing(path_strings::base_name(path))
    }

    /// Returns true if the files of a command contain a text.
    fn mentions(&self, entry: &CommandAnalysis, text: &str) -> bool {
        let files = entry.files();
        let in_files = || {
            self.facts
                .files_naming(text)
                .any(|file| files.contains(file))
        };
        let in_scripts = || {
            let scripts = entry.effects.iter().filter_map(|deed| deed.script.as_ref());
            let mut bodies = scripts.filter_map(|(runner, name)| self.facts.script(runner, name));
            bodies.any(|body| contains_word(body, text))
        };
        !text.is_empty() && (in_files() || in_scripts())
    }

    /// Returns true if a command creates a path: its words or its files name it.
    fn makes_path(&self, entry: &CommandAnalysis, path: &str) -> bool {
        let making = [
            EffectKind::Build,
            EffectKind::Generate,
            EffectKind::Create,
            EffectKind::MakeDirectory,
        ];
        let mut deeds = entry
            .effects
            .iter()
            .filter(|deed| deed.has_any_effect(&making));
        let folder = path_strings::ancestors(path).last().unwrap_or(path);
        deeds.any(|deed| {
            deed.targets
                .iter()
                .any(|one| path_strings::covers(one, path))
        }) || self.mentions(entry, path)
            || self.mentions(entry, path_strings::base_name(path))
            || (folder != path && self.mentions(entry, folder))
    }
}

/// Returns true if a path or pattern names the subject and not a directory that holds more.
fn is_exactly(path: &str, subject: &str) -> bool {
    let beside = path_strings::parent(path) == path_strings::parent(subject);
    path == subject
        || (path.contains('*')
            && (beside || path.starts_with("**/"))
            && path_strings::covers(path, subject))
}

/// Returns true if a text contains another as a whole word.
pub(super) fn contains_word(text: &str, word: &str) -> bool {
    let is_inner = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_inner) && !after.is_some_and(is_inner)
    })
}
