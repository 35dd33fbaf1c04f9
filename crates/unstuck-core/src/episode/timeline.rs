//! The story of a run, attempt by attempt: what was tried, what came of it, what was decided and why.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::decision::EscalationRecord;
use crate::diagnosis::Diagnosis;
use crate::event::{
    Answering, ApprovalSource, AttemptEnd, AttemptStarted, DecisionMade, Event, Excerpt, Measured,
    ModelEscalated, Part, Recorded, RecoveryEscalated, RecoveryProposed, RecoveryResolved,
    RepairTraces, RunStarted, SessionId, SessionSpec, WaitingUntil,
};
use crate::moment::Timestamp;

use super::call_story::{self, CallStory};
use super::run_view::RunView;
use super::session_view::SessionView;

/// What came of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// It is under way, or nobody saw its end.
    Running,
    /// It did what it should.
    Succeeded,
    /// It failed.
    Failed,
    /// It was cut off from outside.
    Interrupted,
}

impl AttemptOutcome {
    /// The name used on every wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The story of one attempt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AttemptStory {
    /// Its id: that of the run, and its place among all attempts of the run.
    pub id: String,
    /// Its place among all attempts of the run, from 1.
    pub index: u32,
    /// Its session.
    pub session: SessionId,
    /// Which role it plays, and when, in a pipeline.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// Its number in the session, from 1.
    pub number: u32,
    /// What came of it.
    pub outcome: AttemptOutcome,
    /// How often it was cut off from outside and made again.
    #[serde(rename = "cut_off")]
    pub cut_off: u32,
    /// When it began.
    pub started: Timestamp,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// How long it took, in milliseconds.
    pub duration_ms: Option<u64>,
    /// The command line.
    pub command: Vec<String>,
    /// The model, as far as is known.
    pub model: Option<String>,
    /// What it was an answer to.
    #[serde(rename = "answering")]
    pub answering: Option<Answering>,
    /// What was changed about it, in words.
    pub changes: Vec<String>,
    /// The work tree before it, as the id of a git tree.
    pub tree: Option<String>,
    /// The work tree after it, as the id of a git tree.
    pub tree_after: Option<String>,
    /// The exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The limit that was reached.
    pub limit: Option<String>,
    /// What it used.
    #[serde(rename = "used")]
    pub used: Measured,
    /// What the failure was found to be.
    pub diagnosis: Option<Diagnosis>,
    /// What the checks of its output found wrong.
    pub validation_errors: Vec<String>,
    /// The last that it wrote.
    pub excerpt: Option<Excerpt>,
    /// What was decided about it.
    pub decision: Option<DecisionMade>,
    /// The calls of LLM APIs that did not simply work, as the gateway saw them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallStory>,
    /// The changes of the model that the gateway made meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "moved")]
    pub moved: Vec<EscalationRecord>,
    /// The change of the model that followed.
    #[serde(rename = "model_change")]
    pub model_change: Option<EscalationRecord>,
    /// The wait that followed.
    pub wait: Option<WaitingUntil>,
    /// The question that followed.
    pub escalation: Option<RecoveryEscalated>,
    /// How that was settled.
    #[serde(rename = "resolved")]
    pub resolved: Option<RecoveryResolved>,
    /// The repairs that were proposed because of it, and what came of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<RepairStory>,
}

/// What came of one repair.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RepairStory {
    /// What was proposed, and what the guard said to it.
    #[serde(flatten)]
    pub proposed: RecoveryProposed,
    /// Who allowed it, if somebody did.
    #[serde(rename = "approved")]
    pub approved: Option<ApprovalSource>,
    /// Its exit code, if it was run.
    pub exit_code: Option<i32>,
    /// How long it took, in milliseconds.
    pub duration_ms: Option<u64>,
    /// How it was confined.
    pub sandbox: Option<String>,
    /// What the sandbox lacked, and what was taken away or not kept.
    #[serde(skip_serializing_if = "RepairTraces::is_empty")]
    pub traces: RepairTraces,
    /// The end of what it wrote.
    pub output: String,
    /// Why it did not help, if it did not.
    #[serde(rename = "failed")]
    pub failed: Option<String>,
    /// Whether what had failed works since.
    #[serde(rename = "worked")]
    pub worked: bool,
}

/// The story of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Timeline {
    /// The run at a glance.
    #[serde(skip)]
    pub view: RunView,
    /// How it began.
    #[serde(skip)]
    pub run: RunStarted,
    /// Its roles, in the order in which they began; empty unless it is a pipeline.
    #[serde(skip)]
    pub sessions: Vec<SessionView>,
    /// What each session runs, as it was last configured.
    #[serde(skip)]
    pub specs: BTreeMap<SessionId, SessionSpec>,
    /// Its attempts, in the order in which they began.
    pub attempts: Vec<AttemptStory>,
    /// The calls of LLM APIs that did not simply work and belong to no attempt: those of a client's own session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallStory>,
    /// The changes of the model that belong to no attempt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "moved")]
    pub moved: Vec<EscalationRecord>,
}

impl Timeline {
    /// Tells the story that the events hold; none if they have no beginning.
    pub fn fold(events: &[Recorded]) -> Option<Self> {
        let first = events.first()?;
        let Event::RunStarted(run) = &first.event else {
            return None;
        };
        let mut timeline = Self {
            view: RunView::fold(events)?,
            run: (**run).clone(),
            sessions: SessionView::all(events),
            specs: BTreeMap::new(),
            attempts: Vec::new(),
            calls: Vec::new(),
            moved: Vec::new(),
        };
        events.iter().for_each(|recorded| timeline.record(recorded));
        Some(timeline)
    }

    /// The newest attempt of a session; of any where none is named.
    fn newest(&mut self, session: Option<&SessionId>) -> Option<&mut AttemptStory> {
        let is_it = |story: &&mut AttemptStory| session.is_none_or(|id| story.session == *id);
        self.attempts.iter_mut().rev().find(is_it)
    }

    /// The attempt of a session that was under way at a moment: what a gateway saw is written down a little later.
    fn under_way(
        &mut self,
        session: Option<&SessionId>,
        at: Timestamp,
    ) -> Option<&mut AttemptStory> {
        let is_it = |story: &&mut AttemptStory| {
            story.started <= at && session.is_none_or(|id| story.session == *id)
        };
        self.attempts.iter_mut().rev().find(is_it)
    }

    /// Takes in what a gateway saw.
    fn called(&mut self, recorded: &Recorded) {
        let (session, at) = (recorded.event.session().cloned(), recorded.at);
        let calls = match self.under_way(session.as_ref(), at) {
            Some(story) => &mut story.calls,
            None => &mut self.calls,
        };
        call_story::take_in(calls, recorded);
    }

    /// Takes in a change of the model: of the supervisor after an attempt, or of the gateway meanwhile.
    fn changed_model(&mut self, model: &ModelEscalated, at: Timestamp) {
        let change = model.change.clone();
        match self.under_way(model.session.as_ref(), at) {
            Some(story) if story.ended.is_some_and(|ended| ended <= at) => {
                story.model_change = Some(change);
            }
            Some(story) => story.moved.push(change),
            None => self.moved.push(change),
        }
    }

    fn began(&mut self, attempt: &AttemptStarted, recorded: &Recorded) {
        let made_before = self
            .newest(Some(&attempt.session))
            .filter(|newest| newest.number == attempt.number)
            .map(|newest| (newest.index, newest.cut_off + 1));
        let next = self.attempts.last().map_or(1, |newest| newest.index + 1);
        let (index, cut_off) = made_before.unwrap_or((next, 0));
        let mut sessions = self.sessions.iter();
        let session = sessions.find(|session| session.id == attempt.session);
        let story = AttemptStory {
            index,
            cut_off,
            part: session.and_then(|session| session.part.clone()),
            ..begun(format!("{}/{index}", recorded.run), attempt, recorded.at)
        };
        match self.newest(Some(&attempt.session)) {
            Some(newest) if newest.index == index => *newest = story,
            _ => self.attempts.push(story),
        }
    }

    fn record(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::AttemptStarted(attempt) => return self.began(attempt, recorded),
            Event::RunStarted(run) => self.specs.extend(run.sole_session().map(by_id)),
            Event::SessionStarted(started) => self.specs.extend([by_id(&started.spec)]),
            Event::CallFailed(_) | Event::CallFinished(_) => return self.called(recorded),
            Event::ModelEscalated(model) => return self.changed_model(model, recorded.at),
            _ => {}
        }
        let Some(newest) = self.newest(recorded.event.session()) else {
            return;
        };
        match &recorded.event {
            Event::AttemptFailed(failed) => {
                newest.end(&failed.end, recorded.at, AttemptOutcome::Failed);
                newest.diagnosis = Some(failed.diagnosis.clone());
                newest
                    .validation_errors
                    .clone_from(&failed.validation_errors);
                newest.excerpt = Some(failed.excerpt.clone());
            }
            Event::AttemptSucceeded(done) => {
                newest.end(&done.end, recorded.at, AttemptOutcome::Succeeded);
            }
            Event::AttemptInterrupted(_) => {
                newest.ended = Some(recorded.at);
                newest.outcome = AttemptOutcome::Interrupted;
            }
            Event::DecisionMade(made) => newest.decision = Some((**made).clone()),
            Event::WaitingUntil(wait) => newest.wait = Some(wait.clone()),
            Event::RecoveryEscalated(asked) => newest.escalation = Some((**asked).clone()),
            Event::RecoveryResolved(resolved) if resolved.is_by_person() => {
                newest.resolved = Some(resolved.clone());
            }
            Event::RecoveryProposed(proposed) => newest.repairs.push(proposed_one(proposed)),
            other => self.repaired(other),
        }
    }

    fn repaired(&mut self, event: &Event) {
        let id = match event {
            Event::RecoveryApproved(repair) => &repair.id,
            Event::RecoveryExecuted(repair) => &repair.id,
            Event::RecoveryFailed(repair) => &repair.id,
            Event::RecoveryResolved(resolved) => match &resolved.id {
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
            Event::RecoveryApproved(repair) => story.approved = Some(repair.source),
            Event::RecoveryExecuted(repair) => {
                story.exit_code = Some(repair.exit_code);
                story.duration_ms = Some(repair.duration_ms);
                story.sandbox = Some(repair.sandbox.clone());
                story.traces.clone_from(&repair.traces);
                story.output.clone_from(&repair.output);
            }
            Event::RecoveryFailed(repair) => story.failed = Some(repair.error.clone()),
            Event::RecoveryResolved(_) => story.worked = true,
            _ => {}
        }
    }
}

fn proposed_one(proposed: &RecoveryProposed) -> RepairStory {
    RepairStory {
        proposed: proposed.clone(),
        approved: None,
        exit_code: None,
        duration_ms: None,
        sandbox: None,
        traces: RepairTraces::default(),
        output: String::new(),
        failed: None,
        worked: false,
    }
}

impl AttemptStory {
    fn end(&mut self, end: &AttemptEnd, at: Timestamp, outcome: AttemptOutcome) {
        self.outcome = outcome;
        self.ended = Some(at);
        self.duration_ms = Some(end.duration_ms);
        self.exit_code = end.exit_code;
        self.signal = end.signal;
        self.limit.clone_from(&end.limit);
        self.used.clone_from(&end.used);
        self.tree_after.clone_from(&end.tree);
        if end.model.is_some() {
            self.model.clone_from(&end.model);
        }
    }
}

fn by_id(spec: &SessionSpec) -> (SessionId, SessionSpec) {
    (spec.session.clone(), spec.clone())
}

fn begun(id: String, attempt: &AttemptStarted, at: Timestamp) -> AttemptStory {
    AttemptStory {
        id,
        index: attempt.number,
        session: attempt.session.clone(),
        part: None,
        number: attempt.number,
        outcome: AttemptOutcome::Running,
        cut_off: 0,
        started: at,
        ended: None,
        duration_ms: None,
        command: attempt.command.clone(),
        model: attempt.model.clone(),
        answering: attempt.answering.clone(),
        changes: attempt.changes.clone(),
        tree: attempt.tree.clone(),
        tree_after: None,
        exit_code: None,
        signal: None,
        limit: None,
        used: Measured::default(),
        diagnosis: None,
        validation_errors: Vec::new(),
        excerpt: None,
        decision: None,
        calls: Vec::new(),
        moved: Vec::new(),
        model_change: None,
        wait: None,
        escalation: None,
        resolved: None,
        repairs: Vec::new(),
    }
}
