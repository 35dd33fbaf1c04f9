//! `unstuck webhook`: tests and manages notification delivery.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use unstuck_core::Timestamp;
use unstuck_core::command_policy::sanitize;

use unstuck_notify::{
    DeliveryWorker, NotificationEvent, NotificationMessage, NotificationSubscription,
    NotificationTarget, WebhookTarget,
};
use unstuck_store::{DeliveryResult, DeliveryState, OutboxFilter, OutboxMessage};

use crate::command_context::CommandContext;
use crate::config::Config;
use crate::error_report::error_with_hint;
use crate::output::{BOLD, DIM, GREEN, Output, RED};
use crate::{async_runtime, clock, environment_variables, notifications};

/// Maximum number of listed messages.
const MAX_LISTED: usize = 50;

/// Test and manage notification delivery
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck webhook test
  unstuck webhook test --on escalation
  unstuck webhook test --url https://ntfy.sh/my-topic
  unstuck webhook list
  unstuck webhook flush")]
pub(crate) struct WebhookArgs {
    #[command(subcommand)]
    command: WebhookCommand,
}

#[derive(Debug, Subcommand)]
enum WebhookCommand {
    Test(TestArgs),
    List(ListArgs),
    Flush(FlushArgs),
}

/// Send a test notification to every configured target
///
/// unstuck does not store or retry the notification.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck webhook test
  unstuck webhook test --on run_finished
  unstuck webhook test --url http://localhost:8080/hook

Exit codes: 0 all delivered; 1 some failed.")]
struct TestArgs {
    /// Only targets that are notified about this event
    #[arg(long, value_enum, value_name = "EVENT")]
    on: Option<EventChoice>,

    /// Send JSON to this URL instead of the configured targets
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

/// List pending and failed messages, newest first
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck webhook list
  unstuck webhook list --all
  unstuck webhook list --json | jq -r '.[] | .id + \" \" + .last_error'")]
struct ListArgs {
    /// Include delivered messages
    #[arg(long)]
    all: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Send the pending messages now
///
/// unstuck sends messages while a run is active. Unsent messages wait for the next run or for this command, which
/// also retries scheduled messages immediately.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck webhook flush
  */5 * * * * unstuck webhook flush     (in a crontab)

Exit codes: 0 all delivered; 1 some failed.")]
struct FlushArgs {}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum EventChoice {
    /// A run needs human input
    Escalation,
    /// A request was resolved
    Resolved,
    /// A run recovered from a failure
    Recovered,
    /// A run ended
    RunFinished,
}

impl From<EventChoice> for NotificationEvent {
    fn from(on: EventChoice) -> Self {
        match on {
            EventChoice::Escalation => Self::Escalation,
            EventChoice::Resolved => Self::Resolved,
            EventChoice::Recovered => Self::Recovered,
            EventChoice::RunFinished => Self::RunFinished,
        }
    }
}

impl WebhookArgs {
    /// True if messages are sent, not only listed.
    pub(crate) fn sends_messages(&self) -> bool {
        match self.command {
            WebhookCommand::Test(_) | WebhookCommand::Flush(_) => true,
            WebhookCommand::List(_) => false,
        }
    }
}

pub(crate) fn run(
    args: &WebhookArgs,
    config: &Config,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    match &args.command {
        WebhookCommand::Test(args) => test(args, config, out),
        WebhookCommand::List(args) => list(args, session, out).map(|()| ExitCode::SUCCESS),
        WebhookCommand::Flush(_) => flush(session, out),
    }
}

fn test(args: &TestArgs, config: &Config, out: &mut Output) -> Result<ExitCode> {
    let mut hooks = match &args.url {
        Some(url) => vec![hook_for_url(url, args.on, config)],
        None => notifications::hooks(config),
    };
    let wanted = args.on.map(NotificationEvent::from);
    hooks.retain(|hook| wanted.is_none_or(|wanted| hook.event == wanted));
    if hooks.is_empty() {
        return Err(error_with_hint(
            "no notification targets configured",
            "add on_escalation = \"https://…\" to [webhooks], or test one with --url",
        ));
    }
    let mut all_arrived = true;
    for hook in hooks {
        let now = clock::now().at;
        let message = NotificationMessage::sample(hook.event, now);
        let sent = async_runtime::block_on(async {
            Ok(notifications::sender()
                .send(&hook.target, &message, now)
                .await)
        })?;
        let on = hook.event;
        let target = sanitize(&hook.target.to_string());
        let said = match sent {
            Ok(answer) => {
                writeln!(
                    out,
                    "{GREEN}ok{GREEN:#}      {on:<12} {target}  {}",
                    answer.status
                )?;
                String::new()
            }
            Err(error) => {
                all_arrived = false;
                writeln!(
                    out,
                    "{RED}failed{RED:#}  {on:<12} {target}  {}",
                    sanitize(&error.reason)
                )?;
                error.excerpt
            }
        };
        if !said.is_empty() {
            writeln!(out, "        {DIM}response: {}{DIM:#}", sanitize(&said))?;
        }
    }
    Ok(delivery_exit_code(all_arrived))
}

/// Builds a subscription for a URL from the command line, which may reach private networks.
fn hook_for_url(url: &str, on: Option<EventChoice>, config: &Config) -> NotificationSubscription {
    let configured = notifications::hooks(config).into_iter();
    let mut same = configured.filter_map(|hook| match hook.target {
        NotificationTarget::Address(address) if address.url.as_deref() == Some(url) => {
            Some(address)
        }
        _ => None,
    });
    let address = same
        .next()
        .unwrap_or_else(|| WebhookTarget::unsigned_json(url));
    NotificationSubscription {
        event: on.map_or(NotificationEvent::Escalation, NotificationEvent::from),
        target: NotificationTarget::Address(WebhookTarget {
            allow_private: true,
            ..address
        }),
        window: std::time::Duration::ZERO,
    }
}

fn list(args: &ListArgs, session: &CommandContext<'_>, out: &mut Output) -> Result<()> {
    let filter = OutboxFilter {
        state: if args.all {
            Vec::new()
        } else {
            vec![DeliveryState::Waiting, DeliveryState::GivenUp]
        },
        limit: (!args.json).then_some(MAX_LISTED),
        ..OutboxFilter::default()
    };
    let letters = async_runtime::block_on(async {
        let Some(store) = crate::store::open_existing(session.store).await? else {
            return Ok(Vec::new());
        };
        let letters = store
            .outbox_messages(&filter)
            .await
            .map_err(crate::store::with_hint);
        store.close().await?;
        letters
    })?;
    if args.json {
        let lines: Vec<_> = letters.iter().map(as_json).collect();
        return Ok(writeln!(out, "{}", serde_json::to_string_pretty(&lines)?)?);
    }
    if letters.is_empty() {
        return Ok(writeln!(out, "no pending or failed notifications")?);
    }
    let now = clock::now().at;
    for letter in &letters {
        print(letter, now, out)?;
    }
    Ok(())
}

fn print(letter: &OutboxMessage, now: Timestamp, out: &mut Output) -> Result<()> {
    let title = letter.body["title"].as_str().unwrap_or_default();
    let state = match letter.state {
        DeliveryState::Waiting if letter.due <= now => "due now".to_owned(),
        DeliveryState::Waiting => format!("pending until {}", clock::format_time(letter.due)),
        DeliveryState::Delivered => "delivered".to_owned(),
        DeliveryState::GivenUp => "failed permanently".to_owned(),
    };
    writeln!(
        out,
        "{BOLD}{}{BOLD:#}  {}  {state}",
        letter.id,
        target(letter)
    )?;
    writeln!(
        out,
        "  {}  {DIM}{}{DIM:#}",
        sanitize(title),
        clock::format_age(letter.created, now)
    )?;
    if let Some(error) = &letter.last_error {
        let tries = match letter.attempts {
            1 => "1 attempt".to_owned(),
            n => format!("{n} attempts"),
        };
        writeln!(out, "  {tries}: {}", sanitize(error))?;
    }
    Ok(())
}

/// Renders a message as JSON, without the secrets of its target.
fn as_json(letter: &OutboxMessage) -> serde_json::Value {
    let mut value = serde_json::to_value(letter).unwrap_or_default();
    value["target"] = target(letter).into();
    value
}

fn target(letter: &OutboxMessage) -> String {
    let target = serde_json::from_value::<NotificationTarget>(letter.target.clone());
    let target = target.map(|target| target.to_string());
    sanitize(&target.unwrap_or_else(|_| "?".to_owned()))
}

fn flush(session: &CommandContext<'_>, out: &mut Output) -> Result<ExitCode> {
    let sent = async_runtime::block_on(async {
        if !session.store.path().try_exists().unwrap_or(true) {
            return Ok(Vec::new());
        }
        let redactor = std::sync::Arc::new(environment_variables::redactor());
        let store = crate::store::open(session.store, redactor).await?;
        let courier = DeliveryWorker::new(store.clone(), notifications::sender());
        let sent = courier.deliver_all(clock::now().at).await;
        store.close().await?;
        sent.map_err(crate::store::with_hint)
    })?;
    if sent.is_empty() {
        writeln!(out, "no pending messages")?;
    }
    let mut all_arrived = true;
    for delivery in sent {
        let target = sanitize(&delivery.target);
        match delivery.result {
            DeliveryResult::Delivered => {
                writeln!(out, "{GREEN}ok{GREEN:#}      {}  {target}", delivery.id)?
            }
            DeliveryResult::Failed { error, next } => {
                all_arrived = false;
                let then = match next {
                    Some(next) => format!("retrying after {}", clock::format_time(next)),
                    None => "gave up".to_owned(),
                };
                let error = sanitize(&error);
                let id = delivery.id;
                writeln!(out, "{RED}failed{RED:#}  {id}  {target}  {error}; {then}")?;
            }
        }
    }
    Ok(delivery_exit_code(all_arrived))
}

fn delivery_exit_code(all_arrived: bool) -> ExitCode {
    if all_arrived {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    }
}
