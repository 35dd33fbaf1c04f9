//! Commands on a real store; anything that would start a process is only recorded.

use std::sync::Mutex;

use unstuck_core::agent::Agents;
use unstuck_core::decision::{
    ModelCatalog, ModelSwitch, ModelSwitchReason, TokenUsage, template, templates,
};
use unstuck_core::event::{Event, ModelSwitched, RunId};
use unstuck_core::{RetryPolicy, Timestamp};
use unstuck_run::runner::{HumanAnswer, NotifyingEventWriter, RunError, record_answer};
use unstuck_store::{
    EscalationFilter, EscalationRow, EscalationStatusFilter, RunEventBatch, Store,
};
use unstuck_web::commands::{
    AnswerEscalation, CommandFuture, Deeds, PolicyTarget, RetrySession, SetRetryPolicy,
    SwitchModel, WebCommandError,
};
use unstuck_web::model::{
    Agent, AttemptTexts, BudgetResponse, Budgets, EffectiveRetryPolicy, EscalationAnswerResponse,
    ExtraCostEstimateResponse, ModelSwitchEntry, Models, PolicyOrigin, RepairPreview,
    RetryPromptResponse, SessionRetryResponse, UpstreamStatus, Webhook, WebhookTestResult,
};
use unstuck_web::queries::{set_policy, stored_policy};

/// Usage of a sample session.
const USED: TokenUsage = TokenUsage {
    input: 100_000,
    cached: 0,
    output: 10_000,
    requests: 5,
};

/// Runs all commands that need no processes.
pub(crate) struct Doer {
    store: Store,
    now: fn() -> Timestamp,
    /// Commands that would have started a process.
    pub(crate) done: Mutex<Vec<String>>,
}

impl Doer {
    pub(crate) fn new(store: Store, now: fn() -> Timestamp) -> Self {
        Self {
            store,
            now,
            done: Mutex::default(),
        }
    }

    fn note(&self, done: String) {
        self.done.lock().unwrap().push(done);
    }

    async fn question(&self, id: &str) -> Result<EscalationRow, WebCommandError> {
        let filter = EscalationFilter {
            prefix: Some(id.to_owned()),
            status: EscalationStatusFilter::Any,
            ..EscalationFilter::default()
        };
        let found = self.store.escalations(&filter).await?;
        let found = found.into_iter().find(|one| one.request.id == id);
        found.ok_or_else(|| WebCommandError::NotFound(format!("request `{id}` not found")))
    }

    async fn models_of(
        &self,
        escalating: &SwitchModel,
    ) -> Result<(String, String), WebCommandError> {
        let run = run_of(&escalating.session);
        let story = self.store.timeline(&run).await?;
        let story = story.ok_or_else(|| WebCommandError::NotFound("run not found".to_owned()))?;
        let session = story
            .sessions
            .iter()
            .find(|one| one.id == escalating.session);
        let from = session.and_then(|one| one.model.clone());
        let from = from.ok_or_else(|| {
            WebCommandError::Conflict(
                "the model of this session is unknown until its first call".to_owned(),
            )
        })?;
        let catalog = ModelCatalog::embedded();
        let to = match &escalating.to {
            Some(to) => to.clone(),
            None => {
                let next = catalog.next_model(&from).map(str::to_owned);
                next.map_err(|why| WebCommandError::Conflict(why.to_string()))?
            }
        };
        Ok((from, to))
    }
}

fn run_of(session: &unstuck_core::SessionId) -> RunId {
    let (run, _) = session.as_str().rsplit_once('-').unwrap();
    RunId::new(run)
}

impl Deeds for Doer {
    fn answer(&self, answering: AnswerEscalation) -> CommandFuture<'_, EscalationAnswerResponse> {
        Box::pin(async move {
            let mut question = self.question(&answering.escalation).await?;
            if let Some(hash) = answering.hash {
                question.request.details.hash = hash;
            }
            let said = HumanAnswer {
                answer: answering.answer,
                note: &answering.note,
                author: answering.who.as_deref(),
            };
            let scribe = NotifyingEventWriter {
                store: &self.store,
                notifier: None,
            };
            record_answer(&scribe, &question, &said, (self.now)())
                .await
                .map_err(|error| match error {
                    RunError::Store(error) => WebCommandError::Store(error),
                    other => WebCommandError::Unavailable(other.to_string()),
                })?;
            let question = self.question(&answering.escalation).await?;
            Ok(EscalationAnswerResponse {
                escalation: question.into(),
                next_action: "the waiting process continues".to_owned(),
            })
        })
    }

    fn preview(&self, question: &str, network: bool) -> CommandFuture<'_, RepairPreview> {
        let question = question.to_owned();
        Box::pin(async move {
            self.note(format!("preview {question} {network}"));
            Err(WebCommandError::Unavailable(
                "too many previews are running; retry later".to_owned(),
            ))
        })
    }

    fn retry_prompt(&self, retrying: RetrySession) -> CommandFuture<'_, RetryPromptResponse> {
        Box::pin(async move {
            let words = retrying.options.message.unwrap_or_default();
            Ok(RetryPromptResponse {
                prompt: format!("fix the tests {words}"),
                original: "fix the tests".to_owned(),
                continues: false,
                model: retrying.options.model,
                timeout_ms: None,
            })
        })
    }

    fn retry(&self, retrying: RetrySession) -> CommandFuture<'_, SessionRetryResponse> {
        Box::pin(async move {
            let options = serde_json::to_string(&retrying.options).unwrap();
            self.note(format!("retry {} {options}", retrying.session.as_str()));
            Ok(SessionRetryResponse {
                run: run_of(&retrying.session).as_str().to_owned(),
                session: retrying.session.as_str().to_owned(),
                next_action: "the waiting process continues".to_owned(),
            })
        })
    }

    fn estimate(&self, escalating: SwitchModel) -> CommandFuture<'_, ExtraCostEstimateResponse> {
        Box::pin(async move {
            let (from, to) = self.models_of(&escalating).await?;
            let cost = ModelCatalog::embedded().cost_difference(&from, &to, USED);
            Ok(ExtraCostEstimateResponse::from_estimate(
                &cost,
                Some((&from, &to)),
            ))
        })
    }

    fn escalate(&self, escalating: SwitchModel) -> CommandFuture<'_, ModelSwitchEntry> {
        Box::pin(async move {
            let (from, to) = self.models_of(&escalating).await?;
            let cost = ModelCatalog::embedded().cost_difference(&from, &to, USED);
            let change = ModelSwitch {
                from_model: from,
                to_model: to,
                reason: ModelSwitchReason::Manual,
                timestamp: (self.now)(),
                cost_estimate: cost.usd(),
            };
            let event = ModelSwitched {
                session: Some(escalating.session.clone()),
                switch: change.clone(),
            };
            let run = run_of(&escalating.session);
            let append = RunEventBatch::new(run, (self.now)(), [Event::from(event)]);
            self.store.append(append).await?;
            Ok(change.into())
        })
    }

    fn stop(&self, run: RunId, _: Option<String>) -> CommandFuture<'_, ()> {
        self.note(format!("stop {run}"));
        Box::pin(async { Ok(()) })
    }

    fn texts(&self, run: RunId, attempt: u32) -> CommandFuture<'_, AttemptTexts> {
        Box::pin(async move {
            Ok(AttemptTexts {
                prompt: Some("fix the tests".to_owned()),
                stdout: format!("output of {run}/{attempt}"),
                ..AttemptTexts::default()
            })
        })
    }

    fn policy(&self, of: PolicyTarget) -> CommandFuture<'_, EffectiveRetryPolicy> {
        Box::pin(async move {
            let set = stored_policy(&self.store, &of).await?;
            Ok(set.unwrap_or_else(|| EffectiveRetryPolicy {
                policy: template("standard").unwrap().clone(),
                origin: PolicyOrigin::BuiltIn,
                version: 0,
            }))
        })
    }

    fn put_policy(&self, change: SetRetryPolicy) -> CommandFuture<'_, EffectiveRetryPolicy> {
        Box::pin(async move {
            set_policy(&self.store, &change, (self.now)()).await?;
            self.policy(change.target).await
        })
    }

    fn policy_templates(&self) -> CommandFuture<'_, Vec<RetryPolicy>> {
        Box::pin(async { Ok(templates().to_vec()) })
    }

    fn agents(&self) -> CommandFuture<'_, Vec<Agent>> {
        Box::pin(async { Ok(Agents::built_in().iter().map(Agent::from).collect()) })
    }

    fn models(&self) -> CommandFuture<'_, Models> {
        Box::pin(async { Ok(Models::from(&ModelCatalog::embedded())) })
    }

    fn budgets(&self) -> CommandFuture<'_, Budgets> {
        let day = BudgetResponse {
            id: "day".to_owned(),
            usd: Some(20.0),
            tokens: None,
            spent_usd: Some(0.5),
        };
        Box::pin(async { Ok(Budgets::new(vec![day], 0.5)) })
    }

    fn webhooks(&self) -> CommandFuture<'_, Vec<Webhook>> {
        let one = Webhook {
            id: "escalation-1".to_owned(),
            event: "escalation".to_owned(),
            target: "https://hooks.example/".to_owned(),
            format: "json".to_owned(),
        };
        Box::pin(async { Ok(vec![one]) })
    }

    fn test_webhook(&self, id: &str) -> CommandFuture<'_, WebhookTestResult> {
        let id = id.to_owned();
        Box::pin(async move {
            if id != "escalation-1" {
                return Err(WebCommandError::NotFound(format!(
                    "webhook {id} not found; GET /api/webhooks lists webhooks"
                )));
            }
            self.note(format!("webhook {id}"));
            Ok(WebhookTestResult {
                delivered: true,
                response: "204".to_owned(),
                took_ms: 3,
            })
        })
    }

    fn lanes(&self) -> CommandFuture<'_, Vec<UpstreamStatus>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}
