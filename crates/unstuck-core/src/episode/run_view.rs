//! A run at a glance: what a list of runs shows, as a fold over its events.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::wait::{HeldCall, Wait};
use crate::decision::{EscalationReason, EscalationRecord};
use crate::event::{AttemptEnd, Event, Outcome, Recorded, RunId, RunStarted};
use crate::failure::{Kind, Level};
use crate::moment::Timestamp;

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// An attempt is under way, or about to be.
    Running,
    /// It waits for a moment.
    Waiting,
    /// It waits for a person.
    AwaitingHuman,
    /// It did what it should at the first try.
    Succeeded,
    /// It did what it should after something had failed.
    Recovered,
    /// It failed.
    Failed,
    /// A person stopped it.
    Interrupted,
    /// It should continue, but the process that supervised it is gone. Events alone never tell this.
    Crashed,
}

impl Status {
    /// Every status.
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

    /// The name used on every wire.
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

    /// The status of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// The status of something whose supervisor is alive, or not: without one nothing runs and no wait ends.
    pub const fn with_liveness(self, is_alive: bool) -> Self {
        match self {
            Self::Running | Self::Waiting if !is_alive => Self::Crashed,
            other => other,
        }
    }

    /// Whether nothing more is going to happen by itself and nothing is left to do.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Recovered | Self::Failed)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<Outcome> for Status {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Succeeded => Self::Succeeded,
            Outcome::Recovered => Self::Recovered,
            Outcome::Failed => Self::Failed,
            Outcome::AwaitingHuman => Self::AwaitingHuman,
            Outcome::Interrupted => Self::Interrupted,
        }
    }
}

/// A run at a glance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunView {
    /// Its id.
    pub id: RunId,
    /// The root folder of its project.
    pub project: String,
    /// The command line.
    pub command: Vec<String>,
    /// The agent that this is known to be.
    pub agent: Option<String>,
    /// The model in use, as far as is known.
    pub model: Option<String>,
    /// The model that a person moved its only session to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "moved_to")]
    pub moved_to: Option<String>,
    /// The policy's id.
    pub policy: String,
    /// How many roles it has, if it is a pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<usize>,
    /// What is to be done, if it is a pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The newest iteration, if it is a loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// Where it stands.
    pub status: Status,
    /// The kind of the newest failure.
    pub kind: Option<Kind>,
    /// The highest level that was reached.
    pub recovery_level: Option<Level>,
    /// When it began.
    pub started: Timestamp,
    /// When something last happened.
    pub updated: Timestamp,
    /// When it ended, if it did.
    pub finished: Option<Timestamp>,
    /// When its wait is over, while it waits.
    pub until: Option<Timestamp>,
    /// How many attempts there were.
    pub attempts: u32,
    /// How many of them were cut off from outside and not made again so far.
    #[serde(default, skip_serializing_if = "is_none")]
    #[serde(rename = "cut_off")]
    pub cut_off: u32,
    /// How many of them failed.
    pub error_count: u32,
    /// How many retries were decided on.
    pub retry_count: u32,
    /// Whether a person had to be asked.
    #[serde(rename = "is_hiccup")]
    pub is_hiccup: bool,
    /// What it cost, in USD, as far as is known.
    pub cost_usd: f64,
    /// How many tokens it used, as far as is known.
    #[serde(default, skip_serializing_if = "is_none")]
    pub tokens: u64,
    /// How many of its calls or attempts used what has no known price.
    #[serde(default, rename = "unknown_price", skip_serializing_if = "is_none")]
    pub unpriced: u64,
    /// The exit code that the caller got.
    pub exit_code: Option<i32>,
    /// Why it stands where it stands, in one sentence.
    pub reason: Option<String>,
    /// What it waits for, while it waits.
    #[serde(default, skip_serializing_if = "Wait::is_empty")]
    pub wait: Wait,
    /// The number of its newest event.
    pub seq: u64,
}

impl RunView {
    /// Begins the fold; none if the first event is not the beginning of a run.
    pub fn begin(first: &Recorded) -> Option<Self> {
        let Event::RunStarted(run) = &first.event else {
            return None;
        };
        Some(Self {
            seq: first.seq,
            ..Self::of(&first.run, run, first.at)
        })
    }

    /// Where a run stands that began like this.
    pub fn of(id: &RunId, run: &RunStarted, at: Timestamp) -> Self {
        Self {
            id: id.clone(),
            project: run.project.clone(),
            command: run.command().to_vec(),
            agent: run.sole_session().and_then(|spec| spec.agent.clone()),
            model: run.sole_session().and_then(|spec| spec.model.clone()),
            moved_to: None,
            policy: run.policy().to_owned(),
            roles: run.pipeline().map(|pipeline| pipeline.roles.len()),
            task: run.pipeline().map(|pipeline| pipeline.task.clone()),
            iteration: None,
            status: Status::Running,
            kind: None,
            recovery_level: None,
            started: at,
            updated: at,
            finished: None,
            until: None,
            attempts: 0,
            cut_off: 0,
            error_count: 0,
            retry_count: 0,
            is_hiccup: false,
            cost_usd: 0.0,
            tokens: 0,
            unpriced: 0,
            exit_code: None,
            reason: None,
            wait: Wait::default(),
            seq: 1,
        }
    }

    /// The whole fold; none if there is no beginning.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Recorded>) -> Option<Self> {
        let mut events = events.into_iter();
        let mut view = Self::begin(events.next()?)?;
        events.for_each(|recorded| view.record(recorded));
        Some(view)
    }

    /// Takes in the next event.
    pub fn record(&mut self, recorded: &Recorded) {
        self.seq = recorded.seq;
        self.updated = recorded.at;
        match &recorded.event {
            Event::RunResumed(_) => {
                self.finished = None;
                self.exit_code = None;
                self.running();
            }
            Event::AttemptStarted(attempt) => self.begin_attempt(attempt.model.as_ref()),
            Event::AttemptInterrupted(_) => {
                self.cut_off += 1;
                self.release_all();
            }
            Event::IterationStarted(started) => self.iteration = Some(started.iteration),
            Event::AttemptFailed(attempt) => {
                self.error_count += 1;
                self.kind = Some(attempt.diagnosis.kind);
                self.reason = Some(attempt.diagnosis.message.clone());
                self.used(&attempt.end);
                self.release_all();
                self.wait.attempt_failed(&attempt.diagnosis);
            }
            Event::AttemptSucceeded(attempt) => {
                self.used(&attempt.end);
                self.release_all();
            }
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
            Event::RecoveryEscalated(asked) if !asked.lets_it_go_on() => {
                self.status = Status::AwaitingHuman;
                self.wait.answer_by = asked.shown.deadline.as_ref().map(|deadline| deadline.at);
                self.is_hiccup = true;
                self.reason = Some(asked.reason.clone());
            }
            Event::CallFailed(call) => {
                // Of a run that is driven, its attempts tell how it stands.
                if self.attempts == 0 {
                    self.error_count += 1;
                    self.retry_count += u32::from(call.decision.delay().is_some());
                    self.recovery_level = self.recovery_level.max(call.decision.level);
                    self.kind = Some(call.diagnosis.kind);
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
            Event::RecoveryResolved(resolved)
                if self.attempts == 0 && self.finished.is_none() && resolved.is_by_person() =>
            {
                self.running();
            }
            Event::ModelEscalated(moved) => self.switch_model(&moved.change),
            Event::RunFinished(end) => {
                self.status = end.outcome.into();
                self.finished = Some(recorded.at);
                self.until = None;
                self.exit_code = Some(end.exit_code);
                self.reason = Some(end.reason.clone());
                if end.outcome != Outcome::AwaitingHuman {
                    self.wait = Wait::default();
                }
            }
            _ => {}
        }
    }

    fn begin_attempt(&mut self, model: Option<&String>) {
        // One that was cut off is made again under its number.
        match self.cut_off {
            0 => self.attempts += 1,
            _ => self.cut_off -= 1,
        }
        // The gateway sends its calls to the model that a person moved it to, whatever its command line says.
        let model = self.moved_to.as_ref().or(model);
        self.model = model.cloned().or(self.model.take());
        self.running();
    }

    fn switch_model(&mut self, change: &EscalationRecord) {
        let by_person = change.reason == EscalationReason::Manual;
        // What the gateway does for single calls of a session that is driven does not move the session.
        if by_person || self.attempts == 0 {
            self.moved_to = (by_person && self.roles.is_none()).then(|| change.to_model.clone());
            self.model = Some(change.to_model.clone());
        }
    }

    fn used(&mut self, end: &AttemptEnd) {
        let used = &end.used;
        self.cost_usd += used.cost_usd.unwrap_or(0.0);
        self.unpriced += u64::from(end.is_unpriced(self.agent.as_deref()));
        let tokens = used.tokens.unwrap_or_default();
        self.tokens += tokens.input + tokens.output;
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
}

fn is_none<N: Default + PartialEq>(count: &N) -> bool {
    *count == N::default()
}
