//! A note for the model at the end of the conversation, in the place that each API allows. Tool calls and their results
//! stay together.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::json_edits::JsonEdits;
use crate::protocol::endpoint::LlmApiEndpoint;
use crate::protocol::json::{escaped, is_string, object, quoted, text, to_list, to_object};

object!(Body {
    messages: "messages",
    input: "input",
    contents: "contents",
});

object!(Message {
    role: "role",
    content: "content" | "parts",
});

/// Returns the request with a short text for the model after everything else. A prefill stays last.
pub fn with_note(endpoint: LlmApiEndpoint, body: &Bytes, note: &str) -> Bytes {
    let changed = match endpoint {
        LlmApiEndpoint::Messages => add_to_messages(body, note),
        LlmApiEndpoint::Chat => add_to_chat(body, note),
        LlmApiEndpoint::Responses => add_to_responses(body, note),
        LlmApiEndpoint::Generate => add_to_generate(body, note),
        LlmApiEndpoint::Other => None,
    };
    changed.unwrap_or_else(|| body.clone())
}

/// Adds the note to the user's last message, after tool results if it has some.
fn add_to_messages(body: &[u8], note: &str) -> Option<Bytes> {
    let body_read: Body<'_> = serde_json::from_slice(body).ok()?;
    let all = to_list::<Message<'_>>(body_read.messages);
    let last = all
        .iter()
        .rfind(|message| is_string(message.role, "user"))?;
    let content = last.content?;
    let mut edits = JsonEdits::new(body);
    if escaped(content).is_some() {
        edits.extend_string(content, &appended_text(content, note)?)?;
    } else {
        let block = format!(r#"{{"type":"text","text":{}}}"#, quoted(note));
        edits.append(content, &block)?;
    }
    edits.apply()
}

/// Adds the note as a separate message, before a prefill.
fn add_to_chat(body: &[u8], note: &str) -> Option<Bytes> {
    let body_read: Body<'_> = serde_json::from_slice(body).ok()?;
    let messages = body_read.messages?;
    let message = format!(r#"{{"role":"user","content":{}}}"#, quoted(note));
    let mut edits = JsonEdits::new(body);
    let last = to_list::<&RawValue>(Some(messages)).last().copied();
    match last.filter(|last| is_string(to_object::<Message<'_>>(Some(last)).role, "assistant")) {
        Some(prefill) => edits.insert_before(prefill, &message)?,
        None => edits.append(messages, &message)?,
    }
    edits.apply()
}

/// Adds the note as a separate item, or extends the input if that is a text.
fn add_to_responses(body: &[u8], note: &str) -> Option<Bytes> {
    let body_read: Body<'_> = serde_json::from_slice(body).ok()?;
    let Some(input) = body_read.input else {
        return super::set_json_member::set_member(body, &["input"], &quoted(note));
    };
    let mut edits = JsonEdits::new(body);
    if escaped(input).is_some() {
        edits.extend_string(input, &appended_text(input, note)?)?;
    } else {
        edits.append(input, &user_item(note))?;
    }
    edits.apply()
}

pub(super) fn user_item(note: &str) -> String {
    format!(
        r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":{}}}]}}"#,
        quoted(note)
    )
}

/// Adds the note as a part of the user's last content, after function results if it has some.
fn add_to_generate(body: &[u8], note: &str) -> Option<Bytes> {
    let body_read: Body<'_> = serde_json::from_slice(body).ok()?;
    let contents = to_list::<Message<'_>>(body_read.contents);
    let last = contents
        .iter()
        .rfind(|content| !is_string(content.role, "model"))?;
    let mut edits = JsonEdits::new(body);
    edits.append(last.content?, &format!(r#"{{"text":{}}}"#, quoted(note)))?;
    edits.apply()
}

/// Returns the escaped extension of a string: the note after an empty line.
fn appended_text(string: &RawValue, note: &str) -> Option<String> {
    let gap = if text(Some(string))?.is_empty() {
        ""
    } else {
        "\n\n"
    };
    let quoted = quoted(&format!("{gap}{note}"));
    Some(quoted.strip_prefix('"')?.strip_suffix('"')?.to_owned())
}
