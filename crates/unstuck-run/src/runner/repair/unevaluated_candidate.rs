//! A repair candidate, before its evaluation.

use unstuck_core::command_policy::{Proposal, ProposalConfidence, RepairCategory};
use unstuck_core::event::{RepairProposalOrigin, RepairProposed};
use unstuck_core::repair::RepairSuggestion;

use super::approved_repairs::PreviouslyApprovedRepair;

/// A repair candidate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RepairCandidate {
    /// Its id in this run, if it was proposed before.
    pub(crate) id: Option<String>,
    pub(crate) proposer: RepairProposalOrigin,
    pub(crate) category: RepairCategory,
    pub(crate) command: String,
    pub(crate) working_dir: Option<String>,
    pub(crate) timeout_seconds: u32,
    pub(crate) confidence: ProposalConfidence,
    pub(crate) root_cause: String,
    pub(crate) evidence: Vec<String>,
    pub(crate) expected_outcome: String,
    pub(crate) fallback: Option<String>,
    pub(crate) document: Option<String>,
}

impl RepairCandidate {
    /// Returns the candidate of a proposal by an agent or a human.
    pub(crate) fn from_proposal(
        proposal: &Proposal,
        proposer: RepairProposalOrigin,
        document: Option<String>,
    ) -> Self {
        let (recovery, diagnosis) = (&proposal.recovery, &proposal.diagnosis);
        Self {
            id: None,
            proposer,
            category: proposal.category,
            command: recovery.command.clone(),
            working_dir: recovery.working_dir.clone(),
            timeout_seconds: recovery.timeout_seconds,
            confidence: recovery.confidence,
            root_cause: diagnosis.root_cause.clone(),
            evidence: diagnosis.evidence.clone(),
            expected_outcome: recovery.expected_outcome.clone(),
            fallback: proposal.fallback.as_ref().map(|one| one.command.clone()),
            document,
        }
    }

    /// Returns the candidate of a recorded proposal.
    pub(crate) fn from_event(proposed: &RepairProposed) -> Self {
        Self {
            id: Some(proposed.id.clone()),
            proposer: proposed.by,
            category: proposed.category,
            command: proposed.command.clone(),
            working_dir: proposed.working_dir.clone(),
            timeout_seconds: proposed.timeout_seconds,
            confidence: proposed.confidence,
            root_cause: proposed.root_cause.clone(),
            evidence: proposed.evidence.clone(),
            expected_outcome: proposed.expected_outcome.clone(),
            fallback: proposed.fallback.clone(),
            document: proposed.document.clone(),
        }
    }

    /// Returns the fallback of a repair that did not help, if it has one.
    pub(crate) fn from_fallback(of: &RepairProposed) -> Option<Self> {
        let command = of.fallback.clone()?;
        Some(Self {
            id: None,
            proposer: RepairProposalOrigin::Fallback,
            command,
            fallback: None,
            document: None,
            ..Self::from_event(of)
        })
    }

    /// Returns the candidate of a repair that helped before.
    pub(crate) fn from_history(one: &PreviouslyApprovedRepair) -> Self {
        Self {
            id: None,
            proposer: RepairProposalOrigin::Remembered,
            confidence: ProposalConfidence::High,
            root_cause: one.success_summary(),
            fallback: None,
            document: None,
            ..Self::from_event(&one.proposed)
        }
    }

    /// Returns the candidate of a catalog suggestion.
    pub(crate) fn from_catalog(offer: RepairSuggestion) -> Self {
        Self {
            id: None,
            proposer: if offer.source.is_owner() {
                RepairProposalOrigin::Owner
            } else {
                RepairProposalOrigin::BuiltIn
            },
            category: offer.category,
            command: offer.command,
            working_dir: offer.working_dir,
            timeout_seconds: offer.timeout_seconds,
            confidence: offer.confidence,
            root_cause: offer.root_cause,
            evidence: offer.evidence,
            expected_outcome: offer.expected_outcome,
            fallback: None,
            document: None,
        }
    }

    /// Returns true if its approval is pending.
    pub(crate) fn is_answer_pending(&self) -> bool {
        matches!(
            self.proposer,
            RepairProposalOrigin::Agent | RepairProposalOrigin::Fallback
        )
    }
}
