//! The projection of a run with all its sessions, as one fold over its events.

use super::run_summary::RunSummary;
use super::session_summary::SessionSummary;
use crate::escalation::OpenEscalations;
use crate::event::{Event, EventRecord, RunStarted, SessionId};
use crate::money::known_cost;
use crate::pipeline::PipelineState;
use crate::session_state::RepairStates;

/// A run with all its sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct RunProjection {
    /// The start event of the run.
    pub run: RunStarted,
    /// The summary of the run.
    pub summary: RunSummary,
    /// The sessions, in start order.
    pub sessions: Vec<SessionSummary>,
    /// The pipeline, if it is one.
    pub pipeline: Option<PipelineState>,
    /// The repairs.
    pub repairs: RepairStates,
    /// The open escalations.
    pub open_escalations: OpenEscalations,
}

impl RunProjection {
    /// Creates the projection from the event that started the run; `None` for any other event.
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
            pipeline: PipelineState::from_first_event(first),
            repairs,
            open_escalations: OpenEscalations::default(),
        })
    }

    /// Folds all events; `None` if the starting event is missing.
    pub fn from_events<'a>(events: impl IntoIterator<Item = &'a EventRecord>) -> Option<Self> {
        let mut events = events.into_iter();
        let mut fold = Self::from_first_event(events.next()?)?;
        events.for_each(|recorded| fold.apply(recorded));
        Some(fold)
    }

    /// Applies the next event.
    pub fn apply(&mut self, recorded: &EventRecord) {
        self.summary.apply(recorded);
        SessionSummary::apply_to_all(&mut self.sessions, recorded);
        self.repairs.apply(recorded);
        self.open_escalations.apply(recorded);
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.apply(recorded);
        }
    }

    /// Returns the known cost in USD; `None` if none of it is known.
    pub fn known_cost(&self) -> Option<f64> {
        let unpriced = self
            .sessions
            .iter()
            .map(|session| session.unpriced_count)
            .sum();
        known_cost(self.summary.cost_usd, unpriced)
    }

    /// Returns the session with this id; the latest one if `id` is `None`.
    pub fn session(&self, id: Option<&SessionId>) -> Option<&SessionSummary> {
        let mut sessions = self.sessions.iter().rev();
        sessions.find(|session| id.is_none_or(|id| session.id == *id))
    }
}
