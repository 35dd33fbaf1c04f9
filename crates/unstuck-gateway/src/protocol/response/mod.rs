//! Reads an answer while it passes: what it says, what it costs, and whether it is whole.

mod chat;
mod generate;
mod messages;
mod responses;
mod summary;
#[cfg(test)]
mod tests;
mod tool_calls;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use unstuck_core::decision::TokenUsage;

use super::endpoint::Endpoint;
use super::hash::TextHash;
use super::json::filled_text;
use super::sse_event::SseEvent;
use tool_calls::OpenCalls;

pub use summary::{FinishReason, JsonState, ResponseSummary};

/// No more of a text is kept than so many bytes.
const MAX_KEPT_TEXT: usize = 4 << 20;

/// What a frame is to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// A sign of life and nothing else.
    Ping,
    /// The coming and going of things, in which there is nothing that a user would see.
    Lifecycle,
    /// Text, thoughts, a call of a tool or a refusal. It may end the answer as well: ask [`ResponseReader::is_complete`].
    Content,
    /// The end.
    End,
    /// An error instead of the rest; it is in [`ResponseSummary::error`].
    Error,
    /// Not what this API sends.
    Malformed,
}

/// Reads one answer.
#[derive(Debug, Clone)]
pub struct ResponseReader {
    endpoint: Endpoint,
    summary: ResponseSummary,
    text_hash: TextHash,
    text: Option<String>,
    open_calls: OpenCalls,
    /// The end was announced (Chat: why it ended; Gemini in an array: the same).
    is_end_announced: bool,
    is_complete: bool,
    /// The frames are elements of an array, which must be closed.
    in_array: bool,
    /// How many frames held content.
    content_frames: u64,
    /// Of Responses: whether the numbers of the events have left one out.
    has_gap: bool,
    /// Of Responses: the number of the last event, the id of the response and when it began.
    pub(super) sequence: Option<u64>,
    pub(super) id: Option<String>,
    pub(super) created: u64,
}

impl ResponseReader {
    /// Reads an answer to such a call.
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            summary: ResponseSummary::default(),
            text_hash: TextHash::EMPTY,
            text: None,
            open_calls: OpenCalls::default(),
            is_end_announced: false,
            is_complete: endpoint == Endpoint::Other,
            in_array: false,
            content_frames: 0,
            has_gap: false,
            sequence: None,
            id: None,
            created: 0,
        }
    }

    /// The same, and keeps the text, so that it can be told whether it is JSON and what was wrong.
    #[must_use]
    pub fn with_text(mut self) -> Self {
        self.text = Some(String::new());
        self
    }

    /// Takes in a frame of a stream.
    pub fn read_frame(&mut self, bytes: &[u8]) -> FrameKind {
        let frame = match self.endpoint {
            Endpoint::Other => FrameKind::Content,
            Endpoint::Generate if !looks_like_event(bytes) => self.read_element(bytes),
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
            Endpoint::Messages => messages::read_event(self, data),
            Endpoint::Chat => chat::read_chunk(self, data),
            Endpoint::Responses => responses::read_event(self, data),
            Endpoint::Generate => generate::read_chunk(self, data),
            Endpoint::Other => Some(FrameKind::Content),
        };
        frame.unwrap_or(FrameKind::Malformed)
    }

    /// The end marker of Chat Completions; others who send it mean nothing by it.
    fn read_end_marker(&mut self) -> FrameKind {
        if self.endpoint != Endpoint::Chat {
            return FrameKind::Lifecycle;
        }
        self.is_complete = self.is_end_announced;
        FrameKind::End
    }

    /// Takes in an element of an array, with the brackets and commas around it.
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
            json => generate::read_chunk(self, json).unwrap_or(FrameKind::Malformed),
        }
    }

    /// Takes in an answer that is no stream: content, an end without content, an error, or something malformed.
    pub fn read_body(&mut self, body: &[u8]) -> FrameKind {
        let frame = match self.endpoint {
            Endpoint::Messages => messages::read_body(self, body),
            Endpoint::Chat => chat::read_body(self, body),
            Endpoint::Responses => responses::read_body(self, body),
            Endpoint::Generate => generate::read_body(self, body),
            Endpoint::Other => Some(FrameKind::Content),
        };
        self.check_json();
        frame.unwrap_or(FrameKind::Malformed)
    }

    /// Whether the end has been seen, as this API marks it. A stream that ends before is cut. Always so where the call is not
    /// looked into.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether the answer is whole if HTTP ends properly now: its end has been seen, or it has said why it ends and only the
    /// marker is missing, which some servers never send.
    pub fn is_finished(&self) -> bool {
        self.is_complete || (self.is_end_announced && !self.in_array)
    }

    /// Whether what came is known to be all of it, although something between could not be read: the events are numbered
    /// without a gap, or each token that the server counts has come in a frame of its own.
    pub fn is_gapless(&self) -> bool {
        match self.endpoint {
            Endpoint::Responses => self.sequence.is_some() && !self.has_gap,
            _ => {
                let counted = self.summary.tokens.map_or(0, |tokens| tokens.output);
                counted > 0 && counted == self.content_frames
            }
        }
    }

    /// What was said so far.
    pub fn summary(&self) -> &ResponseSummary {
        &self.summary
    }

    /// The text so far, where it is [kept](Self::with_text); at most 4 MiB of it.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// What call the answer belongs to.
    pub fn endpoint(&self) -> Endpoint {
        self.endpoint
    }

    /// Whether the frames are elements of an array that was opened.
    pub(super) fn is_in_array(&self) -> bool {
        self.in_array
    }

    /// More text; whether there was any.
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

    /// Why it ended. A refusal that was seen before is not undone by an ordinary end.
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
            Ok(_) => JsonState::Valid,
            Err(_) => JsonState::Invalid,
        };
    }
}

/// Whether a frame is an event rather than an element of a JSON array.
fn looks_like_event(bytes: &[u8]) -> bool {
    let first = bytes.trim_ascii_start().first();
    !matches!(first, Some(b'[' | b'{' | b',' | b']'))
}
