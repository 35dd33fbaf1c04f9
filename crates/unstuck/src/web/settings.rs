//! What is configured: agents, models and prices, budgets, and who is told.

use anyhow::Result;
use unstuck_core::Timestamp;
use unstuck_notify::{Format, Hook, Message, Occasion, Target};
use unstuck_store::{SpendingQuery, SpentBy};
use unstuck_web::deeds::DeedError;
use unstuck_web::model::{Agent, Budget, Budgets, Models, Webhook, WebhookTested};

use super::Doer;
use crate::config::{self, Config};
use crate::installed::{self, Installed, Version};
use crate::notifying;
use crate::{clock, runtime};

const DAY_MS: i64 = 86_400_000;

impl super::Desk {
    /// What the server itself was started with: its folder counts as a project of its own.
    fn configured(&self) -> Result<Config> {
        config::load(self.session().sources())
    }
}

/// The agents, and what is installed of them; that is looked up once.
pub(super) async fn agents(doer: &Doer) -> Result<Vec<Agent>, DeedError> {
    let look = || {
        doer.beside(|desk| {
            let config = desk.configured()?;
            let all: Vec<_> = config.agents().iter().collect();
            let calls = all.iter().map(|agent| &agent.file().call).collect();
            let found = runtime::block_on(installed::all(calls))?;
            let told = all.into_iter().zip(found);
            Ok(told
                .map(|(agent, found)| with(agent.into(), found))
                .collect())
        })
    };
    let found: Result<&Vec<Agent>, DeedError> = doer.0.agents.get_or_try_init(look).await;
    Ok(found?.clone())
}

fn with(agent: Agent, found: Option<Installed>) -> Agent {
    match found {
        None => agent,
        Some(Installed::No) => Agent {
            installed: Some(false),
            ..agent
        },
        Some(Installed::At { path, version, .. }) => Agent {
            installed: Some(true),
            path: Some(path.display().to_string()),
            version: match version {
                Version::Told(version) => Some(version),
                Version::Unknown(_) => None,
            },
            ..agent
        },
    }
}

/// The models and their prices.
pub(super) async fn models(doer: &Doer) -> Result<Models, DeedError> {
    doer.beside(|desk| Ok(Models::from(desk.configured()?.catalog())))
        .await
}

/// What may be spent, and what was spent today.
pub(super) async fn budgets(doer: &Doer) -> Result<Budgets, DeedError> {
    let now = clock::now().at.millis();
    let query = SpendingQuery {
        by: SpentBy::Day,
        since: Some(Timestamp::from_millis(now - now.rem_euclid(DAY_MS))),
        ..SpendingQuery::default()
    };
    let days = doer.0.store.spending(&query).await?;
    // The sum of nothing would be told as -0.
    let today = days.iter().fold(0.0, |sum, day| sum + day.cost_usd);
    doer.beside(move |desk| {
        let config = desk.configured()?;
        let (runs, gateway) = (config.budget(), config.gateway().budgets);
        let limit = |id: &str, usd, tokens, spent_usd| Budget {
            id: id.to_owned(),
            usd,
            tokens,
            spent_usd,
        };
        let (run, day) = (&runs.per_run, &runs.per_day);
        let all = vec![
            limit("run", run.usd, run.tokens, None),
            limit("day", day.usd, day.tokens, Some(today)),
            limit("session", gateway.session, None, None),
            limit("gateway_day", gateway.day, None, Some(today)),
        ];
        Ok(Budgets::new(all, today))
    })
    .await
}

/// Who is told when something happens.
pub(super) async fn webhooks(doer: &Doer) -> Result<Vec<Webhook>, DeedError> {
    doer.beside(|desk| {
        let hooks = named(notifying::hooks(&desk.configured()?));
        Ok(hooks
            .into_iter()
            .map(|(id, hook)| shown(id, &hook))
            .collect())
    })
    .await
}

/// Sends a sample to one of them.
pub(super) async fn test_webhook(doer: &Doer, id: String) -> Result<WebhookTested, DeedError> {
    doer.0.only_for_people()?;
    let hooks = doer
        .beside(|desk| Ok(named(notifying::hooks(&desk.configured()?))))
        .await?;
    let found = hooks.into_iter().find(|(own, _)| *own == id);
    let (_, hook) = found.ok_or_else(|| {
        DeedError::NotFound(format!(
            "there is no webhook {id}; GET /api/webhooks lists them"
        ))
    })?;
    let begun = clock::now().at;
    let message = Message::sample(hook.on, begun);
    let sent = notifying::sender()
        .send(&hook.target, &message, begun)
        .await;
    let took = clock::now().at.since(begun);
    Ok(WebhookTested {
        arrived: sent.is_ok(),
        said: match sent {
            Ok(answer) => answer.status.to_string(),
            Err(error) if error.said.is_empty() => error.why,
            Err(error) => format!("{}: {}", error.why, error.said),
        },
        took_ms: unstuck_core::duration::in_millis(took),
    })
}

/// Each with an id: what it is told about, and its place among those.
fn named(hooks: Vec<Hook>) -> Vec<(String, Hook)> {
    let mut named: Vec<(String, Hook)> = Vec::new();
    for hook in hooks {
        let before = named.iter().filter(|(_, one)| one.on == hook.on).count();
        named.push((format!("{}-{}", word(hook.on), before + 1), hook));
    }
    named
}

const fn word(on: Occasion) -> &'static str {
    match on {
        Occasion::Escalation => "escalation",
        Occasion::Resolved => "resolved",
        Occasion::Recovered => "recovered",
        Occasion::RunFinished => "run_finished",
    }
}

fn shown(id: String, hook: &Hook) -> Webhook {
    let format = match &hook.target {
        Target::Command(_) => "command",
        Target::Desktop => "desktop",
        Target::Address(address) => match address.format {
            Format::Json => "json",
            Format::Slack => "slack",
            Format::Discord => "discord",
            Format::Ntfy => "ntfy",
            Format::Text => "text",
            Format::Template { .. } => "template",
        },
    };
    Webhook {
        id,
        occasion: word(hook.on).to_owned(),
        target: hook.target.to_string(),
        format: format.to_owned(),
    }
}
