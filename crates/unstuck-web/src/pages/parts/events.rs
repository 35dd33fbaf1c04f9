//! Events as lines, the newest first.

use maud::{Markup, html};
use serde_json::Value;

use super::{text, time};
use crate::model::EventLine;

/// What an event says first, where it says it.
const TELLING: [&str; 8] = [
    "reason", "message", "command", "role", "method", "path", "error", "outcome",
];

/// Events as a list.
pub(crate) fn events(all: &[EventLine]) -> Markup {
    html! {
        ol class="events" {
            @for event in all {
                li data-key={ "event-" (event.run) "-" (event.seq) } {
                    span class="dim" { (time::clock(event.at)) }
                    span { span class="name" { (words(&event.event)) }
                        @if let Some(kind) = event.kind { " " span class="tag" { (kind) } }
                        @if let Some(said) = telling(event) { span class="dim" { " " (said) } } }
                }
            }
        }
    }
}

/// The name of an event, in words: `attempt_failed` is "Attempt failed".
fn words(name: &str) -> String {
    let plain = text::one_line(&name.replace('_', " "), 60);
    let mut letters = plain.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

fn telling(event: &EventLine) -> Option<String> {
    let deeper = ["decision", "diagnosis"]
        .iter()
        .filter_map(|name| event.data.get(*name)?.as_object());
    let objects = std::iter::once(&event.data).chain(deeper);
    let mut found =
        objects.flat_map(|object| TELLING.iter().filter_map(|name| said(object.get(*name)?)));
    found.next()
}

fn said(value: &Value) -> Option<String> {
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
