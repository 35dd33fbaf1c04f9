//! What an agent has written into its `recovery.json`, read once.

use std::path::{Path, PathBuf};

use unstuck_core::Timestamp;
use unstuck_core::command_policy::Proposal;
use unstuck_core::event::{Event, Proposer, RepairRejected, SessionId};
use unstuck_core::session_state::RepairStates;
use unstuck_files::DirHandle;
use unstuck_repair::proposal_file::ProposalFile;

use super::candidate::RepairCandidate;
use super::coordinator::RepairCoordinator;
use super::select::{RepairOrigin, RepairQuery};

/// The name of the file that an agent proposes a repair in, in the folder of its attempt.
const PROPOSAL_FILE: &str = "recovery.json";

/// Where an agent proposes a repair.
pub(in crate::runner) fn proposal_path(attempt: &Path) -> PathBuf {
    attempt.join(PROPOSAL_FILE)
}

/// Whether an agent has put something where it may propose a repair.
pub(in crate::runner) fn has_proposal(attempt: &DirHandle) -> bool {
    attempt.kind(Path::new(PROPOSAL_FILE)).is_some()
}

/// What the agent has proposed in the attempt of this folder, judged; none where there is nothing new.
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
    let candidate = RepairCandidate::from_proposal(&proposal, Proposer::Agent, hash.clone());
    let case = RepairQuery {
        source: RepairOrigin::Session(session),
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
