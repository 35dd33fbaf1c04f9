//! User-defined message templates.

use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value};

use crate::event::NotificationEvent;
use crate::message::NotificationMessage;

/// The fuel limit; more than any terminating template needs.
const FUEL: u64 = 50_000;
/// The maximum message length in bytes.
const MAX_LEN: usize = 64 * 1024;

/// A template error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid message template: {0}")]
pub struct TemplateError(String);

/// Renders a template with a message.
pub(super) fn fill_template(
    text: &str,
    message: &NotificationMessage,
) -> Result<String, TemplateError> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment.add_filter("json", |value: Value| {
        serde_json::to_string(&value).unwrap_or_default()
    });
    let filled = environment.render_str(text, Serde(message));
    let filled = filled.map_err(|error| TemplateError(error_text(&error)))?;
    if filled.len() > MAX_LEN {
        Err(TemplateError("the output exceeds 64 kB".to_owned()))
    } else {
        Ok(filled)
    }
}

/// Checks a template by rendering a sample.
pub fn check_template(text: &str) -> Result<(), TemplateError> {
    let sample = NotificationMessage::sample(
        NotificationEvent::Escalation,
        unstuck_core::Timestamp::from_seconds(0),
    );
    fill_template(text, &sample).map(drop)
}

fn error_text(error: &minijinja::Error) -> String {
    let what = error
        .detail()
        .map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) => format!("line {line}: {what}"),
        None => what,
    }
}
