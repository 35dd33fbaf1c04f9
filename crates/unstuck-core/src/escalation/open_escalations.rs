//! The open escalations of a run, as a fold over its events.

use crate::event::{EscalationOpened, EscalationResolved, Event, EventRecord};

/// The open escalations of a run, oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OpenEscalations {
    open: Vec<EscalationOpened>,
}

impl OpenEscalations {
    /// Applies an event.
    pub fn apply(&mut self, recorded: &EventRecord) {
        match &recorded.event {
            Event::EscalationOpened(asked) => {
                self.open.retain(|one| one.id != asked.id);
                self.open.push((**asked).clone());
            }
            Event::EscalationResolved(resolved) if resolved.is_by_human() => {
                self.open.retain(|asked| !is_resolution_of(resolved, asked));
            }
            // Resuming a run answers its escalations, but never a budget escalation.
            Event::RunResumed(_) => self.open.retain(EscalationOpened::is_about_budget),
            Event::RunFinished(end) if !end.outcome.is_resumable() => self.open.clear(),
            _ => {}
        }
    }

    /// Returns an iterator over the open escalations.
    pub fn iter(&self) -> impl Iterator<Item = &EscalationOpened> {
        self.open.iter()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

/// True if the resolution applies to an escalation: without an id and a session it applies to all but budget
/// escalations.
fn is_resolution_of(resolved: &EscalationResolved, asked: &EscalationOpened) -> bool {
    match (&resolved.id, &resolved.session) {
        (Some(id), _) => *id == asked.id,
        (None, _) if asked.is_about_budget() => false,
        (None, Some(session)) => asked.session.as_ref() == Some(session),
        (None, None) => true,
    }
}
