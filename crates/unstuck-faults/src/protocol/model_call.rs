//! Parses a model call: the model, the prompt, and if a stream is requested.

use hyper::Uri;
use serde_json::Value;

use super::Protocol;

/// A request to a model.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelCall {
    pub(crate) model: String,
    /// Text of the user's last message.
    pub(crate) prompt: String,
    pub(crate) wants_stream: bool,
    /// If set, a chat stream ends with a usage frame.
    pub(crate) wants_usage: bool,
    /// If set, the last message is the beginning of the answer.
    pub(crate) is_prefill: bool,
    /// Bytes of text in the whole request: messages, instructions and tools.
    pub(crate) text_bytes: usize,
}

impl ModelCall {
    /// Parses a request; missing parts stay empty.
    pub(crate) fn read(protocol: Protocol, uri: &Uri, body: &Value) -> Self {
        let named = || body["model"].as_str().map(str::to_owned);
        Self {
            model: model_in_path(uri.path()).or_else(named).unwrap_or_default(),
            prompt: prompt(protocol, body),
            wants_stream: uri.path().ends_with(":streamGenerateContent")
                || body["stream"].as_bool().unwrap_or_default(),
            wants_usage: body["stream_options"]["include_usage"]
                .as_bool()
                .unwrap_or_default(),
            is_prefill: is_prefill(messages(protocol, body)),
            text_bytes: TEXT_KEYS.iter().map(|key| text_bytes(&body[*key])).sum(),
        }
    }

    /// Returns the estimated number of tokens of the request.
    pub(crate) fn estimated_tokens(&self) -> u64 {
        tokens_of_bytes(self.text_bytes)
    }
}

/// Returns the estimated number of tokens of a text: four bytes each.
pub(crate) fn estimate_tokens(text: &str) -> u64 {
    tokens_of_bytes(text.len())
}

fn tokens_of_bytes(bytes: usize) -> u64 {
    u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX)
}

/// JSON keys of the text that the model reads.
const TEXT_KEYS: [&str; 9] = [
    "messages",
    "input",
    "contents",
    "content",
    "system",
    "instructions",
    "systemInstruction",
    "system_instruction",
    "tools",
];

/// Returns the bytes of all texts in a value, except protocol keywords.
fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_bytes).sum(),
        Value::Object(fields) => fields
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "role" | "type" | "id" | "cache_control"))
            .map(|(_, value)| text_bytes(value))
            .sum(),
        _ => 0,
    }
}

/// True if the last message is the model's own.
fn is_prefill(messages: &Value) -> bool {
    let last = messages.as_array().and_then(|messages| messages.last());
    let role = last.and_then(|message| message["role"].as_str());
    matches!(role, Some("assistant" | "model"))
}

fn messages(protocol: Protocol, body: &Value) -> &Value {
    match protocol {
        Protocol::Anthropic | Protocol::Chat => &body["messages"],
        Protocol::Responses => &body["input"],
        Protocol::Gemini => &body["contents"],
    }
}

/// Returns the model in a path such as `/v1beta/models/gemini-3:generateContent`.
fn model_in_path(path: &str) -> Option<String> {
    let (_, rest) = path.rsplit_once("/models/")?;
    let (model, _) = rest.split_once(':')?;
    Some(model.to_owned())
}

fn prompt(protocol: Protocol, body: &Value) -> String {
    let messages = messages(protocol, body);
    if let Some(text) = messages.as_str() {
        return text.to_owned();
    }
    let users = |message: &&Value| matches!(message["role"].as_str(), Some("user") | None);
    let spoken = |message: &Value| Some(text(message)).filter(|text| !text.is_empty());
    let messages = messages.as_array().map(Vec::as_slice).unwrap_or_default();
    messages
        .iter()
        .rev()
        .filter(users)
        .find_map(spoken)
        .unwrap_or_default()
}

/// Returns the text of a message: its one string, or its blocks, each on its own line.
fn text(message: &Value) -> String {
    let content = [&message["content"], &message["parts"]];
    let blocks = content.iter().filter_map(|content| content.as_array());
    let texts = blocks.flatten().filter_map(|block| block["text"].as_str());
    let whole = message["content"].as_str().into_iter();
    whole.chain(texts).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(protocol: Protocol, body: &Value) -> ModelCall {
        ModelCall::read(protocol, &Uri::from_static("/v1/x"), body)
    }

    #[test]
    fn prompt_is_the_last_user_message() {
        let anthropic = json!({"model": "m", "stream": true, "messages": [
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": "yes"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "user", "content": [{"type": "tool_result", "content": "no text"}]},
        ]});
        let call = read(Protocol::Anthropic, &anthropic);
        assert_eq!((call.model.as_str(), call.prompt.as_str()), ("m", "a\nb"));
        assert!(call.wants_stream);

        let responses = json!({"input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
            {"type": "function_call_output", "output": "x"},
        ]});
        assert_eq!(read(Protocol::Responses, &responses).prompt, "go");
        assert_eq!(
            read(Protocol::Responses, &json!({"input": "go"})).prompt,
            "go"
        );
    }

    #[test]
    fn tokens_are_estimated_over_the_whole_request() {
        let body = json!({"system": "12345678", "messages": [
            {"role": "user", "content": [{"type": "text", "text": "1234"}]},
            {"role": "assistant", "content": "12345678"},
        ]});
        let call = read(Protocol::Anthropic, &body);
        assert_eq!(call.estimated_tokens(), 5);
        assert!(call.is_prefill);
        let body = json!({"contents": [{"role": "user", "parts": [{"text": "hello"}]}]});
        assert!(!read(Protocol::Gemini, &body).is_prefill);
    }

    #[test]
    fn a_gemini_call_names_its_model_in_the_path() {
        let uri = Uri::from_static("/v1beta/models/gemini-3:streamGenerateContent?alt=sse");
        let body = json!({"contents": [{"parts": [{"text": "hello"}]}]});
        let call = ModelCall::read(Protocol::Gemini, &uri, &body);
        assert_eq!(
            (call.model.as_str(), call.prompt.as_str()),
            ("gemini-3", "hello")
        );
        assert!(call.wants_stream);
    }

    #[test]
    fn a_malformed_body_is_an_empty_call() {
        for body in [
            json!(null),
            json!([1]),
            json!({"messages": {"role": 1}, "model": 7}),
        ] {
            let call = read(Protocol::Chat, &body);
            assert_eq!((call.model.as_str(), call.prompt.as_str()), ("", ""));
        }
    }
}
