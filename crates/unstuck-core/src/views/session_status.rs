//! The state of a session in five fields: the same in the CLI, the REST API, events and webhooks.

use serde::{Deserialize, Serialize};

use super::run_summary::{RunStatus, RunSummary};
use super::session_summary::SessionSummary;
use super::wait_state::WaitState;
use crate::diagnosis::RetryAfterSource;
use crate::failure::FailureKind;
use crate::time::Timestamp;

/// The state of a session or run in five fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStatusSummary {
    /// The state.
    pub state: RunStatus,
    /// The failure kind that led to the state; none if no failure did.
    pub reason: Option<FailureKind>,
    /// The end of the wait, while there is one.
    pub until: Option<Timestamp>,
    /// The source of the end of the wait, while there is one.
    pub source: Option<RetryAfterSource>,
    /// The expected next action; none if nothing is left to do.
    pub next: Option<NextActionAndTime>,
}

/// The expected next action: actor, action and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextActionAndTime {
    /// The actor.
    #[serde(alias = "who")]
    pub actor: NextActionActor,
    /// The action.
    pub action: SessionNextAction,
    /// The time, if known.
    pub at: Option<Timestamp>,
}

/// The actor of the next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NextActionActor {
    /// The agent or command itself.
    Agent,
    /// The unstuck process that supervises it.
    Unstuck,
    /// The gateway, which holds an API call.
    Gateway,
    /// A human.
    Human,
}

impl NextActionActor {
    /// All actors.
    pub const ALL: [Self; 4] = [Self::Agent, Self::Unstuck, Self::Gateway, Self::Human];

    /// Returns the wire name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Unstuck => "unstuck",
            Self::Gateway => "gateway",
            Self::Human => "human",
        }
    }
}

/// The next action in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionNextAction {
    /// The agent works.
    Work,
    /// The failed operation is retried.
    Retry,
    /// One request probes if the service is back.
    Probe,
    /// An open escalation is answered.
    Answer,
    /// The run is resumed.
    Resume,
}

impl SessionNextAction {
    /// All actions.
    pub const ALL: [Self; 5] = [
        Self::Work,
        Self::Retry,
        Self::Probe,
        Self::Answer,
        Self::Resume,
    ];

    /// Returns the wire name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Retry => "retry",
            Self::Probe => "probe",
            Self::Answer => "answer",
            Self::Resume => "resume",
        }
    }
}

/// The inputs of the five fields.
struct StatusInputs<'a> {
    status: RunStatus,
    kind: Option<FailureKind>,
    until: Option<Timestamp>,
    wait: &'a WaitState,
}

impl SessionStatusSummary {
    /// Returns the state of a run; `is_alive` is true if a process supervises it.
    pub fn for_run(view: &RunSummary, is_alive: bool) -> Self {
        let is_orphaned = view.finished.is_none() && !is_alive;
        Self::from_inputs(
            &StatusInputs {
                status: view.status,
                kind: view.kind,
                until: view.until,
                wait: &view.wait,
            },
            is_orphaned,
        )
    }

    /// Returns the state of a session; `is_orphaned` is true if its run should continue and no process supervises it.
    pub fn for_session(view: &SessionSummary, is_orphaned: bool) -> Self {
        Self::from_inputs(
            &StatusInputs {
                status: view.status,
                kind: view.last_error,
                until: view.until,
                wait: &view.wait,
            },
            is_orphaned && view.finished.is_none(),
        )
    }

    fn from_inputs(facts: &StatusInputs<'_>, is_orphaned: bool) -> Self {
        let state = facts.status.with_liveness(!is_orphaned);
        let call = facts.wait.next_call();
        let step = |actor, action, at| Some(NextActionAndTime { actor, action, at });
        let next = match state {
            RunStatus::Running => step(NextActionActor::Agent, SessionNextAction::Work, None),
            RunStatus::Waiting if call.is_some() => step(
                NextActionActor::Gateway,
                SessionNextAction::Retry,
                facts.until,
            ),
            RunStatus::Waiting if facts.wait.is_parked => step(
                NextActionActor::Unstuck,
                SessionNextAction::Probe,
                facts.until,
            ),
            // It is not known when the conversation is free.
            RunStatus::Waiting => step(
                NextActionActor::Unstuck,
                SessionNextAction::Retry,
                facts.until.filter(|_| !facts.wait.is_for_conversation),
            ),
            RunStatus::AwaitingHuman => step(
                NextActionActor::Human,
                SessionNextAction::Answer,
                facts.wait.answer_by,
            ),
            RunStatus::Interrupted | RunStatus::Crashed => {
                step(NextActionActor::Human, SessionNextAction::Resume, None)
            }
            RunStatus::Succeeded | RunStatus::Recovered | RunStatus::Failed => None,
        };
        let kind = match state {
            RunStatus::Running | RunStatus::Succeeded | RunStatus::Recovered => None,
            RunStatus::Waiting if facts.wait.is_for_conversation => Some(FailureKind::LockHeld),
            RunStatus::Waiting => call.and_then(|call| call.kind).or(facts.kind),
            RunStatus::AwaitingHuman
            | RunStatus::Failed
            | RunStatus::Interrupted
            | RunStatus::Crashed => facts.kind,
        };
        // A limit that was being waited out when the process died still applies.
        let waits = matches!(facts.status, RunStatus::Waiting);
        Self {
            state,
            reason: kind,
            until: facts.until.filter(|_| waits),
            source: call
                .map(|call| call.source)
                .or(facts.wait.source)
                .filter(|_| waits),
            next,
        }
    }
}
