//! A list of events, the newest first.

use maud::{Markup, html};
use serde_json::Value;

use super::{text, time};
use crate::model::EventResponse;

/// Event fields to summarize an event by, in order of preference.
const SUMMARY_FIELDS: [&str; 8] = [
    "reason", "message", "command", "role", "method", "path", "error", "outcome",
];

/// Renders a list of events.
pub(crate) fn event_list(all: &[EventResponse]) -> Markup {
    html! {
        ol class="events" {
            @for event in all {
                li data-key={ "event-" (event.run) "-" (event.seq) } {
                    span class="dim" { (time::date_time(event.at)) }
                    span { span class="name" { (event_title(&event.event)) }
                        @if let Some(kind) = event.kind { " " span class="tag" { (kind) } }
                        @if let Some(said) = event_summary(event) { span class="dim" { " " (said) } } }
                }
            }
        }
    }
}

/// Formats the name of an event: `attempt_failed` becomes "Attempt failed".
fn event_title(name: &str) -> String {
    let plain = text::one_line(&name.replace('_', " "), 60);
    let mut letters = plain.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

fn event_summary(event: &EventResponse) -> Option<String> {
    let deeper = ["decision", "diagnosis"]
        .iter()
        .filter_map(|name| event.data.get(*name)?.as_object());
    let objects = std::iter::once(&event.data).chain(deeper);
    let mut found = objects.flat_map(|object| {
        SUMMARY_FIELDS
            .iter()
            .filter_map(|name| field_text(object.get(*name)?))
    });
    found.next()
}

fn field_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text::one_line(text, 240)),
        Value::Array(words) => {
            let words: Vec<_> = words
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            (!words.is_empty()).then(|| text::command_line(&words, 240))
        }
        _ => None,
    }
}
