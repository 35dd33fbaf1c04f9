//! A person's word about a repair that waits for it.

use unstuck_core::episode::RunFold;
use unstuck_core::event::{
    ApprovalSource, Event, RecoveryApproved, RecoveryEscalated, RecoveryResolved,
};
use unstuck_core::recovery::{Repair, RepairState};
use unstuck_core::{Recorded, RunId, Timestamp};
use unstuck_store::Append;

use super::announce::Scribe;
use super::error::RunError;

/// A repair that waits for a person's word.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenRepair {
    /// The question.
    pub asked: RecoveryEscalated,
    /// What it is about.
    pub repair: Repair,
}

impl OpenRepair {
    /// The repairs of a run that wait for a person's word, the oldest first.
    pub fn all(events: &[Recorded]) -> Vec<Self> {
        let Some(fold) = RunFold::fold(events) else {
            return Vec::new();
        };
        let questions = events.iter().filter_map(|recorded| match &recorded.event {
            Event::RecoveryEscalated(asked) => Some((**asked).clone()),
            _ => None,
        });
        let open = questions.filter_map(|asked| {
            let repair = fold.repairs.named(asked.repair.as_deref()?)?.clone();
            let is_open = repair.state == RepairState::Asked;
            is_open.then_some(Self { asked, repair })
        });
        open.collect()
    }

    /// Allows it: exactly what was shown, once.
    pub async fn approve(
        &self,
        scribe: &Scribe<'_>,
        run: &RunId,
        note: &str,
        now: Timestamp,
    ) -> Result<(), RunError> {
        let proposed = &self.repair.proposed;
        let approved = RecoveryApproved {
            session: proposed.session.clone(),
            id: proposed.id.clone(),
            source: ApprovalSource::Human,
            command: proposed.command.clone(),
        };
        let answer = RecoveryResolved::about_repair(&self.asked, "approve", note);
        let events = [Event::from(answer), Event::from(approved)];
        scribe.append(Append::new(run.clone(), now, events)).await?;
        Ok(())
    }

    /// Refuses it: what was under way goes on without it.
    pub async fn reject(
        &self,
        scribe: &Scribe<'_>,
        run: &RunId,
        note: &str,
        now: Timestamp,
    ) -> Result<(), RunError> {
        let answer = RecoveryResolved::about_repair(&self.asked, "reject", note);
        let append = Append::new(run.clone(), now, [Event::from(answer)]);
        scribe.append(append).await?;
        Ok(())
    }
}
