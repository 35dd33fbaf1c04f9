//! Where messages go, as it is kept in the outbox: without secrets.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where messages go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationTarget {
    /// An address on the network.
    Address(WebhookAddress),
    /// A command line of the user's own.
    Command(String),
    /// The desktop of this machine.
    Desktop,
}

/// An address on the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookAddress {
    /// Where to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The environment variable that holds the address, where the address itself is secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_env: Option<String>,
    /// How the message is written.
    #[serde(default)]
    pub format: MessageFormat,
    /// The environment variable that holds the secrets by which messages are signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_env: Option<String>,
    /// The environment variable that holds a token to be sent along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// How long one try may take, in milliseconds.
    pub timeout_ms: u64,
    /// Whether it may be in a private network or on this machine.
    #[serde(default)]
    pub allow_private: bool,
}

impl WebhookAddress {
    /// An address that gets JSON, unsigned.
    pub fn unsigned_json(url: impl Into<String>) -> Self {
        Self {
            url: Some(url.into()),
            url_env: None,
            format: MessageFormat::Json,
            secret_env: None,
            token_env: None,
            timeout_ms: 10_000,
            allow_private: false,
        }
    }
}

/// How a message is written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageFormat {
    /// The message as JSON.
    #[default]
    Json,
    /// A message for Slack, and what understands the same.
    Slack,
    /// A message for Discord.
    Discord,
    /// A message for ntfy.
    Ntfy,
    /// Plain text.
    Text,
    /// What a template makes of it.
    Template {
        /// The template.
        text: String,
        /// What its text is.
        content_type: String,
    },
}

/// Names it for people. The path of an address can be a secret, so only its host is shown.
impl fmt::Display for NotificationTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(_) => f.write_str("notify_command"),
            Self::Desktop => f.write_str("desktop"),
            Self::Address(address) => match (&address.url, &address.url_env) {
                (Some(url), _) => f.write_str(&redacted_url(url)),
                (None, Some(name)) => write!(f, "${name}"),
                (None, None) => f.write_str("nowhere"),
            },
        }
    }
}

/// An address as far as it is no secret: `https://hooks.slack.com/…`.
fn redacted_url(url: &str) -> String {
    let host = url.find("://").map_or(0, |at| at + 3);
    match url[host..].find(['/', '?', '#']) {
        Some(end) if url[host + end..].len() > 1 => format!("{}/…", &url[..host + end]),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_path() {
        let shown =
            |url: &str| NotificationTarget::Address(WebhookAddress::unsigned_json(url)).to_string();
        let slack = "https://hooks.slack.com/services/T0/B0/XXXX";
        assert_eq!(shown(slack), "https://hooks.slack.com/…");
        assert_eq!(shown("http://localhost:8080/"), "http://localhost:8080/");
        assert_eq!(shown("https://a.example?key=1"), "https://a.example/…");
    }

    #[test]
    fn a_target_is_read_back_as_it_was_kept() {
        let address = NotificationTarget::Address(WebhookAddress {
            format: MessageFormat::Template {
                text: "{{ title }}".into(),
                content_type: "text/plain".into(),
            },
            secret_env: Some("HOOK_SECRET".into()),
            ..WebhookAddress::unsigned_json("https://a.example/x")
        });
        for target in [
            address,
            NotificationTarget::Command("tell me".into()),
            NotificationTarget::Desktop,
        ] {
            let kept = serde_json::to_value(&target).unwrap();
            assert_eq!(
                serde_json::from_value::<NotificationTarget>(kept).unwrap(),
                target
            );
        }
    }
}
