//! Who is told what happens, as the configuration says, and the courier who tells them while a run is driven.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use unstuck_config::section::{Webhook, WebhookFormat};
use unstuck_core::episode::RunFold;
use unstuck_core::{Event, Timestamp};
use unstuck_notify::{Address, Courier, Format, Hook, Hooks, Occasion, Sender, Target};
use unstuck_run::drive::Announcer;
use unstuck_store::{Outgoing, Store};

use crate::config::{self, Config};
use crate::session::Session;
use crate::{clock, environment};

/// How long the end of a command waits for messages to arrive; the rest stays in the outbox.
const FLUSH: Duration = Duration::from_secs(3);

/// The programs that show messages on a desktop.
const DESKTOPS: [&str; 2] = ["notify-send", "osascript"];

/// Everyone who is told about something.
pub(crate) struct Notifying(Hooks);

impl Notifying {
    /// Those whom the configuration names; none if it names nobody.
    pub(crate) fn new(config: &Config, session: &Session<'_>) -> Option<Self> {
        let mut list = hooks(config);
        // A desktop that is not there has nothing to be told.
        list.retain(|hook| hook.target != Target::Desktop || has_desktop());
        let option = || session.store_option();
        (!list.is_empty()).then(|| {
            let option = option();
            Self(Hooks { list, option })
        })
    }

    /// Those whom the configuration of another project names.
    pub(crate) fn of_project(project: &str, session: &Session<'_>) -> Option<Self> {
        // What is wrong with it is told where something is run with it.
        let config = config::load_in(Path::new(project), session.sources()).ok()?;
        Self::new(&config, session)
    }
}

impl Announcer for Notifying {
    fn announce(&self, run: &RunFold, events: &[Event], at: Timestamp) -> Vec<Outgoing> {
        self.0.announce(run, events, at)
    }
}

/// Sends with the secrets of this process's environment.
pub(crate) fn sender() -> Sender {
    Sender::new(Arc::new(environment::variable))
}

/// A courier at work.
pub(crate) struct AtWork {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl AtWork {
    /// Sends what is in the outbox from now on.
    pub(crate) fn start(store: &Store) -> Self {
        let courier = Courier::new(store.clone(), sender());
        let (stop, stopped) = watch::channel(false);
        let work = async move { courier.work(|| clock::now().at, stopped).await };
        Self {
            stop,
            task: tokio::spawn(work),
        }
    }

    /// Has the last messages sent, as far as that takes no time to speak of.
    pub(crate) async fn finish(self) {
        let Self { stop, mut task } = self;
        // It listens, unless it has ended.
        let _ = stop.send(true);
        if tokio::time::timeout(FLUSH, &mut task).await.is_err() {
            task.abort();
            let _ = task.await;
        }
    }
}

fn has_desktop() -> bool {
    let mut folders = environment::search_path();
    folders.any(|folder| DESKTOPS.iter().any(|name| folder.join(name).is_file()))
}

/// Everyone whom a configuration names.
pub(crate) fn hooks(config: &Config) -> Vec<Hook> {
    let section = config.webhooks();
    let occasions = [
        Occasion::Escalation,
        Occasion::Resolved,
        Occasion::Recovered,
        Occasion::RunFinished,
    ];
    let mut hooks = Vec::new();
    for (on, (_, list)) in occasions.into_iter().zip(section.lists()) {
        hooks.extend(list.iter().map(|hook| Hook {
            on,
            target: Target::Address(address(hook, section.allow_private)),
            window: hook.digest,
        }));
        let window = Webhook::default().digest;
        if let Some(line) = &section.notify_command {
            let target = Target::Command(line.clone());
            hooks.push(Hook { on, target, window });
        }
        if section.desktop && matches!(on, Occasion::Escalation | Occasion::RunFinished) {
            let target = Target::Desktop;
            hooks.push(Hook { on, target, window });
        }
    }
    hooks
}

fn address(hook: &Webhook, allow_private: bool) -> Address {
    Address {
        url: hook.url.clone(),
        url_env: hook.url_env.clone(),
        format: match hook.format {
            WebhookFormat::Json => Format::Json,
            WebhookFormat::Slack => Format::Slack,
            WebhookFormat::Discord => Format::Discord,
            WebhookFormat::Ntfy => Format::Ntfy,
            WebhookFormat::Text => Format::Text,
            WebhookFormat::Template => Format::Template {
                text: hook.template.clone().unwrap_or_default(),
                content_type: hook.content_type.clone().unwrap_or_else(plain),
            },
        },
        secret_env: hook.secret_env.clone(),
        token_env: hook.token_env.clone(),
        timeout_ms: unstuck_core::duration::in_millis(hook.timeout),
        allow_private,
    }
}

fn plain() -> String {
    "text/plain; charset=utf-8".to_owned()
}
