//! Prepares a failure for matching: normalizes its texts, finds the documents in them, and detects reported success.

use serde_json::Value;

use super::lenient_json;
use super::normalized_text::{NormalizedText, without_escapes};
use crate::failure::{Failure, FailureLayer};
use crate::knowledge::{FailureTextSource, SharedTextRules};

/// A failure prepared for matching.
pub(crate) struct PreparedFailure<'f> {
    pub(crate) failure: &'f Failure,
    texts: [Option<NormalizedText>; 4],
    documents: Vec<Value>,
    succeeded: bool,
    admits_failure: bool,
    shows_content: bool,
}

impl<'f> PreparedFailure<'f> {
    pub(crate) fn new(failure: &'f Failure, reading: &SharedTextRules) -> Self {
        let validation = (!failure.validation_errors.is_empty())
            .then(|| failure.validation_errors.join("\n").into());
        let texts = [
            failure.body.as_ref(),
            failure.stdout.as_ref(),
            failure.stderr.as_ref(),
            validation.as_ref(),
        ];
        let mut view = Self {
            failure,
            texts: texts.map(|text| text.map(|text| NormalizedText::new(text.bytes()))),
            documents: Vec::new(),
            succeeded: false,
            admits_failure: false,
            shows_content: shows_content(failure, reading),
        };
        view.read_documents();
        view.succeeded = view.looks_successful();
        view
    }

    /// Finds the documents and, if a text is an event stream, removes the successful events.
    fn read_documents(&mut self) {
        for stream in [
            FailureTextSource::Body,
            FailureTextSource::Stdout,
            FailureTextSource::Stderr,
        ] {
            let Some(screen) = &self.texts[stream as usize] else {
                continue;
            };
            if !self.may_show_failure(stream) {
                continue;
            }
            if !screen.lines().contains('{') {
                continue;
            }
            let raw = match stream {
                FailureTextSource::Body => self.failure.body.as_ref(),
                FailureTextSource::Stdout => self.failure.stdout.as_ref(),
                _ => self.failure.stderr.as_ref(),
            };
            let found = raw
                .map(|raw| lenient_json::find_documents(&without_escapes(&raw.to_str())))
                .unwrap_or_default();
            if let Some(failed_only) = failed_events(screen.lines()) {
                self.texts[stream as usize] = Some(NormalizedText::new(failed_only.as_bytes()));
            }
            self.documents.extend(found);
        }
    }

    fn looks_successful(&self) -> bool {
        let verdict = self.documents.iter().rev().find_map(document_outcome);
        let said = match (self.failure.exit_code, self.failure.status) {
            (Some(0), _) => verdict != Some(true),
            (Some(_), _) => false,
            (None, Some(status)) => {
                (200..300).contains(&status)
                    && !self
                        .documents
                        .iter()
                        .any(|doc| document_outcome(doc) == Some(true))
            }
            // Without an exit code only the agent's own report can indicate success.
            (None, None) => self.failure.layer == FailureLayer::Agent && verdict == Some(false),
        };
        said && !self.failure.timed_out && self.failure.signal.is_none()
    }

    /// Returns true if the exit code or status, and the agent's own report, indicate success.
    pub(crate) fn reports_success(&self) -> bool {
        self.succeeded && !self.admits_failure
    }

    /// Returns the assumption if nothing explains a failure: a run that ended well and only hinted at one did not fail.
    pub(crate) fn is_presumed_success(&self) -> bool {
        self.succeeded
    }

    /// Records that one of its own lines admits a failure.
    pub(crate) fn admit_failure(&mut self) {
        self.admits_failure = true;
    }

    pub(crate) fn text(&self, stream: FailureTextSource) -> Option<&NormalizedText> {
        self.texts[stream as usize].as_ref()
    }

    pub(crate) fn documents(&self) -> &[Value] {
        &self.documents
    }

    /// Returns true if a stream may contain a failure: the output of a program that displays files does not.
    pub(crate) fn may_show_failure(&self, stream: FailureTextSource) -> bool {
        !(self.shows_content && stream == FailureTextSource::Stdout)
    }

    /// Returns true if a stream is empty or unknown.
    pub(crate) fn is_blank(&self, stream: FailureTextSource) -> bool {
        self.text(stream).is_none_or(NormalizedText::is_blank)
    }

    /// Returns true if a stream is known to be empty.
    pub(crate) fn is_empty(&self, stream: FailureTextSource) -> bool {
        self.text(stream).is_some_and(NormalizedText::is_blank)
    }

    /// Returns the signal that ended the process, also if only a shell's exit code shows it.
    pub(crate) fn signal(&self) -> Option<i32> {
        self.failure.signal.or_else(|| {
            self.failure
                .exit_code
                .filter(|code| (129..=159).contains(code))
                .map(|code| code - 128)
        })
    }
}

/// Returns true if the tool's stdout is the content it was asked to display.
fn shows_content(failure: &Failure, reading: &SharedTextRules) -> bool {
    let Some(tool) = &failure.tool else {
        return false;
    };
    reading.viewers.contains(tool)
        || (reading.reporters.contains(tool) && failure.exit_code == Some(0))
}

/// Returns the failed events and the last event of a JSON event stream; `None` for other texts.
fn failed_events(lines: &str) -> Option<String> {
    let (mut events, mut others) = (Vec::new(), 0);
    for line in lines.lines().filter(|line| !line.is_empty()) {
        let payload = line.strip_prefix("data: ").unwrap_or(line);
        if payload.starts_with('{') && payload.ends_with('}') {
            events.push(payload);
        } else if !line.starts_with("event: ") && line != "data: [DONE]" {
            others += 1;
        }
    }
    if events.len() < 2 || others > events.len() {
        return None;
    }
    let last = events.len() - 1;
    let failed = |event: &str| {
        lenient_json::find_documents(event)
            .iter()
            .any(|doc| document_outcome(doc) == Some(true))
    };
    let kept: Vec<&str> = events
        .iter()
        .enumerate()
        .filter(|(at, event)| *at == last || failed(event))
        .map(|(_, event)| *event)
        .collect();
    Some(kept.join("\n"))
}

/// Returns `Some(true)` if a document reports a failure, `Some(false)` if it reports a successful turn, or none.
fn document_outcome(document: &Value) -> Option<bool> {
    let text = |key: &str| {
        document
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    if let Some(is_error) = document.get("is_error").and_then(Value::as_bool) {
        return (is_error || text("type") == "result").then_some(is_error);
    }
    let given = |key: &str| {
        document.get(key).is_some_and(|value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(object) => !object.is_empty(),
            _ => true,
        })
    };
    let kind = text("type");
    let failed = given("error")
        || kind == "error"
        || kind.ends_with(".failed")
        || kind.ends_with("_error")
        || document.get("success") == Some(&Value::Bool(false))
        || matches!(text("status"), "error" | "failed" | "failure");
    if failed {
        return Some(true);
    }
    matches!(
        (kind, text("status")),
        ("turn.completed", _) | ("result", "success")
    )
    .then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn succeeded(failure: &Failure) -> bool {
        PreparedFailure::new(failure, &SharedTextRules::default()).reports_success()
    }

    #[test]
    fn agent_that_reports_an_error_failed_despite_exit_code_0() {
        let result = |flag| {
            Failure::agent("claude")
                .with_exit_code(0)
                .with_stdout(format!(
                    r#"{{"type":"result","subtype":"success","is_error":{flag}}}"#
                ))
        };
        assert!(succeeded(&result(false)));
        assert!(!succeeded(&result(true)));
    }

    #[test]
    fn error_event_in_a_200_stream_is_a_failure() {
        let stream = "event: message_start\ndata: {\"type\":\"message_start\"}\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n";
        assert!(!succeeded(
            &Failure::api("anthropic").with_status(200).with_body(stream)
        ));
        assert!(succeeded(
            &Failure::api("anthropic")
                .with_status(200)
                .with_body("{\"type\":\"message\"}")
        ));
    }

    #[test]
    fn only_failed_events_of_a_stream_are_read() {
        let events = "{\"type\":\"assistant\",\"text\":\"got a 429 and moved on\"}\n{\"type\":\"turn.failed\",\"error\":{\"message\":\"boom\"}}\n";
        assert_eq!(
            failed_events(events).as_deref(),
            Some("{\"type\":\"turn.failed\",\"error\":{\"message\":\"boom\"}}")
        );
        assert_eq!(failed_events("plain\ntext\n"), None);
    }
}
