//! A session at a glance: one agent's conversation within a run, as a fold over the events of the run.

use serde::{Deserialize, Serialize};

use super::Episode;
use super::run_view::Status;
use super::wait::{HeldCall, Wait};
use crate::decision::EscalationReason;
use crate::diagnosis::Diagnosis;
use crate::event::{
    AttemptEnd, AttemptFailed, Event, Part, Recorded, RunFinished, SessionId, SessionSpec,
};
use crate::failure::{Kind, Level};
use crate::moment::Timestamp;
use crate::money::known;

/// A session at a glance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionView {
    /// Its id.
    pub id: SessionId,
    /// Which role it plays, and when, in a pipeline.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// The agent that it is known to be.
    pub agent: Option<String>,
    /// The model in use, as far as is known.
    pub model: Option<String>,
    /// The model that a person moved it to.
    #[serde(skip)]
    pub moved_to: Option<String>,
    /// Where it stands.
    pub status: Status,
    /// When it began.
    pub started: Timestamp,
    /// When it ended, if it did.
    pub finished: Option<Timestamp>,
    /// When its wait is over, while it waits.
    pub until: Option<Timestamp>,
    /// How many attempts there were.
    pub attempts: u32,
    /// How many of them failed.
    pub error_count: u32,
    /// How many retries were decided on.
    pub retry_count: u32,
    /// Whether a person had to be asked.
    #[serde(rename = "is_hiccup")]
    pub is_hiccup: bool,
    /// The kind of the newest failure.
    pub last_error: Option<Kind>,
    /// The highest level that was reached.
    pub recovery_level: Option<Level>,
    /// What it cost, in USD, as far as is known.
    pub cost_usd: f64,
    /// How many tokens it used, as far as is known.
    pub tokens: u64,
    /// How many of its calls or attempts used what has no known price.
    #[serde(default, rename = "unknown_price", skip_serializing_if = "is_zero")]
    pub unpriced: u64,
    /// The agent's own id of the conversation.
    pub agent_session: Option<String>,
    /// The hash of its output, once it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Why it stands where it stands, in one sentence.
    pub reason: Option<String>,
    /// What it waits for, while it waits.
    #[serde(default, skip_serializing_if = "Wait::is_empty")]
    pub wait: Wait,
    /// What the newest failure was found to be.
    #[serde(skip)]
    pub diagnosis: Option<Box<Diagnosis>>,
    /// What a person was asked because of.
    #[serde(skip)]
    pub asked: Vec<String>,
}

impl SessionView {
    /// Where a session stands that began like this.
    pub fn of(spec: &SessionSpec, part: Option<Part>, at: Timestamp) -> Self {
        Self {
            id: spec.session.clone(),
            part,
            agent: spec.agent.clone(),
            model: spec.model.clone(),
            moved_to: None,
            status: Status::Running,
            started: at,
            finished: None,
            until: None,
            attempts: 0,
            error_count: 0,
            retry_count: 0,
            is_hiccup: false,
            last_error: None,
            recovery_level: None,
            cost_usd: 0.0,
            tokens: 0,
            unpriced: 0,
            agent_session: None,
            output: None,
            reason: None,
            wait: Wait::default(),
            diagnosis: None,
            asked: Vec::new(),
        }
    }

    /// Every session of a run, in the order in which they began.
    pub fn all(events: &[Recorded]) -> Vec<Self> {
        let mut sessions = Vec::new();
        for recorded in events {
            Self::take_in(&mut sessions, recorded);
        }
        sessions
    }

    /// Takes in the next event of the run that these are the sessions of.
    pub fn take_in(sessions: &mut Vec<Self>, recorded: &Recorded) {
        match &recorded.event {
            Event::RunStarted(run) => {
                let sole = run.sole_session();
                sessions.extend(sole.map(|spec| Self::of(spec, None, recorded.at)));
            }
            Event::SessionStarted(started) => {
                let spec = &started.spec;
                match sessions.iter_mut().find(|one| one.id == spec.session) {
                    Some(known) => known.configured(spec),
                    None => {
                        sessions.push(Self::of(spec, Some(started.part.clone()), recorded.at));
                    }
                }
            }
            event => match event.session() {
                Some(id) => {
                    let it = sessions.iter_mut().rev().find(|one| one.id == *id);
                    it.into_iter().for_each(|one| one.record(recorded));
                }
                None => sessions.iter_mut().for_each(|one| one.record(recorded)),
            },
        }
    }

    fn configured(&mut self, spec: &SessionSpec) {
        self.agent.clone_from(&spec.agent);
        self.model.clone_from(&spec.model);
        self.finished = None;
        self.running();
    }

    fn record(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::AttemptStarted(attempt) => {
                self.attempts = attempt.number;
                // The gateway sends its calls to the model that a person moved it to, whatever its command line says.
                let model = self.moved_to.as_ref().or(attempt.model.as_ref());
                self.model = model.cloned().or(self.model.take());
                self.finished = None;
                self.running();
            }
            Event::AttemptFailed(attempt) => self.failed(attempt),
            Event::AttemptSucceeded(attempt) => {
                self.ended(&attempt.end);
                self.release_all();
            }
            Event::AttemptInterrupted(_) => self.release_all(),
            Event::DecisionMade(made) => {
                self.recovery_level = self.recovery_level.max(made.decision.level);
                self.retry_count += u32::from(made.decision.delay().is_some());
                self.reason = Some(made.decision.reason.clone());
            }
            Event::WaitingUntil(wait) => {
                self.status = Status::Waiting;
                self.until = Some(wait.until);
                self.wait.begin(wait);
            }
            Event::WaitEnded(_) => self.running(),
            Event::RecoveryEscalated(asked) => {
                self.status = Status::AwaitingHuman;
                self.wait.answer_by = asked.shown.deadline.as_ref().map(|deadline| deadline.at);
                self.is_hiccup = true;
                self.asked.push(asked.trigger.clone());
                self.reason = Some(asked.reason.clone());
            }
            Event::RecoveryResolved(resolved) if resolved.is_by_person() => self.running(),
            Event::CallFailed(call) => {
                // Of a session that is driven, its attempts tell how it stands.
                if self.attempts == 0 {
                    self.error_count += 1;
                    self.retry_count += u32::from(call.decision.delay().is_some());
                    self.recovery_level = self.recovery_level.max(call.decision.level);
                    self.last_error = Some(call.diagnosis.kind);
                    self.reason = Some(call.diagnosis.message.clone());
                }
                match HeldCall::after(call, recorded.at) {
                    Some(held) => self.hold(held),
                    None => self.release(&call.call),
                }
            }
            Event::CallHeld(call) => self.hold(call.into()),
            Event::CallResumed(call) => self.release(&call.call),
            Event::CallFinished(call) => self.release(&call.call),
            // What the gateway does for single calls of a session that is driven does not move the session.
            Event::ModelEscalated(moved)
                if self.attempts == 0 || moved.change.reason == EscalationReason::Manual =>
            {
                let change = &moved.change;
                let by_person = change.reason == EscalationReason::Manual;
                self.moved_to = by_person.then(|| change.to_model.clone());
                self.model = Some(change.to_model.clone());
            }
            Event::SessionFinished(end) => {
                self.output.clone_from(&end.output);
                self.finish(&end.end(), recorded.at);
            }
            Event::RunFinished(end) if self.part.is_none() => self.finish(end, recorded.at),
            Event::RunFinished(_) if !self.status.is_final() => self.until = None,
            _ => {}
        }
    }

    fn failed(&mut self, attempt: &AttemptFailed) {
        self.error_count += 1;
        self.last_error = Some(attempt.diagnosis.kind);
        self.reason = Some(attempt.diagnosis.message.clone());
        self.diagnosis = Some(Box::new(attempt.diagnosis.clone()));
        self.ended(&attempt.end);
        self.release_all();
        self.wait.attempt_failed(&attempt.diagnosis);
    }

    fn ended(&mut self, end: &AttemptEnd) {
        self.cost_usd += end.used.cost_usd.unwrap_or(0.0);
        self.unpriced += u64::from(end.is_unpriced(self.agent.as_deref()));
        let tokens = end.used.tokens.unwrap_or_default();
        self.tokens += tokens.input + tokens.output;
        if end.used.agent_session.is_some() {
            self.agent_session.clone_from(&end.used.agent_session);
        }
    }

    fn finish(&mut self, end: &RunFinished, at: Timestamp) {
        self.status = end.outcome.into();
        self.finished = Some(at);
        self.until = None;
        if self.status != Status::AwaitingHuman {
            self.wait = Wait::default();
        }
        self.reason = Some(end.reason.clone());
    }

    fn running(&mut self) {
        self.status = Status::Running;
        self.until = None;
        self.wait = Wait::default();
    }

    /// A call waits in the gateway, so the agent that made it waits too.
    fn hold(&mut self, held: HeldCall) {
        let waits = self.status == Status::Waiting && !self.wait.calls.is_empty();
        if self.status == Status::Running || waits {
            self.wait.hold(held);
            self.status = Status::Waiting;
            self.until = self.wait.next_call().map(|call| call.until);
        }
    }

    /// The process that made the calls has ended.
    fn release_all(&mut self) {
        if !self.wait.calls.is_empty() {
            self.running();
        }
    }

    fn release(&mut self, call: &str) {
        if !self.wait.release(call) || self.status != Status::Waiting {
            return;
        }
        match self.wait.next_call() {
            Some(next) => self.until = Some(next.until),
            None => self.running(),
        }
    }

    /// The story so far, as a line of `episodes.jsonl`.
    pub fn episode(&self, run: &str, end: &RunFinished, at: Timestamp) -> Episode {
        let failed = self.diagnosis.as_ref();
        let failed = failed.filter(|_| !end.outcome.is_success());
        let goal = self.part.as_ref().map(|part| part.role.as_str());
        Episode {
            episode_id: match &self.part {
                Some(_) => format!("{}-{}", self.id.as_str(), self.attempts),
                None => format!("{run}-{}", self.attempts),
            },
            timestamp: at,
            goal_id: goal.unwrap_or(self.id.as_str()).to_owned(),
            success: end.outcome.is_success(),
            cost_usd: known(self.cost_usd, self.unpriced),
            duration_seconds: at.since(self.started).as_secs_f64(),
            checkpoints_triggered: self.asked.clone(),
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
