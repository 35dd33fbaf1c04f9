//! What an agent has written into its `recovery.json`, read once.

use std::path::{Path, PathBuf};

use unstuck_core::Timestamp;
use unstuck_core::event::{Event, Proposer, RecoveryRejected, SessionId};
use unstuck_core::guard::Proposal;
use unstuck_core::recovery::Repairs;
use unstuck_files::DirHandle;
use unstuck_repair::proposal_file::ProposalFile;

use super::best::{Case, Source};
use super::candidate::Candidate;
use super::repairer::Repairer;

/// The name of the file that an agent proposes a repair in, in the folder of its attempt.
const FILE: &str = "recovery.json";

/// Where an agent proposes a repair.
pub(in crate::drive) fn path_in(attempt: &Path) -> PathBuf {
    attempt.join(FILE)
}

/// Whether an agent has put something where it may propose a repair.
pub(in crate::drive) fn is_there(attempt: &DirHandle) -> bool {
    attempt.kind(Path::new(FILE)).is_some()
}

/// What the agent has proposed in the attempt of this folder, judged; none where there is nothing new.
pub(in crate::drive) fn read(
    repairer: Repairer<'_>,
    attempt: &DirHandle,
    session: &SessionId,
    fingerprint: &str,
    repairs: &Repairs,
    now: Timestamp,
) -> Option<Event> {
    let rejected = |reason: String, document: Option<String>| {
        Some(Event::from(RecoveryRejected {
            session: Some(session.clone()),
            reason,
            document,
        }))
    };
    let document = match ProposalFile::read_in(attempt, Path::new(FILE)) {
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
    let candidate = Candidate::proposed(&proposal, Proposer::Agent, hash.clone());
    let case = Case {
        source: Source::Session(session),
        at: repairer.project,
        failure: None,
        repairs,
        remembered: &[],
        now,
    };
    match repairer.told(&candidate, &case, fingerprint) {
        Ok(proposed) => Some(Event::from(Box::new(proposed))),
        Err(reason) => rejected(reason, hash),
    }
}
