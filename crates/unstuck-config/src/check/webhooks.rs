//! Checks of webhook targets.

use std::time::Duration;

use super::ConfigChecker;
use crate::section::{Webhook, WebhookFormat};

/// The maximum delivery timeout; another process would repeat a longer attempt.
const MAX_TIMEOUT: Duration = Duration::from_secs(45);

impl ConfigChecker<'_> {
    pub(super) fn check_webhooks(&mut self) {
        for (name, list) in self.config.webhooks().lists() {
            for (at, hook) in list.iter().enumerate() {
                let place = format!("webhooks.{name}.{}", at + 1);
                self.check_address(&place, hook);
                self.check_message(&place, hook);
            }
        }
        let command = self.config.webhooks().notify_command.as_deref();
        if command.is_some_and(|command| command.trim().is_empty()) {
            self.report("webhooks.notify_command", "must not be empty");
        }
    }

    fn check_address(&mut self, place: &str, hook: &Webhook) {
        let is_unread = |key: &str| self.config.is_unreadable(&format!("{place}.{key}"));
        match (&hook.url, &hook.url_env) {
            _ if is_unread("url") || is_unread("url_env") => {}
            (Some(_), Some(_)) => self.report(place, "has both `url` and `url_env`; keep only one"),
            (None, None) => self.report(place, "needs a `url` or a `url_env`"),
            (Some(url), None) => {
                if let Some(why) = url_problem(url) {
                    self.report(&format!("{place}.url"), why);
                }
            }
            (None, Some(_)) => {}
        }
        let names = [
            ("url_env", &hook.url_env),
            ("secret_env", &hook.secret_env),
            ("token_env", &hook.token_env),
        ];
        for (key, name) in names {
            if name.as_deref().is_some_and(|name| !is_variable_name(name)) {
                // The value may be the secret itself: do not repeat it.
                let told = "must be the name of an environment variable, such as HOOK_SECRET, not the value itself";
                self.report(&format!("{place}.{key}"), told);
            }
        }
    }

    fn check_message(&mut self, place: &str, hook: &Webhook) {
        if hook.timeout.is_zero() || hook.timeout > MAX_TIMEOUT {
            self.report(
                &format!("{place}.timeout"),
                "must be greater than 0 and at most 45 seconds",
            );
        }
        let is_template = hook.format == WebhookFormat::Template;
        if is_template && hook.template.is_none() {
            self.report(place, "needs a `template` for the message");
        }
        if !is_template && hook.template.is_some() {
            let told = "requires `format = \"template\"`";
            self.report(&format!("{place}.template"), told);
        }
        if !is_template && hook.content_type.is_some() {
            let told = "requires `format = \"template\"`";
            self.report(&format!("{place}.content_type"), told);
        }
    }
}

/// Returns the problem with a webhook URL.
fn url_problem(url: &str) -> Option<&'static str> {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest else {
        return Some("must begin with https:// or http://");
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        return Some(
            "must not contain a password; put the whole URL in an environment variable and set `url_env` to its name",
        );
    }
    let plain = |c: char| c.is_ascii_graphic();
    (host.is_empty() || !url.chars().all(plain)).then_some("invalid URL")
}

pub(super) fn is_variable_name(name: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && name.chars().all(is_name) && !name.starts_with("whsec_")
}
