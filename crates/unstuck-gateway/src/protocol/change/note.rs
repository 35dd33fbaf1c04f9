//! A note for the model at the end of the conversation, where each API takes one. Calls of tools and their results stay
//! together.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::edit::Edits;
use crate::protocol::endpoint::Endpoint;
use crate::protocol::json::{escaped, is, list, object, quoted, read, text};

object!(Body {
    messages: "messages",
    input: "input",
    contents: "contents",
});

object!(Message {
    role: "role",
    content: "content" | "parts",
});

/// The request with a short text for the model after all else that it is shown. A prefill stays the last.
pub fn with_note(endpoint: Endpoint, body: &Bytes, note: &str) -> Bytes {
    let changed = match endpoint {
        Endpoint::Messages => messages(body, note),
        Endpoint::Chat => chat(body, note),
        Endpoint::Responses => responses(body, note),
        Endpoint::Generate => generate(body, note),
        Endpoint::Other => None,
    };
    changed.unwrap_or_else(|| body.clone())
}

/// The note goes into the user's last message, behind the results of tools if it has some.
fn messages(body: &[u8], note: &str) -> Option<Bytes> {
    let body_read: Body<'_> = serde_json::from_slice(body).ok()?;
    let all = list::<Message<'_>>(body_read.messages);
    let last = all.iter().rfind(|message| is(message.role, "user"))?;
    let content = last.content?;
    let mut edits = Edits::new(body);
    if escaped(content).is_some() {
        edits.extend(content, &continued(content, note)?)?;
    } else {
        let block = format!(r#"{{"type":"text","text":{}}}"#, quoted(note));
        edits.append(content, &block)?;
    }
    edits.apply()
}

/// The note is a message of its own, before a prefill.
fn chat(body: &[u8], note: &str) -> Option<Bytes> {
    let body_read: Body<'_> = serde_json::from_slice(body).ok()?;
    let messages = body_read.messages?;
    let message = format!(r#"{{"role":"user","content":{}}}"#, quoted(note));
    let mut edits = Edits::new(body);
    let last = list::<&RawValue>(Some(messages)).last().copied();
    match last.filter(|last| is(read::<Message<'_>>(Some(last)).role, "assistant")) {
        Some(prefill) => edits.insert_before(prefill, &message)?,
        None => edits.append(messages, &message)?,
    }
    edits.apply()
}

/// The note is an item of its own, or goes on with the input where that is a text.
fn responses(body: &[u8], note: &str) -> Option<Bytes> {
    let body_read: Body<'_> = serde_json::from_slice(body).ok()?;
    let Some(input) = body_read.input else {
        return super::member::set(body, &["input"], &quoted(note));
    };
    let mut edits = Edits::new(body);
    if escaped(input).is_some() {
        edits.extend(input, &continued(input, note)?)?;
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

/// The note is a part of the user's last content, behind the results of functions if it has some.
fn generate(body: &[u8], note: &str) -> Option<Bytes> {
    let body_read: Body<'_> = serde_json::from_slice(body).ok()?;
    let contents = list::<Message<'_>>(body_read.contents);
    let last = contents
        .iter()
        .rfind(|content| !is(content.role, "model"))?;
    let mut edits = Edits::new(body);
    edits.append(last.content?, &format!(r#"{{"text":{}}}"#, quoted(note)))?;
    edits.apply()
}

/// What a string goes on with, escaped: the note after an empty line.
fn continued(string: &RawValue, note: &str) -> Option<String> {
    let gap = match text(Some(string))?.is_empty() {
        true => "",
        false => "\n\n",
    };
    let quoted = quoted(&format!("{gap}{note}"));
    Some(quoted.strip_prefix('"')?.strip_suffix('"')?.to_owned())
}
