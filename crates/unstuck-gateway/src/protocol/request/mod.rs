//! The facts of a request.

mod anthropic;
mod conversation;
mod gemini;
mod openai_chat;
mod openai_responses;
#[cfg(test)]
mod tests;

use super::endpoint::LlmApiEndpoint;

/// The facts of a request. A malformed request has no facts: the upstream reports the error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestFacts {
    /// The requested model.
    pub model: Option<String>,
    /// True if a stream is requested.
    pub stream: bool,
    /// True if tools are offered.
    pub tools: bool,
    /// True if it contains images.
    pub images: bool,
    /// True if the last message is the assistant's, to be continued.
    pub prefill: bool,
    /// True if JSON output is requested.
    pub wants_json: bool,
    /// The output limit, in tokens.
    pub max_output: Option<u64>,
    /// The estimated prompt tokens: four bytes each, and a fixed number per image.
    pub prompt_tokens: u64,
    /// The number of messages, or items, of the conversation.
    pub messages: usize,
    /// The last turn of the conversation; `None` if there is none.
    pub last: Option<LastTurn>,
}

/// The last turn of a conversation. Equal turns have equal hashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastTurn {
    /// The hash of the user's first messages, which identifies the conversation.
    pub conversation: u64,
    /// The preceding tool calls; also empty if only the provider stores them.
    pub calls: Vec<ToolCall>,
    /// The hash of each tool result. Empty unless the results are the newest items.
    pub results: Vec<u64>,
    /// The hash of the conversation's state: an equal one means that the request was sent again.
    pub position: u64,
    /// The hash of the id of the continued response, if the provider stores the conversation.
    pub continues: Option<u64>,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ToolCall {
    /// The name of the tool.
    pub name: String,
    /// The hash of the arguments, independent of their formatting.
    pub arguments_hash: u64,
}

impl RequestFacts {
    /// Reads a request. The path is the part after the [prefix](super::Protocol::prefix), without the query.
    pub fn read(endpoint: LlmApiEndpoint, path: &str, body: &[u8]) -> Self {
        let read = match endpoint {
            LlmApiEndpoint::Messages => anthropic::read_request(body),
            LlmApiEndpoint::Chat => openai_chat::read_request(body),
            LlmApiEndpoint::Responses => openai_responses::read_request(body),
            LlmApiEndpoint::Generate => return gemini::read_request(path, body),
            LlmApiEndpoint::Other => None,
        };
        read.unwrap_or_default()
    }
}
