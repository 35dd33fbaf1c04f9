//! The timeline of a run: its attempts with outcomes, decisions and reasons.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::decision::{ModelSwitch, WaitPurpose};
use crate::diagnosis::Diagnosis;
use crate::event::{
    ApprovalSource, AttemptEnd, AttemptStarted, AttemptUsage, DecisionMade, EscalationOpened,
    EscalationResolved, Event, EventRecord, ModelSwitched, OutputExcerpt, RepairProposed,
    RepairSandboxReport, RetryCause, RoleInstance, RunStarted, SessionId, SessionSpec, WaitStarted,
};
use crate::time::Timestamp;

use super::api_call_summary::{self, ApiCallRecoverySummary};
use super::run_summary::RunSummary;
use super::session_summary::SessionSummary;

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// It is in progress, or its end was not recorded.
    Running,
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// It was interrupted from outside.
    Interrupted,
}

impl AttemptOutcome {
    /// Returns the wire name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// One attempt in a timeline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AttemptView {
    /// The id: that of the run, and the index among all attempts of the run.
    pub id: String,
    /// The index among all attempts of the run, from 1.
    pub index: u32,
    /// The session.
    pub session: SessionId,
    /// The role instance, in a pipeline.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub part: Option<RoleInstance>,
    /// The attempt number in the session, from 1.
    pub number: u32,
    /// The outcome.
    pub outcome: AttemptOutcome,
    /// The number of interruptions after which it ran again.
    #[serde(rename = "interruptions", alias = "cut_off")]
    pub interrupted_count: u32,
    /// The start time.
    pub started: Timestamp,
    /// The end time.
    pub ended: Option<Timestamp>,
    /// The duration in milliseconds.
    pub duration_ms: Option<u64>,
    /// The command line.
    pub command: Vec<String>,
    /// The model, if known.
    pub model: Option<String>,
    /// The cause of the attempt.
    #[serde(rename = "cause", alias = "answering")]
    pub cause: Option<RetryCause>,
    /// The changes in this attempt, as text.
    pub changes: Vec<String>,
    /// The work tree before the attempt, as the id of a git tree.
    pub tree: Option<String>,
    /// The work tree after the attempt, as the id of a git tree.
    pub tree_after: Option<String>,
    /// The exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended the process.
    pub signal: Option<i32>,
    /// The limit that was reached.
    pub limit: Option<String>,
    /// The usage.
    #[serde(rename = "usage", alias = "used")]
    pub usage: AttemptUsage,
    /// The diagnosis of the failure.
    pub diagnosis: Option<Diagnosis>,
    /// The errors found by the checks of its output.
    pub validation_errors: Vec<String>,
    /// The end of its output.
    pub excerpt: Option<OutputExcerpt>,
    /// The decision about it.
    pub decision: Option<DecisionMade>,
    /// The API calls that needed recovery, as the gateway saw them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ApiCallRecoverySummary>,
    /// The model switches by the gateway during the attempt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "gateway_model_switches", alias = "moved")]
    pub gateway_model_switches: Vec<ModelSwitch>,
    /// The model switch that followed.
    #[serde(rename = "model_switch", alias = "model_change")]
    pub model_switch: Option<ModelSwitch>,
    /// The wait that followed.
    pub wait: Option<WaitStarted>,
    /// The escalation that followed.
    pub escalation: Option<EscalationOpened>,
    /// The resolution of the escalation.
    #[serde(rename = "resolution", alias = "resolved")]
    pub resolution: Option<EscalationResolved>,
    /// The repairs that were proposed because of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<RepairView>,
}

/// One repair in a timeline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RepairView {
    /// The proposal with its policy verdict.
    #[serde(flatten)]
    pub proposed: RepairProposed,
    /// The source of the approval, if it was approved.
    #[serde(rename = "approved_by", alias = "approved")]
    pub approved_by: Option<ApprovalSource>,
    /// The exit code, if it ran.
    pub exit_code: Option<i32>,
    /// The duration in milliseconds.
    pub duration_ms: Option<u64>,
    /// The confinement.
    pub sandbox: Option<String>,
    /// The side effects of the execution.
    #[serde(
        alias = "traces",
        skip_serializing_if = "RepairSandboxReport::is_empty"
    )]
    pub side_effects: RepairSandboxReport,
    /// The end of its output.
    pub output: String,
    /// The reason why it did not help, if it did not.
    #[serde(rename = "failure_reason", alias = "failed")]
    pub failure_reason: Option<String>,
    /// True if the failed operation works since.
    #[serde(rename = "helped", alias = "worked")]
    pub has_helped: bool,
}

/// The timeline of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunTimeline {
    /// The summary of the run.
    #[serde(skip)]
    pub summary: RunSummary,
    /// The start event of the run.
    #[serde(skip)]
    pub run: RunStarted,
    /// The sessions of its roles, in start order; empty unless it is a pipeline.
    #[serde(skip)]
    pub sessions: Vec<SessionSummary>,
    /// The latest specification of each session.
    #[serde(skip)]
    pub specs: BTreeMap<SessionId, SessionSpec>,
    /// The attempts, in start order.
    pub attempts: Vec<AttemptView>,
    /// The API calls that needed recovery and belong to no attempt: those of a client's own session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ApiCallRecoverySummary>,
    /// The model switches that belong to no attempt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "model_switches", alias = "moved")]
    pub model_switches: Vec<ModelSwitch>,
}

impl RunTimeline {
    /// Builds the timeline from events; `None` if the starting event is missing.
    pub fn from_events(events: &[EventRecord]) -> Option<Self> {
        let first = events.first()?;
        let Event::RunStarted(run) = &first.event else {
            return None;
        };
        let mut timeline = Self {
            summary: RunSummary::from_events(events)?,
            run: (**run).clone(),
            sessions: SessionSummary::from_events(events),
            specs: BTreeMap::new(),
            attempts: Vec::new(),
            calls: Vec::new(),
            model_switches: Vec::new(),
        };
        events.iter().for_each(|recorded| timeline.apply(recorded));
        Some(timeline)
    }

    /// Returns the latest attempt of a session; of any session if `session` is `None`.
    fn newest_attempt(&mut self, session: Option<&SessionId>) -> Option<&mut AttemptView> {
        let is_it = |story: &&mut AttemptView| session.is_none_or(|id| story.session == *id);
        self.attempts.iter_mut().rev().find(is_it)
    }

    /// Returns the attempt of a session that was in progress at this time: gateway events are recorded a little later.
    fn attempt_at(
        &mut self,
        session: Option<&SessionId>,
        at: Timestamp,
    ) -> Option<&mut AttemptView> {
        let is_it = |story: &&mut AttemptView| {
            story.started <= at && session.is_none_or(|id| story.session == *id)
        };
        self.attempts.iter_mut().rev().find(is_it)
    }

    /// Applies an event of the gateway.
    fn on_api_call(&mut self, recorded: &EventRecord) {
        let (session, at) = (recorded.event.session().cloned(), recorded.at);
        let calls = match self.attempt_at(session.as_ref(), at) {
            Some(story) => &mut story.calls,
            None => &mut self.calls,
        };
        api_call_summary::apply(calls, recorded);
    }

    /// Applies a model switch: by the supervisor after an attempt, or by the gateway during one.
    fn on_model_switched(&mut self, model: &ModelSwitched, at: Timestamp) {
        let change = model.switch.clone();
        match self.attempt_at(model.session.as_ref(), at) {
            Some(story) if story.ended.is_some_and(|ended| ended <= at) => {
                story.model_switch = Some(change);
            }
            Some(story) => story.gateway_model_switches.push(change),
            None => self.model_switches.push(change),
        }
    }

    fn on_attempt_started(&mut self, attempt: &AttemptStarted, recorded: &EventRecord) {
        let made_before = self
            .newest_attempt(Some(&attempt.session))
            .filter(|newest| newest.number == attempt.number)
            .map(|newest| (newest.index, newest.interrupted_count + 1));
        let next = self.attempts.last().map_or(1, |newest| newest.index + 1);
        let (index, cut_off) = made_before.unwrap_or((next, 0));
        let mut sessions = self.sessions.iter();
        let session = sessions.find(|session| session.id == attempt.session);
        let story = AttemptView {
            index,
            interrupted_count: cut_off,
            part: session.and_then(|session| session.part.clone()),
            ..new_attempt_view(format!("{}/{index}", recorded.run), attempt, recorded.at)
        };
        match self.newest_attempt(Some(&attempt.session)) {
            Some(newest) if newest.index == index => *newest = story,
            _ => self.attempts.push(story),
        }
    }

    fn apply(&mut self, recorded: &EventRecord) {
        match &recorded.event {
            Event::AttemptStarted(attempt) => return self.on_attempt_started(attempt, recorded),
            Event::RunStarted(run) => self.specs.extend(run.sole_session().map(id_and_spec)),
            Event::SessionStarted(started) => self.specs.extend([id_and_spec(&started.spec)]),
            Event::CallFailed(_) | Event::CallFinished(_) => return self.on_api_call(recorded),
            Event::ModelSwitched(model) => return self.on_model_switched(model, recorded.at),
            _ => {}
        }
        let Some(newest) = self.newest_attempt(recorded.event.session()) else {
            return;
        };
        match &recorded.event {
            Event::AttemptFailed(failed) => {
                newest.on_ended(&failed.end, recorded.at, AttemptOutcome::Failed);
                newest.diagnosis = Some(failed.diagnosis.clone());
                newest
                    .validation_errors
                    .clone_from(&failed.validation_errors);
                newest.excerpt = Some(failed.excerpt.clone());
            }
            Event::AttemptSucceeded(done) => {
                newest.on_ended(&done.end, recorded.at, AttemptOutcome::Succeeded);
            }
            Event::AttemptInterrupted(_) => {
                newest.ended = Some(recorded.at);
                newest.outcome = AttemptOutcome::Interrupted;
            }
            Event::DecisionMade(made) => newest.decision = Some((**made).clone()),
            // A wait for the conversation follows the wait that the failure required.
            Event::WaitStarted(wait)
                if newest.wait.is_some() && wait.wait_purpose == WaitPurpose::Conversation => {}
            Event::WaitStarted(wait) => newest.wait = Some(wait.clone()),
            Event::EscalationOpened(asked) if !asked.is_non_blocking() => {
                newest.escalation = Some((**asked).clone())
            }
            Event::EscalationResolved(resolved) if resolved.is_by_human() => {
                newest.resolution = Some(resolved.clone());
            }
            Event::RepairProposed(proposed) => newest.repairs.push(new_repair_view(proposed)),
            other => self.on_repair_event(other),
        }
    }

    fn on_repair_event(&mut self, event: &Event) {
        let id = match event {
            Event::RepairApproved(repair) => &repair.id,
            Event::RepairExecuted(repair) => &repair.id,
            Event::RepairFailed(repair) => &repair.id,
            Event::EscalationResolved(resolved) => match &resolved.id {
                Some(id) => id,
                None => return,
            },
            _ => return,
        };
        let all = self.attempts.iter_mut().flat_map(|one| &mut one.repairs);
        let Some(story) = all.rev().find(|story| story.proposed.id == *id) else {
            return;
        };
        match event {
            Event::RepairApproved(repair) => story.approved_by = Some(repair.source),
            Event::RepairExecuted(repair) => {
                story.exit_code = Some(repair.exit_code);
                story.duration_ms = Some(repair.duration_ms);
                story.sandbox = Some(repair.sandbox.clone());
                story.side_effects.clone_from(&repair.side_effects);
                story.output.clone_from(&repair.output);
            }
            Event::RepairFailed(repair) => story.failure_reason = Some(repair.error.clone()),
            Event::EscalationResolved(_) => story.has_helped = true,
            _ => {}
        }
    }
}

fn new_repair_view(proposed: &RepairProposed) -> RepairView {
    RepairView {
        proposed: proposed.clone(),
        approved_by: None,
        exit_code: None,
        duration_ms: None,
        sandbox: None,
        side_effects: RepairSandboxReport::default(),
        output: String::new(),
        failure_reason: None,
        has_helped: false,
    }
}

impl AttemptView {
    fn on_ended(&mut self, end: &AttemptEnd, at: Timestamp, outcome: AttemptOutcome) {
        self.outcome = outcome;
        self.ended = Some(at);
        self.duration_ms = Some(end.duration_ms);
        self.exit_code = end.exit_code;
        self.signal = end.signal;
        self.limit.clone_from(&end.limit);
        self.usage.clone_from(&end.usage);
        self.tree_after.clone_from(&end.tree);
        if end.model.is_some() {
            self.model.clone_from(&end.model);
        }
    }
}

fn id_and_spec(spec: &SessionSpec) -> (SessionId, SessionSpec) {
    (spec.session.clone(), spec.clone())
}

fn new_attempt_view(id: String, attempt: &AttemptStarted, at: Timestamp) -> AttemptView {
    AttemptView {
        id,
        index: attempt.number,
        session: attempt.session.clone(),
        part: None,
        number: attempt.number,
        outcome: AttemptOutcome::Running,
        interrupted_count: 0,
        started: at,
        ended: None,
        duration_ms: None,
        command: attempt.command.clone(),
        model: attempt.model.clone(),
        cause: attempt.cause.clone(),
        changes: attempt.changes.clone(),
        tree: attempt.tree.clone(),
        tree_after: None,
        exit_code: None,
        signal: None,
        limit: None,
        usage: AttemptUsage::default(),
        diagnosis: None,
        validation_errors: Vec::new(),
        excerpt: None,
        decision: None,
        calls: Vec::new(),
        gateway_model_switches: Vec::new(),
        model_switch: None,
        wait: None,
        escalation: None,
        resolution: None,
        repairs: Vec::new(),
    }
}
