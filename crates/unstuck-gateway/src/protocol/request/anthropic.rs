//! Reads the facts of an Anthropic Messages request.

use serde_json::value::RawValue;

use super::RequestFacts;
use super::conversation::{ConversationReader, Speaker};
use crate::protocol::json::{
    is_filled, is_string, is_text, is_true, object, text, to_count, to_list, to_object as part,
};

object!(Body {
    model: "model",
    stream: "stream",
    max_tokens: "max_tokens",
    system: "system",
    tools: "tools",
    messages: "messages",
    format: "output_format",
    output: "output_config",
});

object!(Output { format: "format" });

object!(Message {
    role: "role",
    content: "content"
});

object!(Block {
    kind: "type",
    text: "text",
    thinking: "thinking",
    name: "name",
    input: "input",
    content: "content",
    error: "is_error",
});

pub(super) fn read_request(body: &[u8]) -> Option<RequestFacts> {
    let body: Body<'_> = serde_json::from_slice(body).ok()?;
    let output: Output<'_> = part(body.output);
    let mut asked = RequestFacts {
        model: text(body.model).map(Into::into),
        stream: is_true(body.stream),
        tools: is_filled(body.tools),
        wants_json: body.format.or(output.format).is_some(),
        max_output: to_count(body.max_tokens),
        ..RequestFacts::default()
    };
    let mut conversation = ConversationReader::default();
    conversation.add_context(body.system);
    conversation.add_context(body.tools);
    for message in to_list::<Message<'_>>(body.messages) {
        conversation.begin_message(role(message.role));
        read_content(&mut conversation, message.content);
    }
    conversation.finish(&mut asked);
    Some(asked)
}

fn role(role: Option<&RawValue>) -> Speaker {
    match text(role).as_deref() {
        Some("assistant") => Speaker::Assistant,
        Some("system") => Speaker::System,
        _ => Speaker::User,
    }
}

fn read_content<'a>(conversation: &mut ConversationReader<'a>, content: Option<&'a RawValue>) {
    if is_text(content) {
        return conversation.add_text(content);
    }
    for block in to_list::<Block<'a>>(content) {
        match text(block.kind).as_deref() {
            Some("tool_use") => conversation.add_call(block.name, block.input),
            Some("tool_result") => {
                conversation.add_result(block.content.or(block.error));
                read_result(conversation, block.content);
            }
            Some("image" | "document") => conversation.add_image(),
            _ => {
                conversation.add_text(block.text);
                conversation.add_context(block.thinking);
            }
        }
    }
}

fn read_result<'a>(conversation: &mut ConversationReader<'a>, content: Option<&'a RawValue>) {
    if is_text(content) {
        return conversation.add_context(content);
    }
    for block in to_list::<Block<'a>>(content) {
        if is_string(block.kind, "image") {
            conversation.add_image();
        }
        conversation.add_context(block.text);
    }
}
