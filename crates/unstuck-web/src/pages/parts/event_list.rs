//! A list of events, the newest first.

use maud::{Markup, html};
use serde_json::Value;

use super::{sanitized_text, time};
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

/// Returns the title of an event; one of a newer version gets its name.
fn event_title(name: &str) -> String {
    let title = match name {
        "run_started" => "Run started",
        "run_resumed" => "Run resumed",
        "iteration_started" => "Iteration started",
        "iteration_finished" => "Iteration finished",
        "output_reused" => "Earlier output reused",
        "session_started" => "Session started",
        "session_finished" => "Session finished",
        "attempt_started" => "Attempt started",
        "attempt_failed" => "Attempt failed",
        "attempt_succeeded" => "Attempt succeeded",
        "attempt_interrupted" => "Attempt interrupted",
        "decision_made" => "Recovery decided",
        "waiting_until" => "Wait started",
        "wait_ended" => "Wait ended",
        "session_parked" => "Session parked",
        "call_failed" => "API call failed",
        "call_held" => "API call delayed by the gateway",
        "call_resumed" => "API call resumed",
        "call_finished" => "API call finished",
        "model_escalated" => "Model switched",
        "recovery_proposed" => "Repair proposed",
        "recovery_rejected" => "Repair rejected",
        "recovery_approved" => "Repair approved",
        "recovery_started" => "Repair started",
        "recovery_executed" => "Repair executed",
        "recovery_failed" => "Repair failed",
        "recovery_escalated" => "Input requested",
        "recovery_resolved" => "Request resolved",
        "config_reloaded" => "Configuration reloaded",
        "config_rejected" => "Configuration rejected",
        "run_finished" => "Run finished",
        other => return sanitized_text::one_line(&other.replace('_', " "), 60),
    };
    title.to_owned()
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
        Value::String(text) if !text.is_empty() => Some(sanitized_text::one_line(text, 240)),
        Value::Array(words) => {
            let words: Vec<_> = words
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            (!words.is_empty()).then(|| sanitized_text::command_line(&words, 240))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use unstuck_core::event::Event;

    use super::*;

    #[test]
    fn every_event_has_a_title_in_plain_words() {
        for name in Event::NAMES {
            let title = event_title(name);
            assert_ne!(title, name.replace('_', " "));
            assert!(!title.starts_with("Recovery e"), "{title}");
        }
    }
}
