//! Adds an unusable response and its validation error to a request, so that the model can correct it.

use bytes::Bytes;

use super::json_edits::JsonEdits;
use super::note::{user_item, with_note};
use crate::protocol::endpoint::LlmApiEndpoint;
use crate::protocol::json::{escaped, is_string, object, quoted, to_object};

object!(Body {
    messages: "messages",
    input: "input",
    contents: "contents",
    thinking: "thinking",
});

object!(Thinking { kind: "type" });

/// Returns the request with the unusable response and the reason, which completes "Your last answer …".
pub fn with_error_context(
    endpoint: LlmApiEndpoint,
    body: &Bytes,
    wrong_output: &str,
    why: &str,
) -> Bytes {
    let complaint = format!("Your last answer {why}. Answer again without this problem.");
    // Some APIs reject an empty assistant message.
    let said = if wrong_output.trim().is_empty() {
        None
    } else {
        append_turns(endpoint, body, wrong_output, &complaint)
    };
    said.unwrap_or_else(|| with_note(endpoint, body, &quoted_complaint(wrong_output, why)))
}

/// Returns both as one text, for responses that cannot be an assistant message.
fn quoted_complaint(wrong_output: &str, why: &str) -> String {
    match wrong_output.trim() {
        "" => format!("Your last answer {why}. Answer again without this problem."),
        wrong => {
            format!("Your last answer {why}. Answer again without this problem. It was:\n\n{wrong}")
        }
    }
}

/// Appends the response as the assistant's message and the complaint as the user's; `None` if that is impossible.
fn append_turns(
    endpoint: LlmApiEndpoint,
    body: &[u8],
    wrong: &str,
    complaint: &str,
) -> Option<Bytes> {
    let body_read: Body<'_> = serde_json::from_slice(body).ok()?;
    let messages = match endpoint {
        LlmApiEndpoint::Messages | LlmApiEndpoint::Chat => body_read.messages?,
        LlmApiEndpoint::Responses => body_read.input?,
        LlmApiEndpoint::Generate => body_read.contents?,
        LlmApiEndpoint::Other => return None,
    };
    let mut edits = JsonEdits::new(body);
    match endpoint {
        LlmApiEndpoint::Messages => {
            // With thinking on, an assistant message must begin with its thoughts, which are no longer available.
            let thinking: Thinking<'_> = to_object(body_read.thinking);
            if thinking.kind.is_some() && !is_string(thinking.kind, "disabled") {
                return None;
            }
            edits.append(messages, &role_messages(wrong, complaint))?;
        }
        LlmApiEndpoint::Chat => edits.append(messages, &role_messages(wrong, complaint))?,
        LlmApiEndpoint::Responses => {
            let items = format!("{},{}", assistant_item(wrong), user_item(complaint));
            match escaped(messages) {
                Some(_) => {
                    let first = format!(
                        r#"{{"type":"message","role":"user","content":{}}}"#,
                        messages.get()
                    );
                    edits.replace(messages, format!("[{first},{items}]"))?;
                }
                None => edits.append(messages, &items)?,
            }
        }
        LlmApiEndpoint::Generate => edits.append(messages, &gemini_contents(wrong, complaint))?,
        LlmApiEndpoint::Other => return None,
    }
    edits.apply()
}

fn role_messages(wrong: &str, complaint: &str) -> String {
    format!(
        r#"{{"role":"assistant","content":{}}},{{"role":"user","content":{}}}"#,
        quoted(wrong),
        quoted(complaint)
    )
}

fn assistant_item(wrong: &str) -> String {
    format!(
        r#"{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":{}}}]}}"#,
        quoted(wrong)
    )
}

fn gemini_contents(wrong: &str, complaint: &str) -> String {
    format!(
        r#"{{"role":"model","parts":[{{"text":{}}}]}},{{"role":"user","parts":[{{"text":{}}}]}}"#,
        quoted(wrong),
        quoted(complaint)
    )
}
