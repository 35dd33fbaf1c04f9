//! The states of a run's repairs, as a fold over its events.

use crate::event::{
    ApprovalSource, EscalationResolved, Event, EventRecord, PolicyVerdict, RepairProposalOrigin,
    RepairProposed, SessionId,
};
use crate::time::Timestamp;

/// The repairs of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RepairStates {
    repairs: Vec<RepairRecord>,
    /// The hashes of all documents that were read: one with the same content is not processed again.
    documents: Vec<String>,
    /// The reasons why documents were rejected in this iteration, by session; a new attempt's prompt contains them.
    refusals: Vec<DocumentRefusal>,
    /// The number of automatic repairs.
    auto_count: u32,
    /// The start of the latest automatic repair.
    last_auto_start: Option<Timestamp>,
    /// The commit checked out when the run started.
    head: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct DocumentRefusal {
    session: Option<SessionId>,
    why: String,
    is_reported: bool,
}

/// A repair and its state.
#[derive(Debug, Clone, PartialEq)]
pub struct RepairRecord {
    /// The proposal.
    pub proposed: RepairProposed,
    /// The time of the proposal.
    pub at: Timestamp,
    /// The status.
    pub status: RepairStatus,
    /// The source of the approval, if it was approved.
    pub source: Option<ApprovalSource>,
    /// True if it was escalated.
    pub was_escalated: bool,
    /// The exit code, if there is one.
    pub exit_code: Option<i32>,
    /// The time when it was settled.
    pub settled_at: Option<Timestamp>,
}

/// The status of a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairStatus {
    /// It is proposed.
    Proposed,
    /// An escalation about it is open.
    AwaitingApproval,
    /// It is approved.
    Approved,
    /// It is running, or was running when the process crashed.
    Running,
    /// It ran, and the failed operation has not been retried.
    Executed,
    /// The failed operation works now.
    Helped,
    /// It failed or did not help.
    Failed,
    /// It will not run.
    Dropped,
}

impl RepairStates {
    /// Applies an event.
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

    /// Returns the commit checked out when the run started; empty if there was none, `None` if it was not recorded.
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

    /// Handles an answer: anything but approval drops the repair.
    fn on_escalation_resolved(&mut self, resolved: &EscalationResolved, at: Timestamp) {
        if !resolved.is_by_human() {
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

    /// Drops repairs without an answer: resuming the run without one means that they are not wanted.
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

    /// Returns the repair with this id.
    pub fn get(&self, id: &str) -> Option<&RepairRecord> {
        self.repairs.iter().rev().find(|one| one.proposed.id == id)
    }

    /// Returns all repairs, in the order of their proposals.
    pub fn all(&self) -> &[RepairRecord] {
        &self.repairs
    }

    /// Returns the number of automatic repairs.
    pub fn auto_count(&self) -> u32 {
        self.auto_count
    }

    /// Returns the start of the latest automatic repair.
    pub fn last_auto_start(&self) -> Option<Timestamp> {
        self.last_auto_start
    }

    /// True if a document with this content was read before.
    pub fn has_read(&self, document: &str) -> bool {
        self.documents.iter().any(|one| one == document)
    }

    /// True if the command already ran in this run or must not run, whatever it is for: no command runs twice.
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

    /// Returns the reasons why documents of a session were rejected since its latest attempt started.
    pub fn refusals_for(&self, session: &SessionId) -> impl Iterator<Item = &str> {
        let is_its =
            move |one: &&DocumentRefusal| one.session.as_ref() == Some(session) && !one.is_reported;
        self.refusals
            .iter()
            .filter(is_its)
            .map(|one| one.why.as_str())
    }

    /// Returns the reasons why documents were rejected in this iteration that no later attempt reported to the agent.
    pub fn unreported_refusals(&self) -> impl Iterator<Item = &str> {
        let untold = self.refusals.iter().filter(|one| !one.is_reported);
        untold.map(|one| one.why.as_str())
    }

    /// Returns the session's latest executed repair whose effect is still unknown.
    pub fn last_executed(&self, session: Option<&SessionId>) -> Option<&RepairRecord> {
        let is_it = |repair: &&RepairRecord| {
            repair.status == RepairStatus::Executed && repair.proposed.session.as_ref() == session
        };
        self.repairs.iter().rev().find(is_it)
    }

    /// Returns the unsettled proposals of agents, in the order of their proposals.
    pub fn pending_proposals(&self) -> impl Iterator<Item = &RepairRecord> {
        let by_agent = |repair: &&RepairRecord| {
            matches!(
                repair.proposed.by,
                RepairProposalOrigin::Agent | RepairProposalOrigin::Fallback
            ) && matches!(
                repair.status,
                RepairStatus::Proposed | RepairStatus::Approved
            )
        };
        self.repairs.iter().filter(by_agent)
    }

    /// Returns the next approved repair of the whole run that has not started.
    pub fn next_approved(&self) -> Option<&RepairRecord> {
        let is_it = |repair: &&RepairRecord| {
            repair.status == RepairStatus::Approved && repair.source == Some(ApprovalSource::Human)
        };
        self.repairs.iter().find(is_it)
    }

    /// Returns the repair that was running when the process crashed.
    pub fn interrupted(&self) -> Option<&RepairRecord> {
        let running = |repair: &&RepairRecord| repair.status == RepairStatus::Running;
        self.repairs.iter().find(running)
    }

    /// Returns the number for the next repair's id.
    pub fn next_number(&self) -> usize {
        self.repairs.len() + 1
    }
}
