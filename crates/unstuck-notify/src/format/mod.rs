//! Renders notification messages in the formats of their receivers.

mod chat;
mod template;

pub use template::{TemplateError, check_template};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::event::NotificationEvent;
use crate::message::NotificationMessage;
use crate::sanitize_text::truncate;
use crate::target::NotificationFormat;

const PLAIN: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// A message that is ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedMessage {
    /// The text.
    pub body: String,
    /// The content type.
    pub content_type: String,
    /// Additional headers.
    pub headers: Vec<(&'static str, String)>,
}

impl RenderedMessage {
    fn new(content_type: &str, body: String) -> Self {
        Self {
            body,
            content_type: content_type.to_owned(),
            headers: Vec::new(),
        }
    }
}

/// Renders a message in a format.
pub fn render(
    format: &NotificationFormat,
    message: &NotificationMessage,
) -> Result<RenderedMessage, TemplateError> {
    Ok(match format {
        NotificationFormat::Json => RenderedMessage::new(JSON, json(message)),
        NotificationFormat::Slack => RenderedMessage::new(JSON, chat::slack(message)),
        NotificationFormat::Discord => RenderedMessage::new(JSON, chat::discord(message)),
        NotificationFormat::Ntfy => ntfy(message),
        NotificationFormat::Text => {
            let text = format!("{}\n\n{}\n", message.title, message.body());
            RenderedMessage::new(PLAIN, text)
        }
        NotificationFormat::Template { text, content_type } => {
            RenderedMessage::new(content_type, template::fill_template(text, message)?)
        }
    })
}

/// Returns the message as JSON.
pub(crate) fn json(message: &NotificationMessage) -> String {
    serde_json::to_string(message).unwrap_or_default()
}

/// Returns a message for ntfy: the text as body, the rest in headers. ntfy turns a body over 4 kB into a file.
fn ntfy(message: &NotificationMessage) -> RenderedMessage {
    let (priority, tag) = match message.event {
        NotificationEvent::Escalation => ("high", "raised_hand"),
        NotificationEvent::Resolved | NotificationEvent::Recovered => ("low", "white_check_mark"),
        NotificationEvent::RunFinished => ("default", "checkered_flag"),
    };
    let mut rendered = RenderedMessage::new(PLAIN, truncate(&message.body(), 1200));
    rendered.headers = vec![
        ("title", header_value(&message.title)),
        ("priority", priority.to_owned()),
        ("tags", tag.to_owned()),
    ];
    rendered
}

/// Returns a text that is valid in a header.
fn header_value(text: &str) -> String {
    if text.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
        text.to_owned()
    } else {
        format!("=?UTF-8?B?{}?=", STANDARD.encode(text))
    }
}
