//! Changes to a request: one part, and no other byte. An unreadable request is left as it is.

mod json_edits;
mod note;
mod set_json_member;
#[cfg(test)]
mod tests;
mod unusable_output_feedback;

use bytes::Bytes;

use super::endpoint::{LlmApiEndpoint, gemini_model};
use super::json::{members, quoted};
use json_edits::JsonEdits;

pub use note::with_note;
pub use unusable_output_feedback::with_error_context;

/// The replaced parts of a request; `None` leaves a part as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RewrittenRequest {
    /// The new path.
    pub path: Option<String>,
    /// The new body.
    pub body: Option<Bytes>,
}

/// Returns the request for another model. Gemini names it in the path, the others in the body.
pub fn with_model(
    endpoint: LlmApiEndpoint,
    path: &str,
    body: &[u8],
    model: &str,
) -> RewrittenRequest {
    match endpoint {
        LlmApiEndpoint::Other => RewrittenRequest::default(),
        LlmApiEndpoint::Generate => RewrittenRequest {
            path: path_with_model(path, model),
            body: None,
        },
        LlmApiEndpoint::Messages | LlmApiEndpoint::Chat | LlmApiEndpoint::Responses => {
            RewrittenRequest {
                path: None,
                body: set_json_member::set_member(body, &["model"], &quoted(model)),
            }
        }
    }
}

fn path_with_model(path: &str, model: &str) -> Option<String> {
    let (place, _) = gemini_model(path)?;
    let model = model.strip_prefix("models/").unwrap_or(model);
    let mut changed = path.to_owned();
    changed.replace_range(place, &percent_encode(model));
    Some(changed)
}

/// Returns the text as one path segment.
fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

/// Returns the request with another output limit, in tokens.
pub fn with_max_output(endpoint: LlmApiEndpoint, body: &Bytes, tokens: u64) -> Bytes {
    let value = tokens.to_string();
    let changed = match endpoint {
        LlmApiEndpoint::Messages => set_json_member::set_member(body, &["max_tokens"], &value),
        LlmApiEndpoint::Chat => {
            set_json_member::set_member(body, &["max_completion_tokens", "max_tokens"], &value)
        }
        LlmApiEndpoint::Responses => {
            set_json_member::set_member(body, &["max_output_tokens"], &value)
        }
        LlmApiEndpoint::Generate => generate_max_output(body, &value),
        LlmApiEndpoint::Other => None,
    };
    changed.unwrap_or_else(|| body.clone())
}

fn generate_max_output(body: &[u8], value: &str) -> Option<Bytes> {
    let names = ["maxOutputTokens", "max_output_tokens"];
    let mut edits = JsonEdits::new(body);
    for (key, config) in members(body)? {
        if !matches!(&*key, "generationConfig" | "generation_config") {
            continue;
        }
        let changed = set_json_member::set_member(config.get().as_bytes(), &names, value);
        let changed = changed.and_then(|changed| String::from_utf8(changed.into()).ok());
        let whole = || format!(r#"{{"maxOutputTokens":{value}}}"#);
        edits.replace(config, changed.unwrap_or_else(whole))?;
    }
    if edits.is_empty() {
        let config = format!(r#"{{"maxOutputTokens":{value}}}"#);
        return set_json_member::set_member(body, &["generationConfig"], &config);
    }
    edits.apply()
}
