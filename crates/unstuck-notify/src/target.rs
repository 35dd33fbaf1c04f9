//! Notification targets, as stored in the outbox: without secrets.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A notification target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationTarget {
    /// A network address.
    Address(WebhookTarget),
    /// A command line of the user.
    Command(String),
    /// The desktop of this machine.
    Desktop,
}

/// A webhook address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookTarget {
    /// The URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The environment variable with the URL, if it is secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_env: Option<String>,
    /// The message format.
    #[serde(default)]
    pub format: NotificationFormat,
    /// The environment variable with the signing secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_env: Option<String>,
    /// The environment variable with a bearer token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// The timeout of one attempt, in milliseconds.
    pub timeout_ms: u64,
    /// True if private and local addresses are allowed.
    #[serde(default)]
    pub allow_private: bool,
}

impl WebhookTarget {
    /// Returns an address that receives unsigned JSON.
    pub fn unsigned_json(url: impl Into<String>) -> Self {
        Self {
            url: Some(url.into()),
            url_env: None,
            format: NotificationFormat::Json,
            secret_env: None,
            token_env: None,
            timeout_ms: 10_000,
            allow_private: false,
        }
    }
}

/// The message format.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotificationFormat {
    /// The message as JSON.
    #[default]
    Json,
    /// A message for Slack and compatible services.
    Slack,
    /// A message for Discord.
    Discord,
    /// A message for ntfy.
    Ntfy,
    /// Plain text.
    Text,
    /// The output of a template.
    Template {
        /// The template.
        text: String,
        /// The content type.
        content_type: String,
    },
}

/// Formats the target for display. The path of a URL may be secret, so only its host is shown.
impl fmt::Display for NotificationTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(_) => f.write_str("notify_command"),
            Self::Desktop => f.write_str("desktop"),
            Self::Address(address) => match (&address.url, &address.url_env) {
                (Some(url), _) => f.write_str(&redacted_url(url)),
                (None, Some(name)) => write!(f, "${name}"),
                (None, None) => f.write_str("no URL"),
            },
        }
    }
}

/// Returns the part of a URL that is not secret: `https://hooks.slack.com/…`.
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
    fn displayed_address_has_no_path() {
        let shown =
            |url: &str| NotificationTarget::Address(WebhookTarget::unsigned_json(url)).to_string();
        let slack = "https://hooks.slack.com/services/T0/B0/XXXX";
        assert_eq!(shown(slack), "https://hooks.slack.com/…");
        assert_eq!(shown("http://localhost:8080/"), "http://localhost:8080/");
        assert_eq!(shown("https://a.example?key=1"), "https://a.example/…");
    }

    #[test]
    fn target_round_trips_through_storage() {
        let address = NotificationTarget::Address(WebhookTarget {
            format: NotificationFormat::Template {
                text: "{{ title }}".into(),
                content_type: "text/plain".into(),
            },
            secret_env: Some("HOOK_SECRET".into()),
            ..WebhookTarget::unsigned_json("https://a.example/x")
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
