//! Sessions that go on with another model.

use anyhow::Result;
use unstuck_core::decision::{Changed, CostEstimate, EscalationReason, EscalationRecord};
use unstuck_core::question::Answer;
use unstuck_store::Question;
use unstuck_web::deeds::{DeedError, Escalating};
use unstuck_web::model::{Estimate, ModelChange};

use super::answers::go_on;
use super::{Desk, Doer, run_of, who};
use crate::answering::{self, Given, Giving};
use crate::moving::{Meant, To};
use crate::retrying::{Different, Follows, Subject};
use crate::{clock, runtime};

/// A move to another model, worked out.
struct Move {
    subject: Subject,
    meant: Meant,
    models: (String, String),
    cost: CostEstimate,
}

impl Move {
    fn new(desk: &Desk, escalating: &Escalating) -> Result<Self> {
        let session = desk.session();
        let subject = Subject::find(&escalating.session, &session)?;
        let (run, of) = (subject.run.clone(), subject.session.clone());
        let meant = Meant::of(run, of, subject.events(), session.store);
        let meant = runtime::block_on(meant)?;
        let to = escalating.to.as_deref().map_or(To::Next, To::Named);
        let catalog = subject.config().catalog();
        let models = meant.models(to, catalog)?;
        let cost = meant.dearer((&models.0, &models.1), catalog);
        Ok(Self {
            subject,
            meant,
            models,
            cost,
        })
    }

    /// What is kept of what was done so far, in one sentence.
    fn keeps(&self) -> &'static str {
        match self.subject.is_driven() && self.subject.question().is_none() {
            true => "the conversation goes on; only its further calls go to the other model",
            false => "what was done and its history stay; it is tried again with the other model",
        }
    }

    /// Whether the other model is what the question itself proposes.
    fn is_offered(&self, question: &Question) -> bool {
        let changes = question.asked.shown.changes(Answer::Escalate);
        let offered = changes.iter().find_map(Changed::model);
        question.asked.shown.allows(Answer::Escalate)
            && offered.is_some_and(|(_, to)| to == self.models.1)
    }

    fn make(self, desk: &Desk, by: &str) -> Result<EscalationRecord> {
        let session = desk.session();
        let now = clock::now().at;
        let (from, to) = self.models.clone();
        let change = EscalationRecord {
            from_model: from,
            to_model: to.clone(),
            reason: EscalationReason::Manual,
            timestamp: now,
            cost_estimate: self.cost.usd(),
        };
        let (run, project) = (&self.subject.run.id, self.subject.project());
        match self.subject.question() {
            Some(question) if self.is_offered(question) => {
                let giving = Giving {
                    answer: Answer::Escalate,
                    note: "",
                    who: by,
                    changes: &[],
                };
                let config = self.subject.config();
                let given = answering::give_as(question, &giving, config, &session)?;
                if given == Given::Waits
                    && let Some(taken) = desk.resuming.begin(run)
                {
                    go_on(desk, run, project, &[], taken);
                }
            }
            None if self.subject.is_driven() => {
                let recorded = self.meant.record(&desk.store, self.models, &self.cost, now);
                return runtime::block_on(recorded);
            }
            _ => {
                let different = Different {
                    model: Some(to),
                    ..Different::default()
                };
                let taken = desk.take_up(run)?;
                let follows = self.subject.retry(&different, by, &session)?;
                if let Follows::Waits { restart } = follows {
                    go_on(desk, run, project, &restart, taken);
                }
            }
        }
        Ok(change)
    }
}

/// What it would cost to go on with another model.
pub(super) async fn estimate(doer: &Doer, escalating: Escalating) -> Result<Estimate, DeedError> {
    run_of(&escalating.session)?;
    doer.beside(move |desk| {
        let worked_out = Move::new(desk, &escalating)?;
        let (from, to) = &worked_out.models;
        Ok(Estimate {
            keeps: worked_out.keeps().to_owned(),
            ..Estimate::of(&worked_out.cost, Some((from, to)))
        })
    })
    .await
}

/// Goes on with another model.
pub(super) async fn escalate(
    doer: &Doer,
    escalating: Escalating,
) -> Result<ModelChange, DeedError> {
    doer.0.only_for_people()?;
    doer.beside(move |desk| {
        let by = who(escalating.who.clone());
        let change = Move::new(desk, &escalating)?.make(desk, &by)?;
        Ok(change.into())
    })
    .await
}
