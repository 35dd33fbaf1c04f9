//! What must be known of a request, read in passing.

mod chat;
mod conversation;
mod generate;
mod messages;
mod responses;
#[cfg(test)]
mod tests;

use super::endpoint::Endpoint;

/// What must be known of a request. Of one that is not well formed nothing is known: the upstream will say what is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestFacts {
    /// The model it names.
    pub model: Option<String>,
    /// The answer shall come as a stream.
    pub stream: bool,
    /// Tools are offered.
    pub tools: bool,
    /// There are images in it.
    pub images: bool,
    /// The last message is the assistant's, to be continued.
    pub prefill: bool,
    /// The answer shall be JSON.
    pub wants_json: bool,
    /// The most that may be written, in tokens.
    pub max_output: Option<u64>,
    /// How long the prompt is in tokens: an estimate of four bytes each, and a fixed number an image.
    pub prompt_tokens: u64,
    /// How many messages, or items, the conversation has.
    pub messages: usize,
    /// What happened last in the conversation; `None` where there is none.
    pub last: Option<LastTurn>,
}

/// What happened last in a conversation. The same is known again by its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastTurn {
    /// Which conversation this is: the hash of the words of the user that it began with.
    pub conversation: u64,
    /// The tools that were called just before; empty also where only the provider knows them.
    pub calls: Vec<ToolCall>,
    /// What came of them: a hash of each result. Empty unless the results are the newest in the conversation.
    pub results: Vec<u64>,
    /// Where the conversation stands: the same again is the same request sent again.
    pub position: u64,
    /// The answer that it continues, by the hash of its id, where the provider keeps the conversation.
    pub continues: Option<u64>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ToolCall {
    /// The name of the tool.
    pub name: String,
    /// The hash of its arguments; how they are laid out does not count.
    pub arguments_hash: u64,
}

impl RequestFacts {
    /// Reads a request. The path is what follows the [prefix](super::Protocol::prefix), without the query.
    pub fn read(endpoint: Endpoint, path: &str, body: &[u8]) -> Self {
        let read = match endpoint {
            Endpoint::Messages => messages::read_request(body),
            Endpoint::Chat => chat::read_request(body),
            Endpoint::Responses => responses::read_request(body),
            Endpoint::Generate => return generate::read_request(path, body),
            Endpoint::Other => None,
        };
        read.unwrap_or_default()
    }
}
