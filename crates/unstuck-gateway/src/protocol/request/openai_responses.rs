//! Reads the facts of an OpenAI Responses request.

use serde_json::value::RawValue;

use super::RequestFacts;
use super::conversation::{ConversationReader, Speaker};
use crate::protocol::json::{
    is_filled, is_string, is_text, is_true, object, text, to_count, to_list, to_object as part,
};

object!(Body {
    model: "model",
    stream: "stream",
    max: "max_output_tokens",
    instructions: "instructions",
    tools: "tools",
    input: "input",
    text: "text",
    previous: "previous_response_id",
});

object!(Output { format: "format" });

object!(Format { kind: "type" });

object!(Item {
    kind: "type",
    role: "role",
    content: "content",
    name: "name",
    arguments: "arguments" | "input" | "action",
    output: "output",
    summary: "summary",
});

object!(Part {
    kind: "type",
    text: "text" | "refusal"
});

pub(super) fn read_request(body: &[u8]) -> Option<RequestFacts> {
    let body: Body<'_> = serde_json::from_slice(body).ok()?;
    let output: Output<'_> = part(body.text);
    let format: Format<'_> = part(output.format);
    let mut asked = RequestFacts {
        model: text(body.model).map(Into::into),
        stream: is_true(body.stream),
        tools: is_filled(body.tools),
        wants_json: is_string(format.kind, "json_object") || is_string(format.kind, "json_schema"),
        max_output: to_count(body.max),
        ..RequestFacts::default()
    };
    let mut conversation = ConversationReader::default();
    conversation.add_context(body.instructions);
    conversation.add_context(body.tools);
    conversation.set_state(body.previous);
    if is_text(body.input) {
        conversation.begin_message(Speaker::User);
        conversation.add_text(body.input);
    }
    for item in to_list::<Item<'_>>(body.input) {
        read_item(&mut conversation, &item);
    }
    conversation.finish(&mut asked);
    Some(asked)
}

fn read_item<'a>(conversation: &mut ConversationReader<'a>, item: &Item<'a>) {
    let kind = text(item.kind);
    match kind.as_deref() {
        None | Some("message") => {
            conversation.begin_message(role(item.role));
            read_content(conversation, item.content);
        }
        // Reasoning belongs to the following call.
        Some("reasoning") => conversation.add_context(item.summary),
        Some(kind) if kind.ends_with("_output") => {
            conversation.begin_message(Speaker::Tool);
            conversation.add_result(item.output);
            read_content(conversation, item.output);
        }
        Some(kind) if kind.ends_with("_call") => {
            conversation.begin_message(Speaker::Assistant);
            conversation.add_call(item.name.or(item.kind), item.arguments);
        }
        Some(_) => {}
    }
}

fn role(role: Option<&RawValue>) -> Speaker {
    match text(role).as_deref() {
        Some("assistant") => Speaker::Assistant,
        Some("system" | "developer") => Speaker::System,
        _ => Speaker::User,
    }
}

fn read_content<'a>(conversation: &mut ConversationReader<'a>, content: Option<&'a RawValue>) {
    if is_text(content) {
        return conversation.add_text(content);
    }
    for part in to_list::<Part<'a>>(content) {
        if is_string(part.kind, "input_image") {
            conversation.add_image();
        }
        conversation.add_text(part.text);
    }
}
