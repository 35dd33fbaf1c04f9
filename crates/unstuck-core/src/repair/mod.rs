//! Selects the repairs that match a failure.
//!
//! A failure has *requirements*: packages, a directory, a free port. A command has *effects*. Both come from the
//! knowledge in `data/repairs/`, and the [facts](ProjectFacts) of the project decide whether they match. The owner's
//! entries come first, but only those the evidence supports; nothing is tried just because it is allowed.
//!
//! A suggestion is not an approval: [`command_policy`](crate::command_policy) decides whether a command may run.

mod built_in_commands;
mod command_arguments;
mod command_effects;
mod default_project_check;
mod denylist;
mod failure_message;
mod failure_pattern;
mod failure_requirement;
mod matching;
mod network_need;
mod path_strings;
mod preconditions;
mod project_facts;
mod project_facts_request;
mod proposal_instructions;
mod repair_catalog;
mod repair_knowledge_file;
mod suggestion;
mod suggestion_sample;
mod suggestion_sample_check;

pub use default_project_check::{default_check, default_check_probes};
pub use network_need::needs_network;
pub use project_facts::{
    FsEntryKind, PortFact, ProjectFacts, ProjectPathFacts, ProjectPidFileFacts,
};
pub use project_facts_request::{ProjectInspectionScope, probes_for};
pub use proposal_instructions::agent_instructions;
pub use repair_catalog::RepairCatalog;
pub use repair_knowledge_file::RepairKnowledgeFile;
pub use suggestion::{
    RepairSuggestion, RepairSuggestionRefusal, RepairSuggestions, SkippedOwnerCommand,
    SuggestionSource,
};
pub use suggestion_sample::SuggestionSample;

use built_in_commands::{CommandCandidate, builtin_candidates, fill_template};
use command_effects::CommandAnalysis;
use failure_message::FailureMessage;
use failure_requirement::{Requirement, find_hints, resolve_requirements};
use matching::{RequirementMatch, RequirementMatcher};
use repair_knowledge_file::EffectKind;

use crate::command_policy::{ProposalConfidence, RepairCategory};
use crate::diagnosis::Diagnosis;
use crate::failure::{Failure, FailureKind};

/// Timeout of a repair that installs or builds.
const LONG_TIMEOUT_SECONDS: u32 = 900;
/// Timeout of any other repair.
const SHORT_TIMEOUT_SECONDS: u32 = 120;

/// Returns the repairs that match a failure, best first: the owner's entries that the evidence supports, then built-in
/// commands.
pub fn suggest_repairs(
    book: &RepairCatalog,
    failure: &Failure,
    diagnosis: &Diagnosis,
    facts: &ProjectFacts,
    owner_entries: &[String],
) -> RepairSuggestions {
    let message = FailureMessage::from_failure(failure);
    let refused = denylist::refuse_failure(book, failure, diagnosis, &message);
    if refused.is_some() {
        return RepairSuggestions {
            refusal: refused,
            ..RepairSuggestions::default()
        };
    }
    let clues = find_hints(book, diagnosis.kind, &message);
    let desk = SuggestionBuilder {
        judge: RequirementMatcher {
            book,
            facts,
            message: &message,
        },
        kind: diagnosis.kind,
        line: &diagnosis.evidence.line,
        needs: resolve_requirements(book, facts, &message, &clues),
    };
    let (mut found, passed_over) = desk.owner_suggestions(owner_entries);
    found.sort_by_key(|one| one.rank);
    let mut offers: Vec<RepairSuggestion> = found.into_iter().map(|one| one.offer).collect();
    let mut built_in = desk.builtin_suggestions();
    built_in.sort_by_key(|one| one.rank);
    for one in built_in {
        if offers
            .iter()
            .all(|known| known.command != one.offer.command)
        {
            offers.push(one.offer);
        }
    }
    RepairSuggestions {
        suggestions: offers,
        refusal: None,
        skipped_entries: passed_over,
    }
}

/// Sort key of a suggestion; smaller is better.
type SuggestionRank = (bool, i32, u8, bool, usize, PackageOrigin, usize, usize);

/// Origin of packages, most reliable first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PackageOrigin {
    /// A directory of the project.
    Project,
    /// Any source the manager uses.
    Anywhere,
    /// Whatever is present on this machine.
    Machine,
}

struct RankedSuggestion {
    rank: SuggestionRank,
    offer: RepairSuggestion,
}

/// Builds the suggestions for a failure.
struct SuggestionBuilder<'a> {
    judge: RequirementMatcher<'a>,
    kind: FailureKind,
    line: &'a str,
    needs: Vec<Requirement<'a>>,
}

impl<'a> SuggestionBuilder<'a> {
    fn owner_suggestions(
        &self,
        entries: &[String],
    ) -> (Vec<RankedSuggestion>, Vec<SkippedOwnerCommand>) {
        let (mut found, mut passed_over) = (Vec::new(), Vec::new());
        for (at, text) in entries.iter().enumerate() {
            let text = text.trim_matches([' ', '\t', '\n', '\r']);
            match self.owner_suggestion(text, at) {
                Ok(one) => found.push(one),
                Err(reason) => passed_over.push(SkippedOwnerCommand {
                    command: text.to_owned(),
                    reason,
                }),
            }
        }
        (found, passed_over)
    }

    fn owner_suggestion(&self, text: &str, at: usize) -> Result<RankedSuggestion, String> {
        let judge = &self.judge;
        let entry = CommandAnalysis::analyze(judge.book, judge.facts, text);
        if let Some(reason) = denylist::refuse_command(judge.book, judge.facts, &entry) {
            return Err(reason);
        }
        if let Some(obstacle) = preconditions::unmet_precondition(judge.book, judge.facts, &entry) {
            return Err(obstacle);
        }
        let advised =
            judge.message.advises(text) && judge.unrelated_removal(None, &entry).is_none();
        let fits = self
            .needs
            .iter()
            .filter_map(|need| Some((need, judge.match_requirement(need, &entry)?)));
        let best = fits.min_by_key(|(need, fit)| (-need.priority, *fit));
        match best {
            Some((need, fit)) => Ok(self.ranked_suggestion(Some(need), fit, &entry, advised, at)),
            None if advised => {
                let fit = RequirementMatch {
                    preference: 0,
                    is_tied: true,
                };
                Ok(self.ranked_suggestion(None, fit, &entry, true, at))
            }
            None => Err("not applicable to this failure".to_owned()),
        }
    }

    fn ranked_suggestion(
        &self,
        need: Option<&Requirement<'a>>,
        fit: RequirementMatch,
        entry: &CommandAnalysis,
        advised: bool,
        at: usize,
    ) -> RankedSuggestion {
        let priority = need.map_or(0, |need| need.priority);
        let removed = entry
            .effects_of_kind(EffectKind::Remove)
            .map(|deed| deed.targets.len())
            .sum();
        let reach = match () {
            () if entry.effects.iter().any(|deed| !deed.sources.is_empty()) => {
                PackageOrigin::Project
            }
            () if entry.effects.iter().any(|deed| deed.offline) => PackageOrigin::Machine,
            () => PackageOrigin::Anywhere,
        };
        let steps = entry.effects.iter().filter(|deed| deed.depth == 0).count();
        let mut offer = self.build_suggestion(need, fit, entry);
        if advised {
            offer.confidence = ProposalConfidence::High;
        }
        offer.source = SuggestionSource::Owner(self.rule_id(need));
        RankedSuggestion {
            rank: (
                !advised,
                -priority,
                fit.preference,
                !fit.is_tied,
                removed,
                reach,
                steps,
                at,
            ),
            offer,
        }
    }

    fn rule_id(&self, need: Option<&Requirement<'a>>) -> String {
        need.map_or("advised", |need| need.rule.id.as_str())
            .to_owned()
    }

    fn builtin_suggestions(&self) -> Vec<RankedSuggestion> {
        let judge = &self.judge;
        let mut all = Vec::new();
        for need in &self.needs {
            for candidate in builtin_candidates(judge.book, judge.facts, self.kind, need) {
                all.extend(self.candidate_suggestion(need, candidate, all.len()));
            }
        }
        if ![
            FailureKind::PermissionDenied,
            FailureKind::DiskFull,
            FailureKind::OutOfMemory,
        ]
        .contains(&self.kind)
        {
            let advised =
                built_in_commands::advised_commands(judge.book, judge.facts, judge.message);
            all.extend(
                advised
                    .iter()
                    .filter_map(|entry| self.advised_suggestion(entry)),
            );
        }
        all
    }

    /// Returns the suggestion for a project script that the message itself advises.
    fn advised_suggestion(&self, entry: &CommandAnalysis) -> Option<RankedSuggestion> {
        let judge = &self.judge;
        let forbidden = denylist::refuse_command(judge.book, judge.facts, entry).is_some();
        let obstacle = preconditions::unmet_precondition(judge.book, judge.facts, entry).is_some();
        if forbidden || obstacle || judge.unrelated_removal(None, entry).is_some() {
            return None;
        }
        let fit = RequirementMatch {
            preference: 0,
            is_tied: true,
        };
        let mut found = self.ranked_suggestion(None, fit, entry, true, 0);
        found.offer.source = SuggestionSource::BuiltIn(self.rule_id(None));
        Some(found)
    }

    fn candidate_suggestion(
        &self,
        need: &Requirement<'a>,
        candidate: CommandCandidate,
        at: usize,
    ) -> Option<RankedSuggestion> {
        let judge = &self.judge;
        let mut entry = CommandAnalysis::analyze(judge.book, judge.facts, &candidate.command);
        if denylist::refuse_command(judge.book, judge.facts, &entry).is_some() {
            return None;
        }
        let fit = if candidate.needs_proof {
            judge.match_requirement(need, &entry)?
        } else {
            RequirementMatch {
                preference: 0,
                is_tied: true,
            }
        };
        if !candidate.directory.is_empty() {
            entry = CommandAnalysis::analyze(judge.book, judge.facts, &candidate.with_cd());
        }
        if preconditions::unmet_precondition(judge.book, judge.facts, &entry).is_some() {
            return None;
        }
        let advised = judge.message.advises(&candidate.command);
        let mut found = self.ranked_suggestion(Some(need), fit, &entry, advised, at);
        found.offer.command = candidate.command;
        found.offer.source = SuggestionSource::BuiltIn(need.rule.id.clone());
        if !candidate.directory.is_empty() {
            found.offer.working_dir = Some(candidate.directory);
        }
        Some(found)
    }

    fn build_suggestion(
        &self,
        need: Option<&Requirement<'a>>,
        fit: RequirementMatch,
        entry: &CommandAnalysis,
    ) -> RepairSuggestion {
        let works = [
            EffectKind::Install,
            EffectKind::Build,
            EffectKind::Lock,
            EffectKind::Rebuild,
            EffectKind::Provide,
        ];
        let long = entry.effects.iter().any(|deed| deed.has_any_effect(&works));
        let plain = |text: &str| text.to_owned();
        let told = |template: &str, need: &Requirement<'_>| {
            let told = fill_template(template, need, &plain);
            told.unwrap_or_else(|| template.to_owned())
        };
        let sure = |need: &Requirement<'_>| {
            if fit.is_tied {
                need.rule.confidence
            } else {
                need.rule.confidence.min(ProposalConfidence::Medium)
            }
        };
        RepairSuggestion {
            command: entry.text.clone(),
            working_dir: None,
            source: SuggestionSource::Owner(String::new()),
            category: need.map_or_else(|| default_category(self.kind), |need| need.rule.category),
            confidence: need.map_or(ProposalConfidence::High, sure),
            root_cause: need.map_or_else(
                || "The failure message names the command to run.".to_owned(),
                |need| told(&need.rule.cause, need),
            ),
            evidence: vec![need.map_or(self.line, |need| &need.line).to_owned()],
            expected_outcome: need.map_or_else(
                || "The command named in the failure message has succeeded.".to_owned(),
                |need| told(&need.rule.outcome, need),
            ),
            timeout_seconds: if long {
                LONG_TIMEOUT_SECONDS
            } else {
                SHORT_TIMEOUT_SECONDS
            },
        }
    }
}

/// Returns the category of a failure without a known requirement.
fn default_category(kind: FailureKind) -> RepairCategory {
    match kind {
        FailureKind::MissingDependency
        | FailureKind::DependencyConflict
        | FailureKind::LockfileDrift => RepairCategory::Dependency,
        FailureKind::ConfigError => RepairCategory::Config,
        FailureKind::PermissionDenied => RepairCategory::Permissions,
        FailureKind::NetworkError => RepairCategory::Network,
        _ => RepairCategory::Environment,
    }
}
