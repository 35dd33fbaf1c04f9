//! The API that a client speaks, and the calls that are inspected.

use std::fmt;

/// The API that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// Anthropic's API.
    Anthropic,
    /// OpenAI's API, which many others speak too.
    OpenAi,
    /// Google's Gemini API.
    Gemini,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::OpenAi, Self::Gemini];

    /// Returns the name used in configuration and on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
        }
    }

    /// Returns the protocol of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// Returns the path prefix at the gateway, which is part of a client's base URL.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Anthropic => "/anthropic",
            Self::OpenAi => "/openai/v1",
            Self::Gemini => "/gemini",
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An API call, by the shape of its request and response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LlmApiEndpoint {
    /// Anthropic Messages.
    Messages,
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Gemini generateContent and streamGenerateContent.
    Generate,
    /// Any other call: passed through without inspection.
    Other,
}

impl LlmApiEndpoint {
    /// The calls that are inspected.
    pub const KNOWN: [Self; 4] = [Self::Messages, Self::Chat, Self::Responses, Self::Generate];

    /// Returns the name used on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Generate => "generate",
            Self::Other => "other",
        }
    }

    /// Returns the endpoint of a request. The path is the part after the [prefix](Protocol::prefix), without the query.
    pub fn from_request(protocol: Protocol, method: &str, path: &str) -> Self {
        if method != "POST" {
            return Self::Other;
        }
        match (protocol, path) {
            (Protocol::Anthropic, "/v1/messages") => Self::Messages,
            (Protocol::OpenAi, "/chat/completions") => Self::Chat,
            (Protocol::OpenAi, "/responses") => Self::Responses,
            (Protocol::Gemini, _) if gemini_model(path).is_some() => Self::Generate,
            _ => Self::Other,
        }
    }
}

/// Returns the range of the model in the path of a Gemini call, and true if the call requests a stream.
pub(super) fn gemini_model(path: &str) -> Option<(std::ops::Range<usize>, bool)> {
    let slash = path.rfind('/')?;
    let colon = slash + path.get(slash..)?.find(':')?;
    let collection = path.get(..slash)?.rsplit('/').next()?;
    let streams = match path.get(colon..)? {
        ":generateContent" => false,
        ":streamGenerateContent" => true,
        _ => return None,
    };
    let named = colon > slash + 1 && matches!(collection, "models" | "tunedModels");
    named.then_some((slash + 1..colon, streams))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocol_is_found_by_name() {
        for protocol in Protocol::ALL {
            assert_eq!(Protocol::from_name(protocol.name()), Some(protocol));
            assert!(protocol.prefix().starts_with('/') && !protocol.prefix().ends_with('/'));
        }
        assert_eq!(Protocol::from_name("bedrock"), None);
    }

    #[test]
    fn generating_calls_are_recognized() {
        let cases = [
            (
                Protocol::Anthropic,
                "/v1/messages",
                LlmApiEndpoint::Messages,
            ),
            (Protocol::OpenAi, "/chat/completions", LlmApiEndpoint::Chat),
            (Protocol::OpenAi, "/responses", LlmApiEndpoint::Responses),
            (
                Protocol::Gemini,
                "/v1beta/models/gemini-3-pro:generateContent",
                LlmApiEndpoint::Generate,
            ),
            (
                Protocol::Gemini,
                "/v1/models/gemini-3-pro:streamGenerateContent",
                LlmApiEndpoint::Generate,
            ),
            (
                Protocol::Gemini,
                "/v1/projects/p/locations/l/publishers/google/models/m:generateContent",
                LlmApiEndpoint::Generate,
            ),
        ];
        for (protocol, path, endpoint) in cases {
            assert_eq!(
                LlmApiEndpoint::from_request(protocol, "POST", path),
                endpoint,
                "{path}"
            );
            assert_eq!(
                LlmApiEndpoint::from_request(protocol, "GET", path),
                LlmApiEndpoint::Other,
                "{path}"
            );
        }
    }

    #[test]
    fn other_calls_are_passed_through() {
        let others = [
            (Protocol::Anthropic, "/v1/messages/count_tokens"),
            (Protocol::Anthropic, "/v1/messages/batches"),
            (Protocol::Anthropic, "/chat/completions"),
            (Protocol::OpenAi, "/embeddings"),
            (Protocol::OpenAi, "/responses/resp_1/cancel"),
            (Protocol::Gemini, "/v1beta/models/gemini-3-pro:countTokens"),
            (Protocol::Gemini, "/v1beta/models/:generateContent"),
            (Protocol::Gemini, "/v1beta/files:generateContent"),
            (Protocol::Gemini, ":generateContent"),
            (Protocol::Gemini, ""),
        ];
        for (protocol, path) in others {
            assert_eq!(
                LlmApiEndpoint::from_request(protocol, "POST", path),
                LlmApiEndpoint::Other,
                "{path}"
            );
        }
    }
}
