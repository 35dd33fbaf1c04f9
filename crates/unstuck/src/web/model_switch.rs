//! Model switches of sessions.

use anyhow::Result;
use unstuck_core::decision::{ConcreteAttemptChange, CostEstimate, ModelSwitch, ModelSwitchReason};
use unstuck_core::escalation::EscalationAnswer;
use unstuck_store::EscalationRow;
use unstuck_web::commands::{SwitchModel, WebCommandError};
use unstuck_web::model::{ExtraCostEstimateResponse, ModelSwitchEntry};

use super::answers::resume_run;
use super::{Desk, Doer, actor_name, run_of_session};
use crate::escalation_answers::{self, AnswerEffect, AnswerInput};
use crate::model_switch::{ModelSwitchDestination, SessionToSwitch};
use crate::session_retry::{RetryChanges, RetryEffect, RetryTarget};
use crate::{async_runtime, clock};

/// A prepared model switch.
struct PreparedModelSwitch {
    retry_target: RetryTarget,
    switch_target: SessionToSwitch,
    models: (String, String),
    cost: CostEstimate,
}

impl PreparedModelSwitch {
    fn new(desk: &Desk, escalating: &SwitchModel) -> Result<Self> {
        let session = desk.session();
        let subject = RetryTarget::find(&escalating.session, &session)?;
        let (run, of) = (subject.run.clone(), subject.session.clone());
        let meant = SessionToSwitch::for_session(run, of, subject.events(), session.store);
        let meant = async_runtime::block_on(meant)?;
        let to = escalating
            .to
            .as_deref()
            .map_or(ModelSwitchDestination::Next, ModelSwitchDestination::Named);
        let catalog = subject.config().catalog();
        let models = meant.resolve_models(to, catalog)?;
        let cost = meant.extra_cost((&models.0, &models.1), catalog);
        Ok(Self {
            retry_target: subject,
            switch_target: meant,
            models,
            cost,
        })
    }

    /// Describes in one sentence how much of the previous work is kept.
    fn preserved_text(&self) -> &'static str {
        if self.retry_target.is_driven() && self.retry_target.escalation().is_none() {
            "the conversation continues; its next calls use the new model"
        } else {
            "completed work and history are kept; the session is retried with the new model"
        }
    }

    /// True if the escalation itself proposes this model.
    fn is_proposed_by(&self, question: &EscalationRow) -> bool {
        let changes = question
            .request
            .details
            .changes(EscalationAnswer::SwitchModel);
        let offered = changes.iter().find_map(ConcreteAttemptChange::model_switch);
        question
            .request
            .details
            .allows(EscalationAnswer::SwitchModel)
            && offered.is_some_and(|(_, to)| to == self.models.1)
    }

    fn apply(self, desk: &Desk, by: &str) -> Result<ModelSwitch> {
        let session = desk.session();
        let now = clock::now().at;
        let (from, to) = self.models.clone();
        let change = ModelSwitch {
            from_model: from,
            to_model: to.clone(),
            reason: ModelSwitchReason::Manual,
            timestamp: now,
            cost_estimate: self.cost.usd(),
        };
        let (run, project) = (&self.retry_target.run.id, self.retry_target.project());
        match self.retry_target.escalation() {
            Some(question) if self.is_proposed_by(question) => {
                let giving = AnswerInput {
                    answer: EscalationAnswer::SwitchModel,
                    note: "",
                    who: by,
                    changes: &[],
                };
                let given = escalation_answers::answer_as(question, &giving, &session)?;
                if given == AnswerEffect::NeedsResume
                    && let Some(taken) = desk.resumes.begin(run)
                {
                    resume_run(desk, run, project, &[], taken);
                }
            }
            None if self.retry_target.is_driven() => {
                let recorded =
                    self.switch_target
                        .record_switch(&desk.store, self.models, &self.cost, now);
                return async_runtime::block_on(recorded);
            }
            _ => {
                let different = RetryChanges {
                    model: Some(to),
                    ..RetryChanges::default()
                };
                let taken = desk.begin_resume(run)?;
                let follows = self.retry_target.retry(&different, by, &session)?;
                if let RetryEffect::NeedsResume { restart } = follows {
                    resume_run(desk, run, project, &restart, taken);
                }
            }
        }
        Ok(change)
    }
}

/// Estimates the cost of a model switch.
pub(super) async fn estimate(
    doer: &Doer,
    escalating: SwitchModel,
) -> Result<ExtraCostEstimateResponse, WebCommandError> {
    run_of_session(&escalating.session)?;
    doer.run_blocking(move |desk| {
        let worked_out = PreparedModelSwitch::new(desk, &escalating)?;
        let (from, to) = &worked_out.models;
        Ok(ExtraCostEstimateResponse {
            preserved: worked_out.preserved_text().to_owned(),
            ..ExtraCostEstimateResponse::from_estimate(&worked_out.cost, Some((from, to)))
        })
    })
    .await
}

/// Switches the model of a session.
pub(super) async fn switch_model(
    doer: &Doer,
    escalating: SwitchModel,
) -> Result<ModelSwitchEntry, WebCommandError> {
    doer.0.refuse_agents()?;
    doer.run_blocking(move |desk| {
        let by = actor_name(escalating.who.clone());
        let change = PreparedModelSwitch::new(desk, &escalating)?.apply(desk, &by)?;
        Ok(change.into())
    })
    .await
}
