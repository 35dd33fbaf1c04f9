//! A run and everything in it at a glance, as one fold over its events.

use super::run_view::RunView;
use super::session_view::SessionView;
use crate::event::{Event, Recorded, RunStarted, SessionId};
use crate::money::known;
use crate::pipeline::Pipeline;
use crate::question::OpenQuestions;
use crate::recovery::Repairs;

/// A run and everything in it at a glance.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFold {
    /// How it began.
    pub run: RunStarted,
    /// The run as a whole.
    pub view: RunView,
    /// Its sessions, in the order in which they began.
    pub sessions: Vec<SessionView>,
    /// Where it stands as a pipeline, if it is one.
    pub pipeline: Option<Pipeline>,
    /// The repairs that were proposed, and what came of them.
    pub repairs: Repairs,
    /// What people are asked and have not answered.
    pub questions: OpenQuestions,
}

impl RunFold {
    /// Begins with the event that began the run; none if it is another event.
    pub fn begin(first: &Recorded) -> Option<Self> {
        let Event::RunStarted(run) = &first.event else {
            return None;
        };
        let mut repairs = Repairs::default();
        repairs.record(first);
        Some(Self {
            run: (**run).clone(),
            view: RunView::begin(first)?,
            sessions: SessionView::all(std::slice::from_ref(first)),
            pipeline: Pipeline::begin(first),
            repairs,
            questions: OpenQuestions::default(),
        })
    }

    /// The whole fold; none if there is no beginning.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Recorded>) -> Option<Self> {
        let mut events = events.into_iter();
        let mut fold = Self::begin(events.next()?)?;
        events.for_each(|recorded| fold.record(recorded));
        Some(fold)
    }

    /// Takes in the next event.
    pub fn record(&mut self, recorded: &Recorded) {
        self.view.record(recorded);
        SessionView::take_in(&mut self.sessions, recorded);
        self.repairs.record(recorded);
        self.questions.record(recorded);
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.record(recorded);
        }
    }

    /// What it cost, in USD, as far as is known; none where nothing of it is known.
    pub fn known_cost(&self) -> Option<f64> {
        let unpriced = self.sessions.iter().map(|session| session.unpriced).sum();
        known(self.view.cost_usd, unpriced)
    }

    /// The session of that id; the newest where none is named.
    pub fn session(&self, id: Option<&SessionId>) -> Option<&SessionView> {
        let mut sessions = self.sessions.iter().rev();
        sessions.find(|session| id.is_none_or(|id| session.id == *id))
    }
}
