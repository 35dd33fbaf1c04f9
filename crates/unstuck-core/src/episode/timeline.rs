//! The story of a run, attempt by attempt: what was tried, what came of it, what was decided and why.

use serde::Serialize;

use crate::decision::EscalationRecord;
use crate::diagnosis::Diagnosis;
use crate::event::{
    Answering, AttemptEnd, AttemptStarted, DecisionMade, Event, Excerpt, Measured, Recorded,
    RecoveryEscalated, RecoveryResolved, RunStarted, WaitingUntil,
};
use crate::moment::Timestamp;

use super::run_view::RunView;

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
    /// Its id: that of the run, and its number.
    pub id: String,
    /// Its number, from 1.
    pub number: u32,
    /// What came of it.
    pub outcome: AttemptOutcome,
    /// How often it was cut off from outside and made again.
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
    pub used: Measured,
    /// What the failure was found to be.
    pub diagnosis: Option<Diagnosis>,
    /// What the checks of its output found wrong.
    pub validation_errors: Vec<String>,
    /// The last that it wrote.
    pub excerpt: Option<Excerpt>,
    /// What was decided about it.
    pub decision: Option<DecisionMade>,
    /// The change of the model that followed.
    pub model_change: Option<EscalationRecord>,
    /// The wait that followed.
    pub wait: Option<WaitingUntil>,
    /// The question that followed.
    pub escalation: Option<RecoveryEscalated>,
    /// How that was settled.
    pub resolved: Option<RecoveryResolved>,
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
    /// Its attempts, in order.
    pub attempts: Vec<AttemptStory>,
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
            attempts: Vec::new(),
        };
        events.iter().for_each(|recorded| timeline.record(recorded));
        Some(timeline)
    }

    fn record(&mut self, recorded: &Recorded) {
        if let Event::AttemptStarted(attempt) = &recorded.event {
            let id = format!("{}/{}", recorded.run, attempt.number);
            let cut_off = self
                .attempts
                .pop_if(|newest| newest.number == attempt.number);
            self.attempts.push(AttemptStory {
                cut_off: cut_off.map_or(0, |before| before.cut_off + 1),
                ..begun(id, attempt, recorded.at)
            });
            return;
        }
        let Some(newest) = self.attempts.last_mut() else {
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
            Event::ModelEscalated(change) => newest.model_change = Some(change.clone()),
            Event::WaitingUntil(wait) => newest.wait = Some(wait.clone()),
            Event::RecoveryEscalated(asked) => newest.escalation = Some((**asked).clone()),
            Event::RecoveryResolved(resolved) => newest.resolved = Some(resolved.clone()),
            _ => {}
        }
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

fn begun(id: String, attempt: &AttemptStarted, at: Timestamp) -> AttemptStory {
    AttemptStory {
        id,
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
        model_change: None,
        wait: None,
        escalation: None,
        resolved: None,
    }
}
