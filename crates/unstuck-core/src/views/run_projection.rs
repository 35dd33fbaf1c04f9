//! A run and everything in it at a glance, as one fold over its events.

use super::run_summary::RunSummary;
use super::session_summary::SessionSummary;
use crate::escalation::OpenEscalations;
use crate::event::{Event, EventRecord, RunStarted, SessionId};
use crate::money::known_cost;
use crate::pipeline::Pipeline;
use crate::session_state::RepairStates;

/// A run and everything in it at a glance.
#[derive(Debug, Clone, PartialEq)]
pub struct RunProjection {
    /// How it began.
    pub run: RunStarted,
    /// The run as a whole.
    pub summary: RunSummary,
    /// Its sessions, in the order in which they began.
    pub sessions: Vec<SessionSummary>,
    /// Where it stands as a pipeline, if it is one.
    pub pipeline: Option<Pipeline>,
    /// The repairs that were proposed, and what came of them.
    pub repairs: RepairStates,
    /// What people are asked and have not answered.
    pub open_escalations: OpenEscalations,
}

impl RunProjection {
    /// Begins with the event that began the run; none if it is another event.
    pub fn from_first_event(first: &EventRecord) -> Option<Self> {
        let Event::RunStarted(run) = &first.event else {
            return None;
        };
        let mut repairs = RepairStates::default();
        repairs.apply(first);
        Some(Self {
            run: (**run).clone(),
            summary: RunSummary::from_first_event(first)?,
            sessions: SessionSummary::from_events(std::slice::from_ref(first)),
            pipeline: Pipeline::from_first_event(first),
            repairs,
            open_escalations: OpenEscalations::default(),
        })
    }

    /// The whole fold; none if there is no beginning.
    pub fn from_events<'a>(events: impl IntoIterator<Item = &'a EventRecord>) -> Option<Self> {
        let mut events = events.into_iter();
        let mut fold = Self::from_first_event(events.next()?)?;
        events.for_each(|recorded| fold.apply(recorded));
        Some(fold)
    }

    /// Takes in the next event.
    pub fn apply(&mut self, recorded: &EventRecord) {
        self.summary.apply(recorded);
        SessionSummary::apply_to_all(&mut self.sessions, recorded);
        self.repairs.apply(recorded);
        self.open_escalations.apply(recorded);
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.apply(recorded);
        }
    }

    /// What it cost, in USD, as far as is known; none where nothing of it is known.
    pub fn known_cost(&self) -> Option<f64> {
        let unpriced = self
            .sessions
            .iter()
            .map(|session| session.unpriced_count)
            .sum();
        known_cost(self.summary.cost_usd, unpriced)
    }

    /// The session of that id; the newest where none is named.
    pub fn session(&self, id: Option<&SessionId>) -> Option<&SessionSummary> {
        let mut sessions = self.sessions.iter().rev();
        sessions.find(|session| id.is_none_or(|id| session.id == *id))
    }
}
