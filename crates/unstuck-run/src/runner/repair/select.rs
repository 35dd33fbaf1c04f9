//! Selects the best of all matching repairs.

use std::path::Path;
use std::time::Duration;

use unstuck_core::decision::{AvailableRepair, RepairPermission};
use unstuck_core::event::{PolicyVerdict, RepairProposalOrigin, RepairProposed, SessionId};
use unstuck_core::repair::{probes_for, suggest_repairs};
use unstuck_core::session_state::{RepairRecord, RepairStates, RepairStatus};
use unstuck_core::{Category, Diagnosis, Failure, Timestamp};
use unstuck_repair::probe_project;
use unstuck_repair::project_dir::ProjectRoot;

use super::approved_repairs::PreviouslyApprovedRepair;
use super::candidate_policy_check::PolicyCheckedRepair;
use super::coordinator::RepairCoordinator;
use super::settings::RepairMode;
use super::unevaluated_candidate::RepairCandidate;

/// The query for a repair.
pub(in crate::runner) struct RepairQuery<'a> {
    pub(in crate::runner) source: RepairQueryScope<'a>,
    /// The directory in which it failed.
    pub(in crate::runner) dir: &'a Path,
    /// The failure, if there is one.
    pub(in crate::runner) failure: Option<(&'a Failure, &'a Diagnosis)>,
    pub(in crate::runner) repairs: &'a RepairStates,
    pub(in crate::runner) history: &'a [PreviouslyApprovedRepair],
    pub(in crate::runner) now: Timestamp,
}

/// The scope of a repair query: a session or the whole run.
#[derive(Debug, Clone, Copy)]
pub(in crate::runner) enum RepairQueryScope<'a> {
    /// A session whose attempt failed.
    Session(&'a SessionId),
    /// The whole run, between two iterations.
    Run,
}

/// The best matching repair.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::runner) struct SelectedRepair {
    pub(in crate::runner) proposed: RepairProposed,
    pub(in crate::runner) permission: RepairPermission,
    /// True if it is not recorded yet.
    pub(in crate::runner) is_new: bool,
    success_count: u32,
    run_count: u32,
}

impl SelectedRepair {
    /// Returns a repair that a human has approved.
    pub(in crate::runner) fn approved_by_human(proposed: RepairProposed) -> Self {
        Self {
            proposed,
            permission: RepairPermission::Granted {
                after: Duration::ZERO,
            },
            is_new: false,
            success_count: 1,
            run_count: 1,
        }
    }

    /// Returns the delay before it runs.
    pub(in crate::runner) fn delay(&self) -> Duration {
        match self.permission {
            RepairPermission::Granted { after } => after,
            RepairPermission::AskNow | RepairPermission::AskLast => Duration::ZERO,
        }
    }

    /// Returns it as an input of a decision.
    pub(in crate::runner) fn offer(&self) -> AvailableRepair<'_> {
        AvailableRepair {
            id: &self.proposed.id,
            command: &self.proposed.command,
            permission: self.permission,
            number: self.success_count,
            max_auto: self.run_count,
        }
    }
}

impl RepairCoordinator<'_> {
    /// Selects the first repair that may run automatically, or else the first that can be approved.
    pub(in crate::runner) fn select_repair(
        &self,
        case: &RepairQuery<'_>,
    ) -> Option<SelectedRepair> {
        let root = ProjectRoot::open(self.project).ok()?;
        let mut asked = None;
        for candidate in self.candidates(case) {
            let Ok(weighed) = self.evaluate(&root, &candidate, case.repairs) else {
                continue;
            };
            let leave = match weighed.verdict() {
                PolicyVerdict::Deny => continue,
                PolicyVerdict::Run if self.settings.mode == RepairMode::Auto => {
                    let after = self.remaining_cooldown(case.repairs, case.now);
                    return Some(self.selected_repair(
                        candidate,
                        &weighed,
                        RepairPermission::Granted { after },
                        case,
                    ));
                }
                _ if candidate.is_answer_pending() || self.settings.mode == RepairMode::Ask => {
                    RepairPermission::AskNow
                }
                _ => RepairPermission::AskLast,
            };
            asked.get_or_insert((candidate, weighed, leave));
        }
        let (candidate, weighed, leave) = asked?;
        Some(self.selected_repair(candidate, &weighed, leave, case))
    }

    fn selected_repair(
        &self,
        candidate: RepairCandidate,
        weighed: &PolicyCheckedRepair,
        leave: RepairPermission,
        case: &RepairQuery<'_>,
    ) -> SelectedRepair {
        let fingerprint = case
            .failure
            .map_or("", |(_, diagnosis)| &diagnosis.fingerprint);
        SelectedRepair {
            is_new: candidate.id.is_none(),
            proposed: proposed_event(&candidate, weighed, case, fingerprint),
            permission: leave,
            success_count: case.repairs.auto_count() + 1,
            run_count: self.settings.rules.max_auto_recoveries_per_run,
        }
    }

    /// Returns the event of a proposal; an error if it is refused completely.
    pub(super) fn proposed_event(
        &self,
        candidate: &RepairCandidate,
        case: &RepairQuery<'_>,
        fingerprint: &str,
    ) -> Result<RepairProposed, String> {
        let root = ProjectRoot::open(self.project).map_err(|error| error.to_string())?;
        let weighed = self.evaluate(&root, candidate, case.repairs)?;
        Ok(proposed_event(candidate, &weighed, case, fingerprint))
    }

    /// Returns all matching candidates in order of preference, without those tried in this run.
    fn candidates(&self, case: &RepairQuery<'_>) -> Vec<RepairCandidate> {
        let is_its = |repair: &&RepairRecord| match case.source {
            RepairQueryScope::Session(session) => repair.proposed.session.as_ref() == Some(session),
            RepairQueryScope::Run => true,
        };
        let repairs = case.repairs;
        let mut all: Vec<RepairCandidate> = repairs
            .pending_proposals()
            .filter(is_its)
            .map(|repair| RepairCandidate::from_event(&repair.proposed))
            .collect();
        let failed = |repair: &&RepairRecord| {
            repair.status == RepairStatus::Failed
                && repair.proposed.by == RepairProposalOrigin::Agent
        };
        let failed = repairs.all().iter().filter(is_its).filter(failed);
        all.extend(failed.filter_map(|repair| RepairCandidate::from_fallback(&repair.proposed)));
        all.extend(case.history.iter().map(RepairCandidate::from_history));
        if let Some((failure, diagnosis)) = case.failure {
            all.extend(self.known_candidates(failure, diagnosis, case.dir));
        }
        let mut seen = Vec::new();
        all.retain(|one| {
            let is_new = !seen.contains(&one.command) && !repairs.is_settled(&one.command);
            seen.push(one.command.clone());
            is_new
        });
        all
    }

    /// Returns matching candidates from the owner's list and the catalog.
    fn known_candidates(
        &self,
        failure: &Failure,
        diagnosis: &Diagnosis,
        at: &Path,
    ) -> Vec<RepairCandidate> {
        if matches!(diagnosis.category(), Category::Code | Category::None) {
            return Vec::new();
        }
        let (book, owner) = (
            self.context.catalog_source.catalog(),
            &self.settings.rules.auto_approve,
        );
        let asked = probes_for(book, failure, diagnosis, owner);
        let search = self.context.environment.iter();
        let search = search.clone().find(|(name, _)| name == "PATH");
        let search = search.map(|(_, path)| path.as_os_str());
        let facts = probe_project(self.project, at, search, &asked);
        let found = suggest_repairs(book, failure, diagnosis, &facts, owner);
        found
            .suggestions
            .into_iter()
            .map(RepairCandidate::from_catalog)
            .collect()
    }
}

fn proposed_event(
    candidate: &RepairCandidate,
    weighed: &PolicyCheckedRepair,
    case: &RepairQuery<'_>,
    fingerprint: &str,
) -> RepairProposed {
    let new = || format!("r{}", case.repairs.next_number());
    RepairProposed {
        session: match case.source {
            RepairQueryScope::Session(session) => Some(session.clone()),
            RepairQueryScope::Run => None,
        },
        id: candidate.id.clone().unwrap_or_else(new),
        category: candidate.category,
        command: candidate.command.clone(),
        confidence: candidate.confidence,
        working_dir: candidate.working_dir.clone(),
        timeout_seconds: candidate.timeout_seconds,
        by: candidate.proposer,
        root_cause: candidate.root_cause.clone(),
        evidence: candidate.evidence.clone(),
        expected_outcome: candidate.expected_outcome.clone(),
        fingerprint: fingerprint.to_owned(),
        fallback: candidate.fallback.clone(),
        document: candidate.document.clone(),
        verdict: weighed.verdict(),
        reason: weighed.reason().to_owned(),
        hash: weighed.hash.clone(),
    }
}
