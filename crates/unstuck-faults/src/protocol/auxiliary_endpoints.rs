//! Auxiliary endpoints: models, token counts, embeddings, files.

use hyper::Method;
use serde_json::{Value, json};

use super::{AuxiliaryQuery, CREATED, ModelCall, Protocol};

/// The models in the list; every other name is answered just as well.
const LISTED_MODELS: [&str; 3] = ["claude-sonnet-4-5", "gpt-5.1", "gemini-3-pro"];

/// Length of an embedding.
const DIMENSIONS: usize = 8;

/// Returns a plausible answer, or `None` if the provider has none.
pub(crate) fn answer(
    protocol: Protocol,
    side: AuxiliaryQuery,
    method: &Method,
    path: &str,
    body: &Value,
    call: &ModelCall,
) -> Option<Value> {
    Some(match side {
        AuxiliaryQuery::Probe => json!({}),
        AuxiliaryQuery::Models => models(protocol, path),
        AuxiliaryQuery::CountTokens => count_tokens(protocol, call),
        AuxiliaryQuery::Embeddings => embeddings(protocol, path, body, call),
        AuxiliaryQuery::Files => files(protocol, method, path)?,
        AuxiliaryQuery::Unknown => return None,
    })
}

fn models(protocol: Protocol, path: &str) -> Value {
    let model = |id: &str| match protocol {
        Protocol::Anthropic => json!({
            "type": "model", "id": id, "display_name": id, "created_at": "2025-11-13T00:00:00Z",
        }),
        Protocol::Responses | Protocol::Chat => json!({
            "id": id, "object": "model", "created": CREATED, "owned_by": "unstuck-faults",
        }),
        Protocol::Gemini => json!({
            "name": format!("models/{id}"), "version": "1", "displayName": id,
            "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        }),
    };
    if let Some((_, id)) = path.split_once("/models/") {
        return model(id);
    }
    let all = LISTED_MODELS.map(model);
    match protocol {
        Protocol::Anthropic => json!({
            "data": all, "has_more": false, "first_id": LISTED_MODELS[0], "last_id": LISTED_MODELS[2],
        }),
        Protocol::Responses | Protocol::Chat => json!({"object": "list", "data": all}),
        Protocol::Gemini => json!({"models": all}),
    }
}

fn count_tokens(protocol: Protocol, call: &ModelCall) -> Value {
    match protocol {
        Protocol::Gemini => json!({"totalTokens": call.estimated_tokens()}),
        Protocol::Responses => {
            json!({"object": "response.input_tokens", "input_tokens": call.estimated_tokens()})
        }
        _ => json!({"input_tokens": call.estimated_tokens()}),
    }
}

fn embeddings(protocol: Protocol, path: &str, body: &Value, call: &ModelCall) -> Value {
    if protocol == Protocol::Gemini {
        let one = json!({"values": embedding(0)});
        let batch = body["requests"].as_array().map_or(1, Vec::len);
        return if path.ends_with(":batchEmbedContents") {
            let all: Vec<_> = (0..batch)
                .map(|place| json!({"values": embedding(place)}))
                .collect();
            json!({"embeddings": all})
        } else {
            json!({"embedding": one})
        };
    }
    let count = body["input"].as_array().map_or(1, Vec::len);
    let data: Vec<_> = (0..count)
        .map(|place| json!({"object": "embedding", "index": place, "embedding": embedding(place)}))
        .collect();
    json!({
        "object": "list", "data": data, "model": call.model,
        "usage": {"prompt_tokens": call.estimated_tokens(), "total_tokens": call.estimated_tokens()},
    })
}

/// Returns numbers that differ from text to text and are the same each time.
fn embedding(place: usize) -> Vec<f64> {
    (0..DIMENSIONS)
        .map(|dimension| ((place * DIMENSIONS + dimension) as f64).sin())
        .collect()
}

fn files(protocol: Protocol, method: &Method, path: &str) -> Option<Value> {
    let id = path.rsplit_once("/files/").map(|(_, id)| id);
    let file = |id: &str| match protocol {
        Protocol::Anthropic => json!({
            "id": id, "type": "file", "filename": "notes.txt", "mime_type": "text/plain", "size_bytes": 12,
            "created_at": "2025-11-13T00:00:00Z", "downloadable": false,
        }),
        Protocol::Gemini => json!({
            "name": format!("files/{id}"), "mimeType": "text/plain", "sizeBytes": "12", "state": "ACTIVE",
        }),
        _ => json!({
            "id": id, "object": "file", "bytes": 12, "created_at": CREATED, "filename": "notes.txt",
            "purpose": "user_data", "status": "processed",
        }),
    };
    match (method, id) {
        (&Method::POST, None) => Some(match protocol {
            Protocol::Gemini => json!({"file": file("file-00000001")}),
            _ => file("file-00000001"),
        }),
        (&Method::GET, None) => Some(match protocol {
            Protocol::Gemini => json!({"files": [file("file-00000001")]}),
            _ => json!({"object": "list", "data": [file("file-00000001")], "has_more": false}),
        }),
        (&Method::GET, Some(id)) => Some(match id.strip_suffix("/content") {
            Some(_) => json!("twelve bytes"),
            None => file(id),
        }),
        (&Method::DELETE, Some(id)) => Some(match protocol {
            Protocol::Gemini => json!({}),
            Protocol::Anthropic => json!({"id": id, "type": "file_deleted"}),
            _ => json!({"id": id, "object": "file", "deleted": true}),
        }),
        _ => None,
    }
}
