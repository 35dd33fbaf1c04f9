//! Reads an answer while it passes: what it says, what it costs, and whether it is whole.

mod calls;
mod chat;
mod generate;
mod messages;
mod responses;
mod said;
#[cfg(test)]
mod tests;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use unstuck_core::decision::Tokens;

use super::endpoint::Endpoint;
use super::event::SseEvent;
use super::hash::Hash;
use super::json::filled_text;
use calls::OpenCalls;

pub use said::{Finish, JsonState, Said};

/// No more of a text is kept than so many bytes.
const LONGEST_KEPT: usize = 4 << 20;

/// What a frame is to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// A sign of life and nothing else.
    Ping,
    /// The coming and going of things, in which there is nothing that a user would see.
    Lifecycle,
    /// Text, thoughts, a call of a tool or a refusal. It may end the answer as well: ask [`Reading::is_complete`].
    Content,
    /// The end.
    End,
    /// An error instead of the rest; it is in [`Said::error`].
    Error,
    /// Not what this API sends.
    Malformed,
}

/// Reads one answer.
#[derive(Debug, Clone)]
pub struct Reading {
    endpoint: Endpoint,
    said: Said,
    text_hash: Hash,
    text: Option<String>,
    open: OpenCalls,
    /// The end was announced (Chat: why it ended; Gemini in an array: the same).
    ending: bool,
    complete: bool,
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

impl Reading {
    /// Reads an answer to such a call.
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            said: Said::default(),
            text_hash: Hash::EMPTY,
            text: None,
            open: OpenCalls::default(),
            ending: false,
            complete: endpoint == Endpoint::Other,
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
    pub fn keeping_text(mut self) -> Self {
        self.text = Some(String::new());
        self
    }

    /// Takes in a frame of a stream.
    pub fn frame(&mut self, bytes: &[u8]) -> Frame {
        let frame = match self.endpoint {
            Endpoint::Other => Frame::Content,
            Endpoint::Generate if !looks_like_event(bytes) => self.element(bytes),
            _ => match SseEvent::read(bytes).data {
                Some(data) => self.data(&data),
                None => Frame::Ping,
            },
        };
        if frame == Frame::Content {
            self.content_frames += 1;
        }
        if self.complete {
            self.judge_json();
        }
        frame
    }

    fn data(&mut self, data: &[u8]) -> Frame {
        let data = data.trim_ascii();
        match data {
            b"" => return Frame::Ping,
            b"[DONE]" => return self.done(),
            _ => {}
        }
        let frame = match self.endpoint {
            Endpoint::Messages => messages::event(self, data),
            Endpoint::Chat => chat::chunk(self, data),
            Endpoint::Responses => responses::event(self, data),
            Endpoint::Generate => generate::chunk(self, data),
            Endpoint::Other => Some(Frame::Content),
        };
        frame.unwrap_or(Frame::Malformed)
    }

    /// The end marker of Chat Completions; others who send it mean nothing by it.
    fn done(&mut self) -> Frame {
        if self.endpoint != Endpoint::Chat {
            return Frame::Lifecycle;
        }
        self.complete = self.ending;
        Frame::End
    }

    /// Takes in an element of an array, with the brackets and commas around it.
    fn element(&mut self, bytes: &[u8]) -> Frame {
        let mut json = bytes.trim_ascii();
        if let Some(first) = json.strip_prefix(b"[") {
            self.in_array = true;
            json = first.trim_ascii_start();
        }
        json = json.strip_prefix(b",").unwrap_or(json).trim_ascii_start();
        match json {
            b"" => Frame::Ping,
            b"]" => {
                self.complete = self.ending;
                Frame::End
            }
            json => generate::chunk(self, json).unwrap_or(Frame::Malformed),
        }
    }

    /// Takes in an answer that is no stream: content, an end without content, an error, or something malformed.
    pub fn whole(&mut self, body: &[u8]) -> Frame {
        let frame = match self.endpoint {
            Endpoint::Messages => messages::whole(self, body),
            Endpoint::Chat => chat::whole(self, body),
            Endpoint::Responses => responses::whole(self, body),
            Endpoint::Generate => generate::whole(self, body),
            Endpoint::Other => Some(Frame::Content),
        };
        self.judge_json();
        frame.unwrap_or(Frame::Malformed)
    }

    /// Whether the end has been seen, as this API marks it. A stream that ends before is cut. Always so where the call is not
    /// looked into.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Whether the answer is whole if HTTP ends properly now: its end has been seen, or it has said why it ends and only the
    /// marker is missing, which some servers never send.
    pub fn is_finished(&self) -> bool {
        self.complete || (self.ending && !self.in_array)
    }

    /// Whether what came is known to be all of it, although something between could not be read: the events are numbered
    /// without a gap, or each token that the server counts has come in a frame of its own.
    pub fn lost_nothing(&self) -> bool {
        match self.endpoint {
            Endpoint::Responses => self.sequence.is_some() && !self.has_gap,
            _ => {
                let counted = self.said.tokens.map_or(0, |tokens| tokens.output);
                counted > 0 && counted == self.content_frames
            }
        }
    }

    /// What was said so far.
    pub fn said(&self) -> &Said {
        &self.said
    }

    /// The text so far, where it is [kept](Self::keeping_text); at most 4 MiB of it.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// What call the answer belongs to.
    pub fn endpoint(&self) -> Endpoint {
        self.endpoint
    }

    /// Whether the frames are elements of an array that was opened.
    pub(super) fn in_array(&self) -> bool {
        self.in_array
    }

    /// More text; whether there was any.
    fn say(&mut self, value: Option<&RawValue>) -> bool {
        let Some(piece) = filled_text(value) else {
            return false;
        };
        self.text_hash.add(piece.as_bytes());
        self.said.text_hash = self.text_hash.value();
        self.said.text_bytes = self.said.text_bytes.saturating_add(piece.len() as u64);
        if let Some(text) = &mut self.text
            && text.len().saturating_add(piece.len()) <= LONGEST_KEPT
        {
            text.push_str(&piece);
        }
        true
    }

    fn fail(&mut self, error: &str) -> Frame {
        self.said.error = Some(error.to_owned());
        Frame::Error
    }

    /// Why it ended. A refusal that was seen before is not undone by an ordinary end.
    fn finish(&mut self, finish: Finish) {
        let refused = self.said.finish == Some(Finish::Refusal);
        if !(refused && finish == Finish::Stop) {
            self.said.finish = Some(finish);
        }
    }

    fn name_model(&mut self, value: Option<&RawValue>) {
        if self.said.model.is_none() {
            self.said.model = filled_text(value).map(Into::into);
        }
    }

    fn use_tokens(&mut self, input: u64, cached: u64, output: u64) {
        self.said.tokens = Some(Tokens {
            input,
            cached,
            output,
            requests: 1,
        });
    }

    fn judge_json(&mut self) {
        let Some(text) = &self.text else { return };
        if self.said.text_bytes == 0 || text.len() as u64 != self.said.text_bytes {
            return;
        }
        self.said.json = match serde_json::from_str::<IgnoredAny>(text) {
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
