//! Configured agents, models and prices, budgets, and notification targets.

use anyhow::Result;
use unstuck_notify::{
    NotificationEvent, NotificationFormat, NotificationMessage, NotificationSubscription,
    NotificationTarget,
};
use unstuck_store::{CostGroupBy, SpendingQuery};
use unstuck_web::commands::WebCommandError;
use unstuck_web::model::{Agent, BudgetResponse, Budgets, Models, Webhook, WebhookTestResult};

use super::Doer;
use crate::agent_installation::{self, AgentInstallation, AgentVersion};
use crate::config::{self, Config};
use crate::notifications;
use crate::{async_runtime, clock};

impl super::Desk {
    /// Configuration of the server itself; its directory is treated as a project.
    fn server_config(&self) -> Result<Config> {
        config::load(self.session().sources())
    }
}

/// Returns the agents and their installation, which is looked up once.
pub(super) async fn agents(doer: &Doer) -> Result<Vec<Agent>, WebCommandError> {
    let look = || {
        doer.run_blocking(|desk| {
            let config = desk.server_config()?;
            let all: Vec<_> = config.agents().iter().collect();
            let calls = all.iter().map(|agent| &agent.file().call).collect();
            let found = async_runtime::block_on(agent_installation::find_installations(calls))?;
            let told = all.into_iter().zip(found);
            Ok(told
                .map(|(agent, found)| with_installation(agent.into(), found))
                .collect())
        })
    };
    let found: Result<&Vec<Agent>, WebCommandError> = doer.0.agents.get_or_try_init(look).await;
    Ok(found?.clone())
}

fn with_installation(agent: Agent, found: Option<AgentInstallation>) -> Agent {
    match found {
        None => agent,
        Some(AgentInstallation::Missing) => Agent {
            installed: Some(false),
            ..agent
        },
        Some(AgentInstallation::Found { path, version, .. }) => Agent {
            installed: Some(true),
            path: Some(path.display().to_string()),
            version: match version {
                AgentVersion::Known(version) => Some(version),
                AgentVersion::Unknown(_) => None,
            },
            ..agent
        },
    }
}

/// Returns the models and their prices.
pub(super) async fn models(doer: &Doer) -> Result<Models, WebCommandError> {
    doer.run_blocking(|desk| Ok(Models::from(desk.server_config()?.catalog())))
        .await
}

/// Returns the budgets and today's spending.
pub(super) async fn budgets(doer: &Doer) -> Result<Budgets, WebCommandError> {
    let query = SpendingQuery {
        group_by: CostGroupBy::Day,
        since: Some(clock::now().at.start_of_day()),
        ..SpendingQuery::default()
    };
    let days = doer.0.store.spending(&query).await?;
    // An empty float sum would be rendered as -0.
    let today = days.iter().fold(0.0, |sum, day| sum + day.cost_usd);
    doer.run_blocking(move |desk| {
        let config = desk.server_config()?;
        let (runs, gateway) = (config.budget(), config.gateway().budgets);
        let limit = |id: &str, usd, tokens, spent_usd| BudgetResponse {
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

/// Returns the notification targets.
pub(super) async fn webhooks(doer: &Doer) -> Result<Vec<Webhook>, WebCommandError> {
    doer.run_blocking(|desk| {
        let hooks = hooks_with_ids(notifications::hooks(&desk.server_config()?));
        Ok(hooks
            .into_iter()
            .map(|(id, hook)| webhook_response(id, &hook))
            .collect())
    })
    .await
}

/// Sends a test notification to one target.
pub(super) async fn test_webhook(
    doer: &Doer,
    id: String,
) -> Result<WebhookTestResult, WebCommandError> {
    doer.0.refuse_agents()?;
    let hooks = doer
        .run_blocking(|desk| Ok(hooks_with_ids(notifications::hooks(&desk.server_config()?))))
        .await?;
    let found = hooks.into_iter().find(|(own, _)| *own == id);
    let (_, hook) = found.ok_or_else(|| {
        WebCommandError::NotFound(format!(
            "webhook {id} not found; GET /api/webhooks lists webhooks"
        ))
    })?;
    let begun = clock::now().at;
    let message = NotificationMessage::sample(hook.event, begun);
    let sent = notifications::sender()
        .send(&hook.target, &message, begun)
        .await;
    let took = clock::now().at.since(begun);
    Ok(WebhookTestResult {
        delivered: sent.is_ok(),
        response: match sent {
            Ok(answer) => answer.status.to_string(),
            Err(error) if error.excerpt.is_empty() => error.reason,
            Err(error) => format!("{}: {}", error.reason, error.excerpt),
        },
        took_ms: unstuck_core::duration::to_millis(took),
    })
}

/// Assigns each target an id: its event and its index among those of the event.
fn hooks_with_ids(hooks: Vec<NotificationSubscription>) -> Vec<(String, NotificationSubscription)> {
    let mut named: Vec<(String, NotificationSubscription)> = Vec::new();
    for hook in hooks {
        let before = named
            .iter()
            .filter(|(_, one)| one.event == hook.event)
            .count();
        named.push((format!("{}-{}", event_name(hook.event), before + 1), hook));
    }
    named
}

const fn event_name(on: NotificationEvent) -> &'static str {
    match on {
        NotificationEvent::Escalation => "escalation",
        NotificationEvent::Resolved => "resolved",
        NotificationEvent::Recovered => "recovered",
        NotificationEvent::RunFinished => "run_finished",
    }
}

fn webhook_response(id: String, hook: &NotificationSubscription) -> Webhook {
    let format = match &hook.target {
        NotificationTarget::Command(_) => "command",
        NotificationTarget::Desktop => "desktop",
        NotificationTarget::Address(address) => match address.format {
            NotificationFormat::Json => "json",
            NotificationFormat::Slack => "slack",
            NotificationFormat::Discord => "discord",
            NotificationFormat::Ntfy => "ntfy",
            NotificationFormat::Text => "text",
            NotificationFormat::Template { .. } => "template",
        },
    };
    Webhook {
        id,
        event: event_name(hook.event).to_owned(),
        target: hook.target.to_string(),
        format: format.to_owned(),
    }
}
