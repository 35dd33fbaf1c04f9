//! The summary of a session: one agent's conversation within a run, as a fold over the events of the run.

use serde::{Deserialize, Serialize};

use super::GoalEpisodeRecord;
use super::run_summary::RunStatus;
use super::wait_state::{HeldApiCall, WaitState};
use crate::decision::ModelSwitchReason;
use crate::diagnosis::Diagnosis;
use crate::event::{
    AttemptEnd, AttemptFailed, Event, EventRecord, RoleInstance, RunFinished, SessionId,
    SessionSpec,
};
use crate::failure::{FailureKind, RecoveryLevel};
use crate::money::known_cost;
use crate::time::Timestamp;

/// The summary of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionSummary {
    /// The id of the session.
    pub id: SessionId,
    /// The role instance, in a pipeline.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub part: Option<RoleInstance>,
    /// The recognized agent.
    pub agent: Option<String>,
    /// The current model, if known.
    pub model: Option<String>,
    /// The model that a human switched it to.
    #[serde(skip)]
    pub switched_to: Option<String>,
    /// The status.
    pub status: RunStatus,
    /// The start time.
    pub started: Timestamp,
    /// The end time, if it has ended.
    pub finished: Option<Timestamp>,
    /// The end of the wait while it waits.
    pub until: Option<Timestamp>,
    /// The number of attempts.
    pub attempts: u32,
    /// The number of failed attempts.
    pub error_count: u32,
    /// The number of retries that were decided on.
    pub retry_count: u32,
    /// True if it was escalated.
    #[serde(rename = "is_hiccup")]
    pub was_escalated: bool,
    /// The kind of the latest failure.
    pub last_error: Option<FailureKind>,
    /// The highest recovery level reached.
    pub recovery_level: Option<RecoveryLevel>,
    /// The known cost in USD.
    pub cost_usd: f64,
    /// The known number of tokens.
    pub tokens: u64,
    /// The number of calls or attempts with usage of unknown price.
    #[serde(default, rename = "unknown_price", skip_serializing_if = "is_zero")]
    pub unpriced_count: u64,
    /// The agent's own conversation id.
    #[serde(alias = "agent_session")]
    pub conversation: Option<String>,
    /// The hash of its output, once it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The reason of its status, in one sentence.
    pub reason: Option<String>,
    /// The wait state.
    #[serde(default, skip_serializing_if = "WaitState::is_empty")]
    pub wait: WaitState,
    /// The diagnosis of the latest failure.
    #[serde(skip)]
    pub diagnosis: Option<Box<Diagnosis>>,
    /// The triggers of its escalations.
    #[serde(skip)]
    pub escalation_triggers: Vec<String>,
}

impl SessionSummary {
    /// Creates the initial summary of a session.
    pub fn new(spec: &SessionSpec, part: Option<RoleInstance>, at: Timestamp) -> Self {
        Self {
            id: spec.session.clone(),
            part,
            agent: spec.agent.clone(),
            model: spec.model.clone(),
            switched_to: None,
            status: RunStatus::Running,
            started: at,
            finished: None,
            until: None,
            attempts: 0,
            error_count: 0,
            retry_count: 0,
            was_escalated: false,
            last_error: None,
            recovery_level: None,
            cost_usd: 0.0,
            tokens: 0,
            unpriced_count: 0,
            conversation: None,
            output: None,
            reason: None,
            wait: WaitState::default(),
            diagnosis: None,
            escalation_triggers: Vec::new(),
        }
    }

    /// Returns all sessions of a run, in start order.
    pub fn from_events(events: &[EventRecord]) -> Vec<Self> {
        let mut sessions = Vec::new();
        for recorded in events {
            Self::apply_to_all(&mut sessions, recorded);
        }
        sessions
    }

    /// Applies the next event of a run to its sessions.
    pub fn apply_to_all(sessions: &mut Vec<Self>, recorded: &EventRecord) {
        match &recorded.event {
            Event::RunStarted(run) => {
                let sole = run.sole_session();
                sessions.extend(sole.map(|spec| Self::new(spec, None, recorded.at)));
            }
            Event::SessionStarted(started) => {
                let spec = &started.spec;
                match sessions.iter_mut().find(|one| one.id == spec.session) {
                    Some(known) => known.apply_spec(spec),
                    None => {
                        sessions.push(Self::new(spec, Some(started.part.clone()), recorded.at));
                    }
                }
            }
            event => match event.session() {
                Some(id) => {
                    let it = sessions.iter_mut().rev().find(|one| one.id == *id);
                    it.into_iter().for_each(|one| one.apply(recorded));
                }
                None => sessions.iter_mut().for_each(|one| one.apply(recorded)),
            },
        }
    }

    fn apply_spec(&mut self, spec: &SessionSpec) {
        self.agent.clone_from(&spec.agent);
        self.model.clone_from(&spec.model);
        self.finished = None;
        self.set_running();
    }

    fn apply(&mut self, recorded: &EventRecord) {
        match &recorded.event {
            Event::AttemptStarted(attempt) => {
                self.attempts = attempt.number;
                // The gateway sends its calls to the model that a human switched to, whatever its command line says.
                let model = self.switched_to.as_ref().or(attempt.model.as_ref());
                self.model = model.cloned().or(self.model.take());
                self.finished = None;
                self.set_running();
            }
            Event::AttemptFailed(attempt) => self.on_attempt_failed(attempt),
            Event::AttemptSucceeded(attempt) => {
                self.on_attempt_ended(&attempt.end);
                self.release_all_calls();
            }
            Event::AttemptInterrupted(_) => self.release_all_calls(),
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
                self.escalation_triggers.push(asked.trigger.clone());
                self.reason = Some(asked.reason.clone());
            }
            Event::EscalationResolved(resolved) if resolved.is_by_human() => self.set_running(),
            Event::CallFailed(call) => {
                // The status of a supervised session follows from its attempts.
                if self.attempts == 0 {
                    self.error_count += 1;
                    self.retry_count += u32::from(call.decision.delay().is_some());
                    self.recovery_level = self.recovery_level.max(call.decision.level);
                    self.last_error = Some(call.diagnosis.kind);
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
            // Model changes by the gateway for single calls of a supervised session do not switch the session.
            Event::ModelSwitched(moved)
                if self.attempts == 0 || moved.switch.reason == ModelSwitchReason::Manual =>
            {
                let change = &moved.switch;
                let by_person = change.reason == ModelSwitchReason::Manual;
                self.switched_to = by_person.then(|| change.to_model.clone());
                self.model = Some(change.to_model.clone());
            }
            Event::SessionFinished(end) => {
                self.output.clone_from(&end.output);
                self.on_finished(&end.to_run_finished(), recorded.at);
            }
            Event::RunFinished(end) if self.part.is_none() => self.on_finished(end, recorded.at),
            Event::RunFinished(_) if !self.status.is_final() => self.until = None,
            _ => {}
        }
    }

    fn on_attempt_failed(&mut self, attempt: &AttemptFailed) {
        self.error_count += 1;
        self.last_error = Some(attempt.diagnosis.kind);
        self.reason = Some(attempt.diagnosis.message.clone());
        self.diagnosis = Some(Box::new(attempt.diagnosis.clone()));
        self.on_attempt_ended(&attempt.end);
        self.release_all_calls();
        self.wait.on_attempt_failed(&attempt.diagnosis);
    }

    fn on_attempt_ended(&mut self, end: &AttemptEnd) {
        self.cost_usd += end.usage.cost_usd.unwrap_or(0.0);
        self.unpriced_count += u64::from(end.is_unpriced(self.agent.as_deref()));
        let tokens = end.usage.tokens.unwrap_or_default();
        self.tokens += tokens.input + tokens.output;
        if end.usage.agent_session.is_some() {
            self.conversation.clone_from(&end.usage.agent_session);
        }
    }

    fn on_finished(&mut self, end: &RunFinished, at: Timestamp) {
        self.status = end.outcome.into();
        self.finished = Some(at);
        self.until = None;
        if self.status != RunStatus::AwaitingHuman {
            self.wait = WaitState::default();
        }
        self.reason = Some(end.reason.clone());
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

    /// Returns the summary as a line of `episodes.jsonl`.
    pub fn to_episode(&self, run: &str, end: &RunFinished, at: Timestamp) -> GoalEpisodeRecord {
        let failed = self.diagnosis.as_ref();
        let failed = failed.filter(|_| !end.outcome.is_success());
        let goal = self.part.as_ref().map(|part| part.role.as_str());
        GoalEpisodeRecord {
            episode_id: match &self.part {
                Some(_) => format!("{}-{}", self.id.as_str(), self.attempts),
                None => format!("{run}-{}", self.attempts),
            },
            timestamp: at,
            goal_id: goal.unwrap_or(self.id.as_str()).to_owned(),
            success: end.outcome.is_success(),
            cost_usd: known_cost(self.cost_usd, self.unpriced_count),
            duration_seconds: at.since(self.started).as_secs_f64(),
            checkpoints_triggered: self.escalation_triggers.clone(),
            error: failed.map(|diagnosis| diagnosis.message.clone()),
            notes: Some(end.reason.clone()),
            retry_count: self.retry_count,
            recovery_level: self.recovery_level,
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
