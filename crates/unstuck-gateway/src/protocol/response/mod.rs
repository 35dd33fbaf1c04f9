//! Reads a response in passing: its content, its usage, and its completeness.

mod anthropic;
mod gemini;
mod openai_chat;
mod openai_responses;
mod streamed_tool_calls;
mod summary;
#[cfg(test)]
mod tests;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use unstuck_core::decision::TokenUsage;

use super::endpoint::LlmApiEndpoint;
use super::json::filled_text;
use super::sse_event::SseEvent;
use super::text_hash::TextHash;
use streamed_tool_calls::StreamedToolCalls;

pub use summary::{FinishReason, JsonValidity, ResponseSummary};

/// The maximum number of text bytes that are kept.
const MAX_KEPT_TEXT: usize = 4 << 20;

/// The meaning of a frame for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// A keep-alive and nothing else.
    Ping,
    /// A change of state without content visible to a user.
    Lifecycle,
    /// Text, reasoning, a tool call or a refusal. It may end the response as well: see [`ResponseReader::is_complete`].
    Content,
    /// The end.
    End,
    /// An error instead of the rest; see [`ResponseSummary::error`].
    Error,
    /// Not valid in this API.
    Malformed,
}

/// Reads one response.
#[derive(Debug, Clone)]
pub struct ResponseReader {
    endpoint: LlmApiEndpoint,
    summary: ResponseSummary,
    text_hash: TextHash,
    text: Option<String>,
    open_calls: StreamedToolCalls,
    /// Set once the end was announced (Chat: the finish reason; Gemini in an array: the same).
    is_end_announced: bool,
    is_complete: bool,
    /// Set if the frames are elements of an array, which must be closed.
    in_array: bool,
    /// The number of frames with content.
    content_frames: u64,
    /// For Responses: set if the event numbers have a gap.
    has_gap: bool,
    /// For Responses: the number of the last event, the id of the response and its start time.
    pub(super) sequence: Option<u64>,
    pub(super) id: Option<String>,
    pub(super) created: u64,
}

impl ResponseReader {
    /// Creates a reader for a call of that endpoint.
    pub fn new(endpoint: LlmApiEndpoint) -> Self {
        Self {
            endpoint,
            summary: ResponseSummary::default(),
            text_hash: TextHash::EMPTY,
            text: None,
            open_calls: StreamedToolCalls::default(),
            is_end_announced: false,
            is_complete: endpoint == LlmApiEndpoint::Other,
            in_array: false,
            content_frames: 0,
            has_gap: false,
            sequence: None,
            id: None,
            created: 0,
        }
    }

    /// Also keeps the text, to check whether it is valid JSON.
    #[must_use]
    pub fn with_text(mut self) -> Self {
        self.text = Some(String::new());
        self
    }

    /// Reads a frame of a stream.
    pub fn read_frame(&mut self, bytes: &[u8]) -> FrameKind {
        let frame = match self.endpoint {
            LlmApiEndpoint::Other => FrameKind::Content,
            LlmApiEndpoint::Generate if !looks_like_event(bytes) => self.read_element(bytes),
            _ => match SseEvent::read(bytes).data {
                Some(data) => self.read_data(&data),
                None => FrameKind::Ping,
            },
        };
        if frame == FrameKind::Content {
            self.content_frames += 1;
        }
        if self.is_complete {
            self.check_json();
        }
        frame
    }

    fn read_data(&mut self, data: &[u8]) -> FrameKind {
        let data = data.trim_ascii();
        match data {
            b"" => return FrameKind::Ping,
            b"[DONE]" => return self.read_end_marker(),
            _ => {}
        }
        let frame = match self.endpoint {
            LlmApiEndpoint::Messages => anthropic::read_event(self, data),
            LlmApiEndpoint::Chat => openai_chat::read_chunk(self, data),
            LlmApiEndpoint::Responses => openai_responses::read_event(self, data),
            LlmApiEndpoint::Generate => gemini::read_chunk(self, data),
            LlmApiEndpoint::Other => Some(FrameKind::Content),
        };
        frame.unwrap_or(FrameKind::Malformed)
    }

    /// Reads the end marker of Chat Completions; it has no meaning in other APIs.
    fn read_end_marker(&mut self) -> FrameKind {
        if self.endpoint != LlmApiEndpoint::Chat {
            return FrameKind::Lifecycle;
        }
        self.is_complete = self.is_end_announced;
        FrameKind::End
    }

    /// Reads an element of an array, with the brackets and commas around it.
    fn read_element(&mut self, bytes: &[u8]) -> FrameKind {
        let mut json = bytes.trim_ascii();
        if let Some(first) = json.strip_prefix(b"[") {
            self.in_array = true;
            json = first.trim_ascii_start();
        }
        json = json.strip_prefix(b",").unwrap_or(json).trim_ascii_start();
        match json {
            b"" => FrameKind::Ping,
            b"]" => {
                self.is_complete = self.is_end_announced;
                FrameKind::End
            }
            json => gemini::read_chunk(self, json).unwrap_or(FrameKind::Malformed),
        }
    }

    /// Reads a response that is not streamed: content, an end without content, an error, or malformed data.
    pub fn read_body(&mut self, body: &[u8]) -> FrameKind {
        let frame = match self.endpoint {
            LlmApiEndpoint::Messages => anthropic::read_body(self, body),
            LlmApiEndpoint::Chat => openai_chat::read_body(self, body),
            LlmApiEndpoint::Responses => openai_responses::read_body(self, body),
            LlmApiEndpoint::Generate => gemini::read_body(self, body),
            LlmApiEndpoint::Other => Some(FrameKind::Content),
        };
        self.check_json();
        frame.unwrap_or(FrameKind::Malformed)
    }

    /// Returns true once the end marker of this API was seen. A stream that ends before is truncated. Always true if
    /// the call is not inspected.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns true if the response is complete once HTTP ends properly: its end was seen, or it has a finish reason
    /// and lacks only the end marker, which some servers never send.
    pub fn is_finished(&self) -> bool {
        self.is_complete || (self.is_end_announced && !self.in_array)
    }

    /// Returns true if nothing is missing although some data was unreadable: the event numbers have no gap, or each
    /// token counted by the server arrived in its own frame.
    pub fn is_gapless(&self) -> bool {
        match self.endpoint {
            LlmApiEndpoint::Responses => self.sequence.is_some() && !self.has_gap,
            _ => {
                let counted = self.summary.tokens.map_or(0, |tokens| tokens.output);
                counted > 0 && counted == self.content_frames
            }
        }
    }

    /// Returns the summary so far.
    pub fn summary(&self) -> &ResponseSummary {
        &self.summary
    }

    /// Returns the text so far, if it is [kept](Self::with_text); at most 4 MiB of it.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Returns the endpoint of the call.
    pub fn endpoint(&self) -> LlmApiEndpoint {
        self.endpoint
    }

    /// Returns true if the frames are elements of an open array.
    pub(super) fn is_in_array(&self) -> bool {
        self.in_array
    }

    /// Adds text; returns true if there was any.
    fn add_text(&mut self, value: Option<&RawValue>) -> bool {
        let Some(piece) = filled_text(value) else {
            return false;
        };
        self.text_hash.add(piece.as_bytes());
        self.summary.text_hash = self.text_hash.value();
        self.summary.text_bytes = self.summary.text_bytes.saturating_add(piece.len() as u64);
        if let Some(text) = &mut self.text
            && text.len().saturating_add(piece.len()) <= MAX_KEPT_TEXT
        {
            text.push_str(&piece);
        }
        true
    }

    fn set_error(&mut self, error: &str) -> FrameKind {
        self.summary.error = Some(error.to_owned());
        FrameKind::Error
    }

    /// Sets the finish reason. An ordinary end does not replace an earlier refusal.
    fn set_finish(&mut self, finish: FinishReason) {
        let refused = self.summary.finish == Some(FinishReason::Refusal);
        if !(refused && finish == FinishReason::Stop) {
            self.summary.finish = Some(finish);
        }
    }

    fn set_model(&mut self, value: Option<&RawValue>) {
        if self.summary.model.is_none() {
            self.summary.model = filled_text(value).map(Into::into);
        }
    }

    fn set_tokens(&mut self, input: u64, cached: u64, output: u64) {
        self.summary.tokens = Some(TokenUsage {
            input,
            cached,
            output,
            requests: 1,
        });
    }

    fn check_json(&mut self) {
        let Some(text) = &self.text else { return };
        if self.summary.text_bytes == 0 || text.len() as u64 != self.summary.text_bytes {
            return;
        }
        self.summary.json = match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => JsonValidity::Valid,
            Err(_) => JsonValidity::Invalid,
        };
    }
}

/// Returns true if a frame is an event rather than an element of a JSON array.
fn looks_like_event(bytes: &[u8]) -> bool {
    let first = bytes.trim_ascii_start().first();
    !matches!(first, Some(b'[' | b'{' | b',' | b']'))
}
