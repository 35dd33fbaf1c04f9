//! The questions of a run that wait for an answer, as a fold over its events.

use crate::event::{Event, Recorded, RecoveryEscalated, RecoveryResolved};

/// The questions of a run that wait for an answer, the oldest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OpenQuestions {
    open: Vec<RecoveryEscalated>,
}

impl OpenQuestions {
    /// Takes in what happened.
    pub fn record(&mut self, recorded: &Recorded) {
        match &recorded.event {
            Event::RecoveryEscalated(asked) => {
                self.open.retain(|one| one.id != asked.id);
                self.open.push((**asked).clone());
            }
            Event::RecoveryResolved(resolved) if resolved.is_by_person() => {
                self.open.retain(|asked| !settles(resolved, asked));
            }
            // To take a run up again answers what it asked, but never a question about a budget.
            Event::RunResumed(_) => self.open.retain(RecoveryEscalated::is_about_budget),
            Event::RunFinished(end) if !end.outcome.is_resumable() => self.open.clear(),
            _ => {}
        }
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &RecoveryEscalated> {
        self.open.iter()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

/// Whether an answer is about a question: one that names neither a question nor a session is about all but budgets.
fn settles(resolved: &RecoveryResolved, asked: &RecoveryEscalated) -> bool {
    match (&resolved.id, &resolved.session) {
        (Some(id), _) => *id == asked.id,
        (None, _) if asked.is_about_budget() => false,
        (None, Some(session)) => asked.session.as_ref() == Some(session),
        (None, None) => true,
    }
}
