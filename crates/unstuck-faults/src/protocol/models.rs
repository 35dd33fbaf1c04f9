//! The side questions that clients ask before they work: which models, how many tokens.

use serde_json::{Value, json};

use super::{CREATED, Call, Protocol};

/// The models that the list names; every other name is answered just as well.
const KNOWN: [&str; 3] = ["claude-sonnet-4-5", "gpt-5.1", "gemini-3-pro"];

/// The list of models.
pub(crate) fn models(protocol: Protocol) -> Value {
    match protocol {
        Protocol::Anthropic => json!({
            "data": KNOWN.map(|id| json!({
                "type": "model", "id": id, "display_name": id, "created_at": "2025-11-13T00:00:00Z",
            })),
            "has_more": false, "first_id": KNOWN[0], "last_id": KNOWN[2],
        }),
        Protocol::Responses | Protocol::Chat => json!({
            "object": "list",
            "data": KNOWN.map(|id| json!({
                "id": id, "object": "model", "created": CREATED, "owned_by": "unstuck-faults",
            })),
        }),
        Protocol::Gemini => json!({
            "models": KNOWN.map(|id| json!({
                "name": format!("models/{id}"), "version": "1", "displayName": id,
                "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536,
                "supportedGenerationMethods": ["generateContent", "countTokens"],
            })),
        }),
    }
}

/// How many tokens a prompt has.
pub(crate) fn count_tokens(protocol: Protocol, call: &Call) -> Value {
    match protocol {
        Protocol::Gemini => json!({"totalTokens": call.tokens()}),
        _ => json!({"input_tokens": call.tokens()}),
    }
}
