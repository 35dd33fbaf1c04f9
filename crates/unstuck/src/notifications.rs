//! Notification targets from the configuration, and delivery while a run is active.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use unstuck_config::section::{Webhook, WebhookFormat};
use unstuck_core::views::RunProjection;
use unstuck_core::{Event, Timestamp};
use unstuck_notify::{
    DeliveryWorker, MessageSender, NotificationEvent, NotificationFormat, NotificationSubscription,
    NotificationSubscriptions, NotificationTarget, WebhookTarget,
};
use unstuck_run::runner::NotificationBuilder;
use unstuck_store::{NewOutboxMessage, Store};

use crate::command_context::CommandContext;
use crate::config::Config;
use crate::{clock, environment_variables};

/// Time limit for delivery at the end of a command; the rest stays in the outbox.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// Programs that show desktop notifications.
const DESKTOP_PROGRAMS: [&str; 2] = ["notify-send", "osascript"];

/// Notifies all configured targets.
pub(crate) struct ConfiguredNotifier(NotificationSubscriptions);

impl ConfiguredNotifier {
    /// Creates a notifier for the configured targets; none without targets.
    pub(crate) fn new(config: &Config, session: &CommandContext<'_>) -> Option<Self> {
        let mut list = hooks(config);
        // Without a desktop, its targets are skipped.
        list.retain(|hook| hook.target != NotificationTarget::Desktop || has_desktop());
        let option = || session.store_option();
        (!list.is_empty()).then(|| {
            let option = option();
            Self(NotificationSubscriptions {
                list,
                store_option: option,
            })
        })
    }
}

impl NotificationBuilder for ConfiguredNotifier {
    fn notifications_for(
        &self,
        run: &RunProjection,
        events: &[Event],
        at: Timestamp,
    ) -> Vec<NewOutboxMessage> {
        self.0.build_messages(run, events, at)
    }
}

/// Creates a sender with the secrets of this process's environment.
pub(crate) fn sender() -> MessageSender {
    MessageSender::new(Arc::new(environment_variables::variable))
}

/// The task that delivers notifications while a run is active.
pub(crate) struct NotificationDeliveryTask {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl NotificationDeliveryTask {
    /// Starts to send messages from the outbox.
    pub(crate) fn start(store: &Store) -> Self {
        let courier = DeliveryWorker::new(store.clone(), sender());
        let (stop, stopped) = watch::channel(false);
        let work = async move { courier.run(|| clock::now().at, stopped).await };
        Self {
            stop,
            task: tokio::spawn(work),
        }
    }

    /// Sends the last messages within a short time limit, then stops.
    pub(crate) async fn flush_and_stop(self) {
        let Self { stop, mut task } = self;
        // The task listens unless it has ended.
        let _ = stop.send(true);
        if tokio::time::timeout(FLUSH_TIMEOUT, &mut task)
            .await
            .is_err()
        {
            task.abort();
            let _ = task.await;
        }
    }
}

fn has_desktop() -> bool {
    let mut folders = environment_variables::search_path();
    folders.any(|folder| {
        DESKTOP_PROGRAMS
            .iter()
            .any(|name| folder.join(name).is_file())
    })
}

/// Returns all configured targets.
pub(crate) fn hooks(config: &Config) -> Vec<NotificationSubscription> {
    let section = config.webhooks();
    let occasions = [
        NotificationEvent::Escalation,
        NotificationEvent::Resolved,
        NotificationEvent::Recovered,
        NotificationEvent::RunFinished,
    ];
    let mut hooks = Vec::new();
    for (on, (_, list)) in occasions.into_iter().zip(section.lists()) {
        hooks.extend(list.iter().map(|hook| NotificationSubscription {
            event: on,
            target: NotificationTarget::Address(address(hook, section.allow_private)),
            window: hook.digest,
        }));
        let window = Webhook::default().digest;
        if let Some(line) = &section.notify_command {
            let target = NotificationTarget::Command(line.clone());
            hooks.push(NotificationSubscription {
                event: on,
                target,
                window,
            });
        }
        if section.desktop
            && matches!(
                on,
                NotificationEvent::Escalation | NotificationEvent::RunFinished
            )
        {
            let target = NotificationTarget::Desktop;
            hooks.push(NotificationSubscription {
                event: on,
                target,
                window,
            });
        }
    }
    hooks
}

fn address(hook: &Webhook, allow_private: bool) -> WebhookTarget {
    WebhookTarget {
        url: hook.url.clone(),
        url_env: hook.url_env.clone(),
        format: match hook.format {
            WebhookFormat::Json => NotificationFormat::Json,
            WebhookFormat::Slack => NotificationFormat::Slack,
            WebhookFormat::Discord => NotificationFormat::Discord,
            WebhookFormat::Ntfy => NotificationFormat::Ntfy,
            WebhookFormat::Text => NotificationFormat::Text,
            WebhookFormat::Template => NotificationFormat::Template {
                text: hook.template.clone().unwrap_or_default(),
                content_type: hook.content_type.clone().unwrap_or_else(plain_content_type),
            },
        },
        secret_env: hook.secret_env.clone(),
        token_env: hook.token_env.clone(),
        timeout_ms: unstuck_core::duration::to_millis(hook.timeout),
        allow_private,
    }
}

fn plain_content_type() -> String {
    "text/plain; charset=utf-8".to_owned()
}
