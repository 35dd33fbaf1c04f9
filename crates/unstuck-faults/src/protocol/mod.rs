//! The wire protocols: how each one asks, answers and refuses.

mod anthropic;
mod call;
mod chat;
mod gemini;
mod models;
mod openai_error;
mod responses;
mod route;

pub(crate) use call::{Call, tokens};
pub(crate) use models::{count_tokens, models};
pub(crate) use route::Route;

use serde_json::Value;
use unstuck_core::Timestamp;

/// A protocol that the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Anthropic,
    Responses,
    Chat,
    Gemini,
}

/// What the model says.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Text(String),
    Refusal,
    ToolCall { name: &'static str, input: Value },
    Nothing,
}

/// A successful answer, before it takes the form of a protocol.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    /// The number of the request, from which all ids are made.
    pub(crate) number: u64,
    pub(crate) model: String,
    pub(crate) content: Content,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
}

/// Why a request is refused, before it takes the form of a protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rejection {
    RateLimit { retry_after: Option<u64> },
    UsageLimit { reset: Timestamp, seconds: u64 },
    Quota,
    Overloaded,
    ServerError,
    Auth,
    ContextLimit,
    ModelNotFound,
    NoSuchPath,
    TooLarge,
    NotJson,
    NoStep,
}

/// A refusal in the form of a protocol.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Value,
}

/// The seconds since the epoch that every answer bears, so that the same script gives the same bytes.
const CREATED: u64 = 1_763_000_000;

/// What an OpenAI model says when it refuses.
const REFUSAL: &str = "I'm sorry, but I can't help with that.";

impl Protocol {
    /// The whole answer as one JSON document.
    pub(crate) fn document(self, message: &Message) -> Value {
        match self {
            Self::Anthropic => anthropic::document(message),
            Self::Responses => responses::document(message),
            Self::Chat => chat::document(message),
            Self::Gemini => gemini::document(message),
        }
    }

    /// The answer as the frames of an event stream.
    pub(crate) fn stream(self, message: &Message, call: &Call) -> Vec<String> {
        match self {
            Self::Anthropic => anthropic::stream(message),
            Self::Responses => responses::stream(message),
            Self::Chat => chat::stream(message, call),
            Self::Gemini => gemini::stream(message),
        }
    }

    /// The first half of a stream, and then the refusal inside of it.
    pub(crate) fn broken_stream(
        self,
        message: &Message,
        call: &Call,
        rejection: &Rejection,
    ) -> Vec<String> {
        let mut frames = self.stream(message, call);
        frames.truncate(frames.len().div_ceil(2));
        let refused = self.refuse(rejection, &message.model, message.number);
        frames.push(match self {
            Self::Anthropic => format!("event: error\ndata: {}\n\n", refused.body),
            Self::Responses => responses::failed(message, &refused, frames.len()),
            Self::Chat | Self::Gemini => format!("data: {}\n\n", refused.body),
        });
        frames
    }

    /// The refusal in the provider's own words.
    pub(crate) fn refuse(self, rejection: &Rejection, model: &str, number: u64) -> Refused {
        match self {
            Self::Anthropic => anthropic::refuse(rejection, model, number),
            Self::Responses | Self::Chat => openai_error::refuse(rejection, model, number),
            Self::Gemini => gemini::refuse(rejection, model),
        }
    }
}

/// A text in up to four pieces, the way models stream it.
fn pieces(text: &str) -> Vec<&str> {
    let words: Vec<_> = text.split_inclusive(char::is_whitespace).collect();
    let mut rest = text;
    words
        .chunks(words.len().div_ceil(4).max(1))
        .map(|chunk| {
            let (piece, after) = rest.split_at(chunk.iter().map(|word| word.len()).sum());
            rest = after;
            piece
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_whole_again_after_streaming() {
        for text in ["", "one", "a b", "one two  three\nfour fünf six ", " \n"] {
            assert_eq!(pieces(text).concat(), text);
            assert!(pieces(text).len() <= 4);
        }
    }
}
