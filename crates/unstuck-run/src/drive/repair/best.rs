//! The best of all repairs that fit a failure.

use std::path::Path;
use std::time::Duration;

use unstuck_core::decision::{RepairLeave, RepairOffer};
use unstuck_core::event::{GuardWord, Proposer, RecoveryProposed, SessionId};
use unstuck_core::recovery::{Repair, RepairState, Repairs};
use unstuck_core::repair::{offers, questions};
use unstuck_core::{Category, Diagnosis, Failure, Timestamp};
use unstuck_repair::place::Root;
use unstuck_repair::survey;

use super::candidate::Candidate;
use super::memory::Remembered;
use super::repairer::Repairer;
use super::terms::RepairMode;
use super::weighing::Weighed;

/// What a repair is looked for.
pub(in crate::drive) struct Case<'a> {
    pub(in crate::drive) source: Source<'a>,
    /// The folder in which it failed.
    pub(in crate::drive) at: &'a Path,
    /// What failed, where something did.
    pub(in crate::drive) failure: Option<(&'a Failure, &'a Diagnosis)>,
    pub(in crate::drive) repairs: &'a Repairs,
    pub(in crate::drive) remembered: &'a [Remembered],
    pub(in crate::drive) now: Timestamp,
}

/// What a repair is for.
#[derive(Debug, Clone, Copy)]
pub(in crate::drive) enum Source<'a> {
    /// A session whose attempt failed.
    Session(&'a SessionId),
    /// The run as a whole, between two iterations.
    Run,
}

/// The best repair of all that fit.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::drive) struct Best {
    pub(in crate::drive) proposed: RecoveryProposed,
    pub(in crate::drive) leave: RepairLeave,
    /// Whether it has not been told yet.
    pub(in crate::drive) is_new: bool,
    number: u32,
    of: u32,
}

impl Best {
    /// One that a person has allowed.
    pub(in crate::drive) fn allowed(proposed: RecoveryProposed) -> Self {
        Self {
            proposed,
            leave: RepairLeave::Granted {
                after: Duration::ZERO,
            },
            is_new: false,
            number: 1,
            of: 1,
        }
    }

    /// How long is waited before it runs.
    pub(in crate::drive) fn wait(&self) -> Duration {
        match self.leave {
            RepairLeave::Granted { after } => after,
            RepairLeave::AskedNow | RepairLeave::AskedLast => Duration::ZERO,
        }
    }

    /// It as a decision takes it.
    pub(in crate::drive) fn offer(&self) -> RepairOffer<'_> {
        RepairOffer {
            id: &self.proposed.id,
            command: &self.proposed.command,
            leave: self.leave,
            number: self.number,
            of: self.of,
        }
    }
}

impl Repairer<'_> {
    /// The first that may run by itself; if none may, the first that a person can allow.
    pub(in crate::drive) fn best(&self, case: &Case<'_>) -> Option<Best> {
        let root = Root::open(self.project).ok()?;
        let mut asked = None;
        for candidate in self.candidates(case) {
            let Ok(weighed) = self.weigh(&root, &candidate, case.repairs) else {
                continue;
            };
            let leave = match weighed.word() {
                GuardWord::Deny => continue,
                GuardWord::Run if self.terms.mode == RepairMode::Auto => {
                    let after = self.cooling(case.repairs, case.now);
                    return Some(self.chosen(
                        candidate,
                        &weighed,
                        RepairLeave::Granted { after },
                        case,
                    ));
                }
                _ if candidate.is_awaited() || self.terms.mode == RepairMode::Ask => {
                    RepairLeave::AskedNow
                }
                _ => RepairLeave::AskedLast,
            };
            asked.get_or_insert((candidate, weighed, leave));
        }
        let (candidate, weighed, leave) = asked?;
        Some(self.chosen(candidate, &weighed, leave, case))
    }

    fn chosen(
        &self,
        candidate: Candidate,
        weighed: &Weighed,
        leave: RepairLeave,
        case: &Case<'_>,
    ) -> Best {
        let fingerprint = case
            .failure
            .map_or("", |(_, diagnosis)| &diagnosis.fingerprint);
        Best {
            is_new: candidate.id.is_none(),
            proposed: proposed(&candidate, weighed, case, fingerprint),
            leave,
            number: case.repairs.auto() + 1,
            of: self.terms.rules.max_auto_recoveries_per_run,
        }
    }

    /// A proposal as it is told; an error where it is refused as a whole.
    pub(super) fn told(
        &self,
        candidate: &Candidate,
        case: &Case<'_>,
        fingerprint: &str,
    ) -> Result<RecoveryProposed, String> {
        let root = Root::open(self.project).map_err(|error| error.to_string())?;
        let weighed = self.weigh(&root, candidate, case.repairs)?;
        Ok(proposed(candidate, &weighed, case, fingerprint))
    }

    /// All that fit, in the order in which they are to be considered; nothing that was tried in this run.
    fn candidates(&self, case: &Case<'_>) -> Vec<Candidate> {
        let is_its = |repair: &&Repair| match case.source {
            Source::Session(session) => repair.proposed.session.as_ref() == Some(session),
            Source::Run => true,
        };
        let repairs = case.repairs;
        let mut all: Vec<Candidate> = repairs
            .waiting()
            .filter(is_its)
            .map(|repair| Candidate::told(&repair.proposed))
            .collect();
        let failed = |repair: &&Repair| {
            repair.state == RepairState::Failed && repair.proposed.by == Proposer::Agent
        };
        let failed = repairs.all().iter().filter(is_its).filter(failed);
        all.extend(failed.filter_map(|repair| Candidate::fallback(&repair.proposed)));
        all.extend(case.remembered.iter().map(Candidate::remembered));
        if let Some((failure, diagnosis)) = case.failure {
            all.extend(self.known(failure, diagnosis, case.at));
        }
        let mut seen = Vec::new();
        all.retain(|one| {
            let is_new = !seen.contains(&one.command) && !repairs.is_settled(&one.command);
            seen.push(one.command.clone());
            is_new
        });
        all
    }

    /// What the owner's list and the built-in knowledge have against a failure.
    fn known(&self, failure: &Failure, diagnosis: &Diagnosis, at: &Path) -> Vec<Candidate> {
        if matches!(diagnosis.category(), Category::Code | Category::None) {
            return Vec::new();
        }
        let (book, owner) = (self.workshop.knows.book(), &self.terms.rules.auto_approve);
        let asked = questions(book, failure, diagnosis, owner);
        let search = self.workshop.environment.iter();
        let search = search.clone().find(|(name, _)| name == "PATH");
        let search = search.map(|(_, path)| path.as_os_str());
        let facts = survey(self.project, at, search, &asked);
        let found = offers(book, failure, diagnosis, &facts, owner);
        found.offers.into_iter().map(Candidate::known).collect()
    }
}

fn proposed(
    candidate: &Candidate,
    weighed: &Weighed,
    case: &Case<'_>,
    fingerprint: &str,
) -> RecoveryProposed {
    let new = || format!("r{}", case.repairs.next_number());
    RecoveryProposed {
        session: match case.source {
            Source::Session(session) => Some(session.clone()),
            Source::Run => None,
        },
        id: candidate.id.clone().unwrap_or_else(new),
        category: candidate.category,
        command: candidate.command.clone(),
        confidence: candidate.confidence,
        working_dir: candidate.working_dir.clone(),
        timeout_seconds: candidate.timeout_seconds,
        by: candidate.by,
        root_cause: candidate.root_cause.clone(),
        evidence: candidate.evidence.clone(),
        expected_outcome: candidate.expected_outcome.clone(),
        fingerprint: fingerprint.to_owned(),
        fallback: candidate.fallback.clone(),
        document: candidate.document.clone(),
        verdict: weighed.word(),
        reason: weighed.reason().to_owned(),
        hash: weighed.hash.clone(),
    }
}
