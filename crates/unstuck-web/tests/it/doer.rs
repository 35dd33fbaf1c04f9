//! Deeds on a real store; what would start a process is only noted.

use std::sync::Mutex;

use unstuck_core::agent::Agents;
use unstuck_core::decision::{
    Catalog, EscalationReason, EscalationRecord, Tokens, template, templates,
};
use unstuck_core::event::{Event, ModelEscalated, RunId};
use unstuck_core::{RetryPolicy, Timestamp};
use unstuck_run::drive::{RunError, Said, Scribe, answer};
use unstuck_store::{Append, Question, QuestionFilter, Standing, Store};
use unstuck_web::deeds::{
    Answering, DeedError, Deeds, Doing, Escalating, PolicyChange, PolicyOf, Retrying,
};
use unstuck_web::model::{
    Agent, AnswerTaken, AttemptTexts, Budget, Budgets, Estimate, Lane, ModelChange, Models,
    PolicyKept, PolicyOrigin, Preview, RetryPrompt, RetryStarted, Webhook, WebhookTested,
};
use unstuck_web::reading::{policy_set, set_policy};

/// What a session of samples has used.
const USED: Tokens = Tokens {
    input: 100_000,
    cached: 0,
    output: 10_000,
    requests: 5,
};

/// Does what can be done without processes.
pub(crate) struct Doer {
    store: Store,
    now: fn() -> Timestamp,
    /// What would have started a process.
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

    async fn question(&self, id: &str) -> Result<Question, DeedError> {
        let filter = QuestionFilter {
            prefix: Some(id.to_owned()),
            standing: Standing::Any,
            ..QuestionFilter::default()
        };
        let found = self.store.questions(&filter).await?;
        let found = found.into_iter().find(|one| one.asked.id == id);
        found.ok_or_else(|| DeedError::NotFound(format!("there is no question {id}")))
    }

    async fn models_of(&self, escalating: &Escalating) -> Result<(String, String), DeedError> {
        let run = run_of(&escalating.session);
        let story = self.store.story(&run).await?;
        let story = story.ok_or_else(|| DeedError::NotFound("there is no such run".to_owned()))?;
        let session = story
            .sessions
            .iter()
            .find(|one| one.id == escalating.session);
        let from = session.and_then(|one| one.model.clone());
        let from = from.ok_or_else(|| DeedError::Conflict("its model is not known".to_owned()))?;
        let catalog = Catalog::embedded();
        let to = match &escalating.to {
            Some(to) => to.clone(),
            None => {
                let next = catalog.next(&from).map(str::to_owned);
                next.map_err(|why| DeedError::Conflict(why.to_string()))?
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
    fn answer(&self, answering: Answering) -> Doing<'_, AnswerTaken> {
        Box::pin(async move {
            let mut question = self.question(&answering.question).await?;
            if let Some(hash) = answering.hash {
                question.asked.shown.hash = hash;
            }
            let said = Said {
                answer: answering.answer,
                note: &answering.note,
                who: answering.who.as_deref(),
            };
            let scribe = Scribe {
                store: &self.store,
                announcer: None,
            };
            answer(&scribe, &question, &said, (self.now)())
                .await
                .map_err(|error| match error {
                    RunError::Store(error) => DeedError::Store(error),
                    other => DeedError::Unavailable(other.to_string()),
                })?;
            let question = self.question(&answering.question).await?;
            Ok(AnswerTaken {
                escalation: question.into(),
                doing: "the run goes on".to_owned(),
            })
        })
    }

    fn preview(&self, question: &str, network: bool) -> Doing<'_, Preview> {
        let question = question.to_owned();
        Box::pin(async move {
            self.note(format!("preview {question} {network}"));
            Err(DeedError::Unavailable(
                "nothing can be tried out here".to_owned(),
            ))
        })
    }

    fn retry_prompt(&self, retrying: Retrying) -> Doing<'_, RetryPrompt> {
        Box::pin(async move {
            let words = retrying.options.words.unwrap_or_default();
            Ok(RetryPrompt {
                prompt: format!("fix the tests {words}"),
                original: "fix the tests".to_owned(),
                continues: false,
                model: retrying.options.model,
                timeout_ms: None,
            })
        })
    }

    fn retry(&self, retrying: Retrying) -> Doing<'_, RetryStarted> {
        Box::pin(async move {
            let options = serde_json::to_string(&retrying.options).unwrap();
            self.note(format!("retry {} {options}", retrying.session.as_str()));
            Ok(RetryStarted {
                run: run_of(&retrying.session).as_str().to_owned(),
                session: retrying.session.as_str().to_owned(),
                doing: "it is tried again".to_owned(),
            })
        })
    }

    fn estimate(&self, escalating: Escalating) -> Doing<'_, Estimate> {
        Box::pin(async move {
            let (from, to) = self.models_of(&escalating).await?;
            let cost = Catalog::embedded().difference(&from, &to, USED);
            Ok(Estimate::of(&cost, Some((&from, &to))))
        })
    }

    fn escalate(&self, escalating: Escalating) -> Doing<'_, ModelChange> {
        Box::pin(async move {
            let (from, to) = self.models_of(&escalating).await?;
            let cost = Catalog::embedded().difference(&from, &to, USED);
            let change = EscalationRecord {
                from_model: from,
                to_model: to,
                reason: EscalationReason::Manual,
                timestamp: (self.now)(),
                cost_estimate: cost.usd(),
            };
            let event = ModelEscalated {
                session: Some(escalating.session.clone()),
                change: change.clone(),
            };
            let run = run_of(&escalating.session);
            let append = Append::new(run, (self.now)(), [Event::from(event)]);
            self.store.append(append).await?;
            Ok(change.into())
        })
    }

    fn stop(&self, run: RunId, _: Option<String>) -> Doing<'_, ()> {
        self.note(format!("stop {run}"));
        Box::pin(async { Ok(()) })
    }

    fn texts(&self, run: RunId, attempt: u32) -> Doing<'_, AttemptTexts> {
        Box::pin(async move {
            Ok(AttemptTexts {
                prompt: Some("fix the tests".to_owned()),
                stdout: format!("output of {run}/{attempt}"),
                ..AttemptTexts::default()
            })
        })
    }

    fn policy(&self, of: PolicyOf) -> Doing<'_, PolicyKept> {
        Box::pin(async move {
            let set = policy_set(&self.store, &of).await?;
            Ok(set.unwrap_or_else(|| PolicyKept {
                policy: template("standard").unwrap().clone(),
                origin: PolicyOrigin::BuiltIn,
                version: 0,
            }))
        })
    }

    fn put_policy(&self, change: PolicyChange) -> Doing<'_, PolicyKept> {
        Box::pin(async move {
            set_policy(&self.store, &change, (self.now)()).await?;
            self.policy(change.of).await
        })
    }

    fn policy_templates(&self) -> Doing<'_, Vec<RetryPolicy>> {
        Box::pin(async { Ok(templates().to_vec()) })
    }

    fn agents(&self) -> Doing<'_, Vec<Agent>> {
        Box::pin(async { Ok(Agents::built_in().iter().map(Agent::from).collect()) })
    }

    fn models(&self) -> Doing<'_, Models> {
        Box::pin(async { Ok(Models::from(&Catalog::embedded())) })
    }

    fn budgets(&self) -> Doing<'_, Budgets> {
        let day = Budget {
            id: "day".to_owned(),
            usd: Some(20.0),
            tokens: None,
            spent_usd: Some(0.5),
        };
        Box::pin(async { Ok(Budgets::new(vec![day], 0.5)) })
    }

    fn webhooks(&self) -> Doing<'_, Vec<Webhook>> {
        let one = Webhook {
            id: "escalation-1".to_owned(),
            occasion: "escalation".to_owned(),
            target: "https://hooks.example/".to_owned(),
            format: "json".to_owned(),
        };
        Box::pin(async { Ok(vec![one]) })
    }

    fn test_webhook(&self, id: &str) -> Doing<'_, WebhookTested> {
        let id = id.to_owned();
        Box::pin(async move {
            if id != "escalation-1" {
                return Err(DeedError::NotFound(format!("there is no webhook {id}")));
            }
            self.note(format!("webhook {id}"));
            Ok(WebhookTested {
                arrived: true,
                said: "204".to_owned(),
                took_ms: 3,
            })
        })
    }

    fn lanes(&self) -> Doing<'_, Vec<Lane>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}
