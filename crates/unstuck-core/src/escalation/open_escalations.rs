//! The questions of a run that wait for an answer, as a fold over its events.

use crate::event::{EscalationOpened, EscalationResolved, Event, EventRecord};

/// The questions of a run that wait for an answer, the oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OpenEscalations {
    open: Vec<EscalationOpened>,
}

impl OpenEscalations {
    /// Takes in what happened.
    pub fn apply(&mut self, recorded: &EventRecord) {
        match &recorded.event {
            Event::EscalationOpened(asked) => {
                self.open.retain(|one| one.id != asked.id);
                self.open.push((**asked).clone());
            }
            Event::EscalationResolved(resolved) if resolved.is_by_person() => {
                self.open.retain(|asked| !is_resolution_of(resolved, asked));
            }
            // To take a run up again answers what it asked, but never a question about a budget.
            Event::RunResumed(_) => self.open.retain(EscalationOpened::is_about_budget),
            Event::RunFinished(end) if !end.outcome.is_resumable() => self.open.clear(),
            _ => {}
        }
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &EscalationOpened> {
        self.open.iter()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

/// Whether an answer is about a question: one that names neither a question nor a session is about all but budgets.
fn is_resolution_of(resolved: &EscalationResolved, asked: &EscalationOpened) -> bool {
    match (&resolved.id, &resolved.session) {
        (Some(id), _) => *id == asked.id,
        (None, _) if asked.is_about_budget() => false,
        (None, Some(session)) => asked.session.as_ref() == Some(session),
        (None, None) => true,
    }
}
