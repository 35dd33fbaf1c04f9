//! The summary of a run as shown in lists, as a fold over its events.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::wait_state::{HeldApiCall, WaitState};
use crate::decision::{ModelSwitch, ModelSwitchReason};
use crate::event::{AttemptEnd, Event, EventRecord, RunId, RunOutcome, RunStarted};
use crate::failure::{FailureKind, RecoveryLevel};
use crate::time::Timestamp;

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// An attempt is in progress or about to start.
    Running,
    /// It waits until a timestamp.
    Waiting,
    /// It waits for a human.
    AwaitingHuman,
    /// The first attempt succeeded.
    Succeeded,
    /// It succeeded after a failure.
    Recovered,
    /// It failed.
    Failed,
    /// A human stopped it.
    Interrupted,
    /// It should continue, but its supervising process is gone. Events alone never show this.
    Crashed,
}

impl RunStatus {
    /// All statuses.
    pub const ALL: [Self; 8] = [
        Self::Running,
        Self::Waiting,
        Self::AwaitingHuman,
        Self::Succeeded,
        Self::Recovered,
        Self::Failed,
        Self::Interrupted,
        Self::Crashed,
    ];

    /// Returns the wire name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::AwaitingHuman => "awaiting_human",
            Self::Succeeded => "succeeded",
            Self::Recovered => "recovered",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Crashed => "crashed",
        }
    }

    /// Returns the status with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Returns the status given the liveness of the supervisor: without one nothing runs and no wait ends.
    pub const fn with_liveness(self, is_alive: bool) -> Self {
        match self {
            Self::Running | Self::Waiting if !is_alive => Self::Crashed,
            other => other,
        }
    }

    /// True if it has ended and nothing is left to do.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Recovered | Self::Failed)
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<RunOutcome> for RunStatus {
    fn from(outcome: RunOutcome) -> Self {
        match outcome {
            RunOutcome::Succeeded => Self::Succeeded,
            RunOutcome::Recovered => Self::Recovered,
            RunOutcome::Failed => Self::Failed,
            RunOutcome::AwaitingHuman => Self::AwaitingHuman,
            RunOutcome::Interrupted => Self::Interrupted,
        }
    }
}

/// The summary of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The id of the run.
    pub id: RunId,
    /// The project root.
    pub project: String,
    /// The command line.
    pub command: Vec<String>,
    /// The recognized agent.
    pub agent: Option<String>,
    /// The current model, if known.
    pub model: Option<String>,
    /// The model that a human switched its only session to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "switched_to", alias = "moved_to")]
    pub switched_to: Option<String>,
    /// The id of the policy.
    pub policy: String,
    /// The number of roles, if it is a pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<usize>,
    /// The task, if it is a pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The latest iteration, if it is a loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// The status.
    pub status: RunStatus,
    /// The kind of the latest failure.
    pub kind: Option<FailureKind>,
    /// The highest recovery level reached.
    pub recovery_level: Option<RecoveryLevel>,
    /// The start time.
    pub started: Timestamp,
    /// The time of the latest event.
    pub updated: Timestamp,
    /// The end time, if it has ended.
    pub finished: Option<Timestamp>,
    /// The end of the wait while it waits.
    pub until: Option<Timestamp>,
    /// The number of attempts.
    pub attempts: u32,
    /// The number of interrupted attempts that have not run again so far.
    #[serde(default, skip_serializing_if = "is_none")]
    #[serde(rename = "interruptions", alias = "cut_off")]
    pub interrupted_count: u32,
    /// The number of failed attempts.
    pub error_count: u32,
    /// The number of retries that were decided on.
    pub retry_count: u32,
    /// True if it was escalated.
    #[serde(rename = "is_hiccup")]
    pub was_escalated: bool,
    /// The known cost in USD.
    pub cost_usd: f64,
    /// The known number of tokens.
    #[serde(default, skip_serializing_if = "is_none")]
    pub tokens: u64,
    /// The number of calls or attempts with usage of unknown price.
    #[serde(default, rename = "unknown_price", skip_serializing_if = "is_none")]
    pub unpriced_count: u64,
    /// The exit code returned to the caller.
    pub exit_code: Option<i32>,
    /// The reason of its status, in one sentence.
    pub reason: Option<String>,
    /// The wait state.
    #[serde(default, skip_serializing_if = "WaitState::is_empty")]
    pub wait: WaitState,
    /// The sequence number of its latest event.
    pub seq: u64,
}

impl RunSummary {
    /// Starts the fold; `None` if the first event does not start a run.
    pub fn from_first_event(first: &EventRecord) -> Option<Self> {
        let Event::RunStarted(run) = &first.event else {
            return None;
        };
        Some(Self {
            seq: first.seq,
            ..Self::new(&first.run, run, first.at)
        })
    }

    /// Creates the initial summary of a run.
    pub fn new(id: &RunId, run: &RunStarted, at: Timestamp) -> Self {
        Self {
            id: id.clone(),
            project: run.project.clone(),
            command: run.command().to_vec(),
            agent: run.sole_session().and_then(|spec| spec.agent.clone()),
            model: run.sole_session().and_then(|spec| spec.model.clone()),
            switched_to: None,
            policy: run.policy().to_owned(),
            roles: run.pipeline().map(|pipeline| pipeline.roles.len()),
            task: run.pipeline().map(|pipeline| pipeline.task.clone()),
            iteration: None,
            status: RunStatus::Running,
            kind: None,
            recovery_level: None,
            started: at,
            updated: at,
            finished: None,
            until: None,
            attempts: 0,
            interrupted_count: 0,
            error_count: 0,
            retry_count: 0,
            was_escalated: false,
            cost_usd: 0.0,
            tokens: 0,
            unpriced_count: 0,
            exit_code: None,
            reason: None,
            wait: WaitState::default(),
            seq: 1,
        }
    }

    /// Folds all events; `None` if the starting event is missing.
    pub fn from_events<'a>(events: impl IntoIterator<Item = &'a EventRecord>) -> Option<Self> {
        let mut events = events.into_iter();
        let mut view = Self::from_first_event(events.next()?)?;
        events.for_each(|recorded| view.apply(recorded));
        Some(view)
    }

    /// Applies the next event.
    pub fn apply(&mut self, recorded: &EventRecord) {
        self.seq = recorded.seq;
        self.updated = recorded.at;
        match &recorded.event {
            Event::RunResumed(_) => {
                self.finished = None;
                self.exit_code = None;
                self.set_running();
            }
            Event::AttemptStarted(attempt) => self.begin_attempt(attempt.model.as_ref()),
            Event::AttemptInterrupted(_) => {
                self.interrupted_count += 1;
                self.release_all_calls();
            }
            Event::IterationStarted(started) => self.iteration = Some(started.iteration),
            Event::AttemptFailed(attempt) => {
                self.error_count += 1;
                self.kind = Some(attempt.diagnosis.kind);
                self.reason = Some(attempt.diagnosis.message.clone());
                self.add_usage(&attempt.end);
                self.release_all_calls();
                self.wait.on_attempt_failed(&attempt.diagnosis);
            }
            Event::AttemptSucceeded(attempt) => {
                self.add_usage(&attempt.end);
                self.release_all_calls();
            }
            Event::DecisionMade(made) => {
                self.recovery_level = self.recovery_level.max(made.decision.level);
                self.retry_count += u32::from(made.decision.delay().is_some());
                self.reason = Some(made.decision.reason.clone());
            }
            Event::WaitStarted(wait) => {
                self.status = RunStatus::Waiting;
                self.until = Some(wait.until);
                self.wait.begin(wait);
                if self.wait.is_for_conversation {
                    self.reason = Some(wait.reason.clone());
                }
            }
            Event::WaitEnded(_) => self.set_running(),
            Event::EscalationOpened(asked) if !asked.is_non_blocking() => {
                self.status = RunStatus::AwaitingHuman;
                self.wait.answer_by = asked.details.deadline.as_ref().map(|deadline| deadline.at);
                self.was_escalated = true;
                self.reason = Some(asked.reason.clone());
            }
            Event::CallFailed(call) => {
                // The status of a supervised run follows from its attempts.
                if self.attempts == 0 {
                    self.error_count += 1;
                    self.retry_count += u32::from(call.decision.delay().is_some());
                    self.recovery_level = self.recovery_level.max(call.decision.level);
                    self.kind = Some(call.diagnosis.kind);
                    self.reason = Some(call.diagnosis.message.clone());
                }
                match HeldApiCall::from_failure(call, recorded.at) {
                    Some(held) => self.add_held_call(held),
                    None => self.release_call(&call.call),
                }
            }
            Event::CallHeld(call) => self.add_held_call(call.into()),
            Event::CallResumed(call) => self.release_call(&call.call),
            Event::CallFinished(call) => self.release_call(&call.call),
            Event::EscalationResolved(resolved)
                if self.attempts == 0 && self.finished.is_none() && resolved.is_by_human() =>
            {
                self.set_running();
            }
            Event::ModelSwitched(moved) => self.switch_model(&moved.switch),
            Event::RunFinished(end) => {
                self.status = end.outcome.into();
                self.finished = Some(recorded.at);
                self.until = None;
                self.exit_code = Some(end.exit_code);
                self.reason = Some(end.reason.clone());
                if end.outcome != RunOutcome::AwaitingHuman {
                    self.wait = WaitState::default();
                }
            }
            _ => {}
        }
    }

    fn begin_attempt(&mut self, model: Option<&String>) {
        // An interrupted attempt runs again under its number.
        match self.interrupted_count {
            0 => self.attempts += 1,
            _ => self.interrupted_count -= 1,
        }
        // The gateway sends its calls to the model that a human switched to, whatever its command line says.
        let model = self.switched_to.as_ref().or(model);
        self.model = model.cloned().or(self.model.take());
        self.set_running();
    }

    fn switch_model(&mut self, change: &ModelSwitch) {
        let by_person = change.reason == ModelSwitchReason::Manual;
        // Model changes by the gateway for single calls of a supervised session do not switch the session.
        if by_person || self.attempts == 0 {
            self.switched_to = (by_person && self.roles.is_none()).then(|| change.to_model.clone());
            self.model = Some(change.to_model.clone());
        }
    }

    fn add_usage(&mut self, end: &AttemptEnd) {
        let used = &end.usage;
        self.cost_usd += used.cost_usd.unwrap_or(0.0);
        self.unpriced_count += u64::from(end.is_unpriced(self.agent.as_deref()));
        let tokens = used.tokens.unwrap_or_default();
        self.tokens += tokens.input + tokens.output;
    }

    fn set_running(&mut self) {
        self.status = RunStatus::Running;
        self.until = None;
        self.wait = WaitState::default();
    }

    /// Adds a held call: the agent waits while the gateway holds its call.
    fn add_held_call(&mut self, held: HeldApiCall) {
        let waits = self.status == RunStatus::Waiting && !self.wait.calls.is_empty();
        if self.status == RunStatus::Running || waits {
            self.wait.add_held_call(held);
            self.status = RunStatus::Waiting;
            self.until = self.wait.next_call().map(|call| call.until);
        }
    }

    /// Releases all held calls because the process that made them has ended.
    fn release_all_calls(&mut self) {
        if !self.wait.calls.is_empty() {
            self.set_running();
        }
    }

    fn release_call(&mut self, call: &str) {
        if !self.wait.release_call(call) || self.status != RunStatus::Waiting {
            return;
        }
        match self.wait.next_call() {
            Some(next) => self.until = Some(next.until),
            None => self.set_running(),
        }
    }
}

fn is_none<N: Default + PartialEq>(count: &N) -> bool {
    *count == N::default()
}
