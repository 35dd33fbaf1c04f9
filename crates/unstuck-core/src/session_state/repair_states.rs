//! The repairs of a run: what was proposed, what was allowed, and what came of it, as a fold over its events.

use crate::event::{
    ApprovalSource, EscalationResolved, Event, EventRecord, PolicyVerdict, Proposer,
    RepairProposed, SessionId,
};
use crate::time::Timestamp;

/// The repairs of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RepairStates {
    repairs: Vec<RepairRecord>,
    /// The contents of all documents that were read, by their hashes: one that comes again is no new one.
    documents: Vec<String>,
    /// Why documents were refused in this iteration, by session; the agent of a new attempt has been told.
    refusals: Vec<DocumentRefusal>,
    /// How many ran by themselves.
    auto_count: u32,
    /// When the newest of those began.
    last_auto_start: Option<Timestamp>,
    /// The commit that was checked out when the run began.
    head: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct DocumentRefusal {
    session: Option<SessionId>,
    why: String,
    is_reported: bool,
}

/// One repair.
#[derive(Debug, Clone, PartialEq)]
pub struct RepairRecord {
    /// What was proposed.
    pub proposed: RepairProposed,
    /// When.
    pub at: Timestamp,
    /// How far it has come.
    pub status: RepairStatus,
    /// Who allowed it, if somebody did.
    pub source: Option<ApprovalSource>,
    /// Whether a person was asked about it.
    pub was_escalated: bool,
    /// Its exit code, where it came to one.
    pub exit_code: Option<i32>,
    /// When it was settled.
    pub settled_at: Option<Timestamp>,
}

/// How far a repair has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairStatus {
    /// It is proposed.
    Proposed,
    /// A person is asked about it.
    AwaitingApproval,
    /// It may run.
    Approved,
    /// It runs, or ran when everything ended.
    Running,
    /// It ran, and what failed before has not been tried again.
    Executed,
    /// What failed before works.
    Helped,
    /// It did not help.
    Failed,
    /// It will not be run.
    Dropped,
}

impl RepairStates {
    /// Takes in what happened.
    pub fn apply(&mut self, recorded: &EventRecord) {
        let at = recorded.at;
        match &recorded.event {
            Event::RunStarted(started) => self.head.clone_from(&started.head),
            Event::RepairProposed(proposed) => self.on_proposed(proposed, at),
            Event::RepairRejected(rejected) => {
                self.documents.extend(rejected.document.clone());
                self.refusals.push(DocumentRefusal {
                    session: rejected.session.clone(),
                    why: rejected.reason.clone(),
                    is_reported: false,
                });
            }
            Event::RepairApproved(approved) => {
                self.set_status(&approved.id, at, RepairStatus::Approved);
                if let Some(repair) = self.get_mut(&approved.id) {
                    repair.source = Some(approved.source);
                }
            }
            Event::RepairStarted(started) => {
                self.set_status(&started.id, at, RepairStatus::Running);
                if started.source == ApprovalSource::Auto {
                    self.auto_count += 1;
                    self.last_auto_start = Some(at);
                }
            }
            Event::RepairExecuted(executed) => {
                self.set_status(&executed.id, at, RepairStatus::Executed);
                if let Some(repair) = self.get_mut(&executed.id) {
                    repair.exit_code = Some(executed.exit_code);
                }
            }
            Event::RepairFailed(failed) => self.set_status(&failed.id, at, RepairStatus::Failed),
            Event::EscalationOpened(asked) => {
                let id = asked.repair.as_deref().unwrap_or_default();
                self.set_status(id, at, RepairStatus::AwaitingApproval);
                if let Some(repair) = self.get_mut(id) {
                    repair.was_escalated = true;
                }
            }
            Event::EscalationResolved(resolved) => self.on_escalation_resolved(resolved, at),
            Event::RunResumed(_) => self.drop_unanswered(at),
            Event::AttemptStarted(attempt) => {
                let is_its =
                    |one: &&mut DocumentRefusal| one.session.as_ref() == Some(&attempt.session);
                let its = self.refusals.iter_mut().filter(is_its);
                its.for_each(|one| one.is_reported = true);
            }
            Event::IterationStarted(_) => self.refusals.clear(),
            _ => {}
        }
    }

    /// The commit that was checked out when the run began; empty where there was none, none where nobody noted it.
    pub fn head(&self) -> Option<&str> {
        self.head.as_deref()
    }

    fn on_proposed(&mut self, proposed: &RepairProposed, at: Timestamp) {
        self.documents.extend(proposed.document.clone());
        self.repairs.push(RepairRecord {
            proposed: proposed.clone(),
            at,
            status: match proposed.verdict {
                PolicyVerdict::Deny => RepairStatus::Dropped,
                PolicyVerdict::Run | PolicyVerdict::Ask => RepairStatus::Proposed,
            },
            source: None,
            was_escalated: false,
            exit_code: None,
            settled_at: None,
        });
    }

    /// Whoever says anything but yes does not want it to run.
    fn on_escalation_resolved(&mut self, resolved: &EscalationResolved, at: Timestamp) {
        if !resolved.is_by_person() {
            let id = resolved.id.as_deref().unwrap_or_default();
            return self.set_status(id, at, RepairStatus::Helped);
        }
        if resolved.method == "approve" {
            return;
        }
        let is_meant = |repair: &&mut RepairRecord| {
            repair.status == RepairStatus::AwaitingApproval
                && (resolved.session.is_none() || repair.proposed.session == resolved.session)
        };
        for repair in self.repairs.iter_mut().filter(is_meant) {
            repair.status = RepairStatus::Dropped;
            repair.settled_at = Some(at);
        }
    }

    /// Whoever takes a run up again without an answer does not want it to run.
    fn drop_unanswered(&mut self, at: Timestamp) {
        let asked = |repair: &&mut RepairRecord| repair.status == RepairStatus::AwaitingApproval;
        for repair in self.repairs.iter_mut().filter(asked) {
            repair.status = RepairStatus::Dropped;
            repair.settled_at = Some(at);
        }
    }

    fn set_status(&mut self, id: &str, at: Timestamp, state: RepairStatus) {
        if let Some(repair) = self.get_mut(id) {
            repair.status = state;
            let is_over = matches!(state, RepairStatus::Failed | RepairStatus::Helped);
            repair.settled_at = is_over.then_some(at);
        }
    }

    fn get_mut(&mut self, id: &str) -> Option<&mut RepairRecord> {
        self.repairs
            .iter_mut()
            .rev()
            .find(|one| one.proposed.id == id)
    }

    /// The repair of that id.
    pub fn get(&self, id: &str) -> Option<&RepairRecord> {
        self.repairs.iter().rev().find(|one| one.proposed.id == id)
    }

    /// All of them, in the order in which they were proposed.
    pub fn all(&self) -> &[RepairRecord] {
        &self.repairs
    }

    /// How many ran by themselves.
    pub fn auto_count(&self) -> u32 {
        self.auto_count
    }

    /// When the newest that ran by itself began.
    pub fn last_auto_start(&self) -> Option<Timestamp> {
        self.last_auto_start
    }

    /// Whether a document of this content was read before.
    pub fn has_read(&self, document: &str) -> bool {
        self.documents.iter().any(|one| one == document)
    }

    /// What was run in this run, or must not be, whatever it is for: nothing is tried twice.
    pub fn is_settled(&self, command: &str) -> bool {
        let is_over = |repair: &RepairRecord| {
            !matches!(
                repair.status,
                RepairStatus::Proposed | RepairStatus::AwaitingApproval | RepairStatus::Approved
            )
        };
        let same = |repair: &&RepairRecord| repair.proposed.command == command;
        self.repairs.iter().filter(same).any(is_over)
    }

    /// Why documents of a session were refused since its newest attempt began.
    pub fn refusals_for(&self, session: &SessionId) -> impl Iterator<Item = &str> {
        let is_its =
            move |one: &&DocumentRefusal| one.session.as_ref() == Some(session) && !one.is_reported;
        self.refusals
            .iter()
            .filter(is_its)
            .map(|one| one.why.as_str())
    }

    /// Why documents were refused in this iteration, and the agent was not told by a further attempt.
    pub fn unreported_refusals(&self) -> impl Iterator<Item = &str> {
        let untold = self.refusals.iter().filter(|one| !one.is_reported);
        untold.map(|one| one.why.as_str())
    }

    /// The newest that was run for a session, and was followed by nothing that tells whether it helped.
    pub fn last_executed(&self, session: Option<&SessionId>) -> Option<&RepairRecord> {
        let is_it = |repair: &&RepairRecord| {
            repair.status == RepairStatus::Executed && repair.proposed.session.as_ref() == session
        };
        self.repairs.iter().rev().find(is_it)
    }

    /// What agents proposed and nobody has settled, in the order in which they did.
    pub fn unsettled_proposals(&self) -> impl Iterator<Item = &RepairRecord> {
        let by_agent = |repair: &&RepairRecord| {
            matches!(repair.proposed.by, Proposer::Agent | Proposer::Fallback)
                && matches!(
                    repair.status,
                    RepairStatus::Proposed | RepairStatus::Approved
                )
        };
        self.repairs.iter().filter(by_agent)
    }

    /// What a person has allowed and nobody has begun, for the run as a whole.
    pub fn next_approved(&self) -> Option<&RepairRecord> {
        let is_it = |repair: &&RepairRecord| {
            repair.status == RepairStatus::Approved && repair.source == Some(ApprovalSource::Human)
        };
        self.repairs.iter().find(is_it)
    }

    /// What had begun when everything ended.
    pub fn interrupted(&self) -> Option<&RepairRecord> {
        let running = |repair: &&RepairRecord| repair.status == RepairStatus::Running;
        self.repairs.iter().find(running)
    }

    /// The number of the next repair, for its id.
    pub fn next_number(&self) -> usize {
        self.repairs.len() + 1
    }
}
