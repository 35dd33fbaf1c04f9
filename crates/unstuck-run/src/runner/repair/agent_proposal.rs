//! Reads the proposal that an agent wrote to its `recovery.json`, once.

use std::path::{Path, PathBuf};

use unstuck_core::Timestamp;
use unstuck_core::command_policy::Proposal;
use unstuck_core::event::{Event, RepairProposalOrigin, RepairRejected, SessionId};
use unstuck_core::session_state::RepairStates;
use unstuck_files::DirHandle;
use unstuck_repair::proposal_file::ProposalFile;

use super::coordinator::RepairCoordinator;
use super::select::{RepairQuery, RepairQueryScope};
use super::unevaluated_candidate::RepairCandidate;

/// Name of the file for an agent's proposal, in the directory of its attempt.
const PROPOSAL_FILE: &str = "recovery.json";

/// Returns the path of an agent's proposal.
pub(in crate::runner) fn proposal_path(attempt: &Path) -> PathBuf {
    attempt.join(PROPOSAL_FILE)
}

/// Returns true if an agent has written a proposal.
pub(in crate::runner) fn has_proposal(attempt: &DirHandle) -> bool {
    attempt.kind(Path::new(PROPOSAL_FILE)).is_some()
}

/// Reads and evaluates the proposal in an attempt's directory; `None` if there is no new one.
pub(in crate::runner) fn read_proposal(
    repairer: RepairCoordinator<'_>,
    attempt: &DirHandle,
    session: &SessionId,
    fingerprint: &str,
    repairs: &RepairStates,
    now: Timestamp,
) -> Option<Event> {
    let rejected = |reason: String, document: Option<String>| {
        Some(Event::from(RepairRejected {
            session: Some(session.clone()),
            reason,
            document,
        }))
    };
    let document = match ProposalFile::read_in(attempt, Path::new(PROPOSAL_FILE)) {
        Ok(Some(document)) => document,
        Ok(None) => return None,
        Err(error) => return rejected(error.to_string(), None),
    };
    if repairs.has_read(&document.sha256) {
        return None;
    }
    let hash = Some(document.sha256.clone());
    let proposal = match Proposal::parse(&document.bytes) {
        Ok(proposal) => proposal,
        Err(error) => return rejected(error.to_string(), hash),
    };
    let candidate =
        RepairCandidate::from_proposal(&proposal, RepairProposalOrigin::Agent, hash.clone());
    let case = RepairQuery {
        source: RepairQueryScope::Session(session),
        dir: repairer.project,
        failure: None,
        repairs,
        history: &[],
        now,
    };
    match repairer.proposed_event(&candidate, &case, fingerprint) {
        Ok(proposed) => Some(Event::from(Box::new(proposed))),
        Err(reason) => rejected(reason, hash),
    }
}
