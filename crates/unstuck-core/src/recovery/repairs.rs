//! The repairs of a run: what was proposed, what was allowed, and what came of it, as a fold over its events.

use crate::event::{
    ApprovalSource, Event, GuardWord, Proposer, Recorded, RecoveryProposed, RecoveryResolved,
    SessionId,
};
use crate::moment::Timestamp;

/// The repairs of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Repairs {
    all: Vec<Repair>,
    /// The contents of all documents that were read, by their hashes: one that comes again is no new one.
    documents: Vec<String>,
    /// Why documents were refused in this iteration, by session; the agent of a new attempt has been told.
    refused: Vec<Refused>,
    /// How many ran by themselves.
    auto: u32,
    /// When the newest of those began.
    newest: Option<Timestamp>,
    /// The commit that was checked out when the run began.
    head: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct Refused {
    session: Option<SessionId>,
    why: String,
    is_told: bool,
}

/// One repair.
#[derive(Debug, Clone, PartialEq)]
pub struct Repair {
    /// What was proposed.
    pub proposed: RecoveryProposed,
    /// When.
    pub at: Timestamp,
    /// How far it has come.
    pub state: RepairState,
    /// Who allowed it, if somebody did.
    pub source: Option<ApprovalSource>,
    /// Whether a person was asked about it.
    pub was_asked: bool,
    /// Its exit code, where it came to one.
    pub exit_code: Option<i32>,
    /// When it was settled.
    pub settled: Option<Timestamp>,
}

/// How far a repair has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairState {
    /// It is proposed.
    Proposed,
    /// A person is asked about it.
    Asked,
    /// It may run.
    Approved,
    /// It runs, or ran when everything ended.
    Running,
    /// It ran, and what failed before has not been tried again.
    Executed,
    /// What failed before works.
    Worked,
    /// It did not help.
    Failed,
    /// It will not be run.
    Dropped,
}

impl Repairs {
    /// Takes in what happened.
    pub fn record(&mut self, recorded: &Recorded) {
        let at = recorded.at;
        match &recorded.event {
            Event::RunStarted(started) => self.head.clone_from(&started.head),
            Event::RecoveryProposed(proposed) => self.proposed(proposed, at),
            Event::RecoveryRejected(rejected) => {
                self.documents.extend(rejected.document.clone());
                self.refused.push(Refused {
                    session: rejected.session.clone(),
                    why: rejected.reason.clone(),
                    is_told: false,
                });
            }
            Event::RecoveryApproved(approved) => {
                self.turn(&approved.id, at, RepairState::Approved);
                if let Some(repair) = self.named_mut(&approved.id) {
                    repair.source = Some(approved.source);
                }
            }
            Event::RecoveryStarted(started) => {
                self.turn(&started.id, at, RepairState::Running);
                if started.source == ApprovalSource::Auto {
                    self.auto += 1;
                    self.newest = Some(at);
                }
            }
            Event::RecoveryExecuted(executed) => {
                self.turn(&executed.id, at, RepairState::Executed);
                if let Some(repair) = self.named_mut(&executed.id) {
                    repair.exit_code = Some(executed.exit_code);
                }
            }
            Event::RecoveryFailed(failed) => self.turn(&failed.id, at, RepairState::Failed),
            Event::RecoveryEscalated(asked) => {
                let id = asked.repair.as_deref().unwrap_or_default();
                self.turn(id, at, RepairState::Asked);
                if let Some(repair) = self.named_mut(id) {
                    repair.was_asked = true;
                }
            }
            Event::RecoveryResolved(resolved) => self.answered(resolved, at),
            Event::RunResumed(_) => self.passed_over(at),
            Event::AttemptStarted(attempt) => {
                let is_its = |one: &&mut Refused| one.session.as_ref() == Some(&attempt.session);
                let its = self.refused.iter_mut().filter(is_its);
                its.for_each(|one| one.is_told = true);
            }
            Event::IterationStarted(_) => self.refused.clear(),
            _ => {}
        }
    }

    /// The commit that was checked out when the run began; empty where there was none, none where nobody noted it.
    pub fn head(&self) -> Option<&str> {
        self.head.as_deref()
    }

    fn proposed(&mut self, proposed: &RecoveryProposed, at: Timestamp) {
        self.documents.extend(proposed.document.clone());
        self.all.push(Repair {
            proposed: proposed.clone(),
            at,
            state: match proposed.verdict {
                GuardWord::Deny => RepairState::Dropped,
                GuardWord::Run | GuardWord::Ask => RepairState::Proposed,
            },
            source: None,
            was_asked: false,
            exit_code: None,
            settled: None,
        });
    }

    /// Whoever says anything but yes does not want it to run.
    fn answered(&mut self, resolved: &RecoveryResolved, at: Timestamp) {
        if !resolved.is_by_person() {
            let id = resolved.id.as_deref().unwrap_or_default();
            return self.turn(id, at, RepairState::Worked);
        }
        if resolved.method == "approve" {
            return;
        }
        let is_meant = |repair: &&mut Repair| {
            repair.state == RepairState::Asked
                && (resolved.session.is_none() || repair.proposed.session == resolved.session)
        };
        for repair in self.all.iter_mut().filter(is_meant) {
            repair.state = RepairState::Dropped;
            repair.settled = Some(at);
        }
    }

    /// Whoever takes a run up again without an answer does not want it to run.
    fn passed_over(&mut self, at: Timestamp) {
        let asked = |repair: &&mut Repair| repair.state == RepairState::Asked;
        for repair in self.all.iter_mut().filter(asked) {
            repair.state = RepairState::Dropped;
            repair.settled = Some(at);
        }
    }

    fn turn(&mut self, id: &str, at: Timestamp, state: RepairState) {
        if let Some(repair) = self.named_mut(id) {
            repair.state = state;
            let is_over = matches!(state, RepairState::Failed | RepairState::Worked);
            repair.settled = is_over.then_some(at);
        }
    }

    fn named_mut(&mut self, id: &str) -> Option<&mut Repair> {
        self.all.iter_mut().rev().find(|one| one.proposed.id == id)
    }

    /// The repair of that id.
    pub fn named(&self, id: &str) -> Option<&Repair> {
        self.all.iter().rev().find(|one| one.proposed.id == id)
    }

    /// All of them, in the order in which they were proposed.
    pub fn all(&self) -> &[Repair] {
        &self.all
    }

    /// How many ran by themselves.
    pub fn auto(&self) -> u32 {
        self.auto
    }

    /// When the newest that ran by itself began.
    pub fn newest(&self) -> Option<Timestamp> {
        self.newest
    }

    /// Whether a document of this content was read before.
    pub fn has_read(&self, document: &str) -> bool {
        self.documents.iter().any(|one| one == document)
    }

    /// What was run in this run, or must not be, whatever it is for: nothing is tried twice.
    pub fn is_settled(&self, command: &str) -> bool {
        let is_over = |repair: &Repair| {
            !matches!(
                repair.state,
                RepairState::Proposed | RepairState::Asked | RepairState::Approved
            )
        };
        let same = |repair: &&Repair| repair.proposed.command == command;
        self.all.iter().filter(same).any(is_over)
    }

    /// Why documents of a session were refused since its newest attempt began.
    pub fn refused(&self, session: &SessionId) -> impl Iterator<Item = &str> {
        let is_its = move |one: &&Refused| one.session.as_ref() == Some(session) && !one.is_told;
        self.refused
            .iter()
            .filter(is_its)
            .map(|one| one.why.as_str())
    }

    /// Why documents were refused in this iteration, and the agent was not told by a further attempt.
    pub fn refused_in_iteration(&self) -> impl Iterator<Item = &str> {
        let untold = self.refused.iter().filter(|one| !one.is_told);
        untold.map(|one| one.why.as_str())
    }

    /// The newest that was run for a session, and was followed by nothing that tells whether it helped.
    pub fn executed(&self, session: Option<&SessionId>) -> Option<&Repair> {
        let is_it = |repair: &&Repair| {
            repair.state == RepairState::Executed && repair.proposed.session.as_ref() == session
        };
        self.all.iter().rev().find(is_it)
    }

    /// What agents proposed and nobody has settled, in the order in which they did.
    pub fn waiting(&self) -> impl Iterator<Item = &Repair> {
        let by_agent = |repair: &&Repair| {
            matches!(repair.proposed.by, Proposer::Agent | Proposer::Fallback)
                && matches!(repair.state, RepairState::Proposed | RepairState::Approved)
        };
        self.all.iter().filter(by_agent)
    }

    /// What a person has allowed and nobody has begun, for the run as a whole.
    pub fn allowed(&self) -> Option<&Repair> {
        let is_it = |repair: &&Repair| {
            repair.state == RepairState::Approved && repair.source == Some(ApprovalSource::Human)
        };
        self.all.iter().find(is_it)
    }

    /// What had begun when everything ended.
    pub fn cut_off(&self) -> Option<&Repair> {
        let running = |repair: &&Repair| repair.state == RepairState::Running;
        self.all.iter().find(running)
    }

    /// The number of the next repair, for its id.
    pub fn next_number(&self) -> usize {
        self.all.len() + 1
    }
}
