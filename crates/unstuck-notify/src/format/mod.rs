//! A message as its readers understand it.

mod chat;
mod template;

pub use template::{TemplateFault, check_template};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::message::Message;
use crate::occasion::Occasion;
use crate::target::Format;
use crate::text::short;

const PLAIN: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// A message, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// Its text.
    pub body: String,
    /// What that is.
    pub content_type: String,
    /// What goes with it.
    pub headers: Vec<(&'static str, String)>,
}

impl Rendered {
    fn new(content_type: &str, body: String) -> Self {
        Self {
            body,
            content_type: content_type.to_owned(),
            headers: Vec::new(),
        }
    }
}

/// Writes a message in a format.
pub fn render(format: &Format, message: &Message) -> Result<Rendered, TemplateFault> {
    Ok(match format {
        Format::Json => Rendered::new(JSON, json(message)),
        Format::Slack => Rendered::new(JSON, chat::slack(message)),
        Format::Discord => Rendered::new(JSON, chat::discord(message)),
        Format::Ntfy => ntfy(message),
        Format::Text => {
            let text = format!("{}\n\n{}\n", message.title, message.body());
            Rendered::new(PLAIN, text)
        }
        Format::Template { text, content_type } => {
            Rendered::new(content_type, template::fill(text, message)?)
        }
    })
}

/// The message as it is.
pub(crate) fn json(message: &Message) -> String {
    serde_json::to_string(message).unwrap_or_default()
}

/// ntfy takes the text as it is and the rest in headers; it makes a file of what is longer than 4 kB.
fn ntfy(message: &Message) -> Rendered {
    let (priority, tag) = match message.occasion {
        Occasion::Escalation => ("high", "raised_hand"),
        Occasion::Resolved | Occasion::Recovered => ("low", "white_check_mark"),
        Occasion::RunFinished => ("default", "checkered_flag"),
    };
    let mut rendered = Rendered::new(PLAIN, short(&message.body(), 1200));
    rendered.headers = vec![
        ("title", header(&message.title)),
        ("priority", priority.to_owned()),
        ("tags", tag.to_owned()),
    ];
    rendered
}

/// A text as a header can hold it.
fn header(text: &str) -> String {
    match text.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
        true => text.to_owned(),
        false => format!("=?UTF-8?B?{}?=", STANDARD.encode(text)),
    }
}
