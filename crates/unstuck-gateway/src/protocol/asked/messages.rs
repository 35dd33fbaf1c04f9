//! Anthropic Messages.

use serde_json::value::RawValue;

use super::Asked;
use super::conversation::{Conversation, Role};
use crate::protocol::json::{
    count, is, is_filled, is_text, is_true, list, object, read as part, text,
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

pub(super) fn read(body: &[u8]) -> Option<Asked> {
    let body: Body<'_> = serde_json::from_slice(body).ok()?;
    let output: Output<'_> = part(body.output);
    let mut asked = Asked {
        model: text(body.model).map(Into::into),
        stream: is_true(body.stream),
        tools: is_filled(body.tools),
        wants_json: body.format.or(output.format).is_some(),
        max_output: count(body.max_tokens),
        ..Asked::default()
    };
    let mut conversation = Conversation::default();
    conversation.weigh(body.system);
    conversation.weigh(body.tools);
    for message in list::<Message<'_>>(body.messages) {
        conversation.begin(role(message.role));
        content(&mut conversation, message.content);
    }
    conversation.finish(&mut asked);
    Some(asked)
}

fn role(role: Option<&RawValue>) -> Role {
    match text(role).as_deref() {
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        _ => Role::User,
    }
}

fn content<'a>(conversation: &mut Conversation<'a>, content: Option<&'a RawValue>) {
    if is_text(content) {
        return conversation.say(content);
    }
    for block in list::<Block<'a>>(content) {
        match text(block.kind).as_deref() {
            Some("tool_use") => conversation.call(block.name, block.input),
            Some("tool_result") => {
                conversation.result(block.content.or(block.error));
                result(conversation, block.content);
            }
            Some("image" | "document") => conversation.show_image(),
            _ => {
                conversation.say(block.text);
                conversation.weigh(block.thinking);
            }
        }
    }
}

fn result<'a>(conversation: &mut Conversation<'a>, content: Option<&'a RawValue>) {
    if is_text(content) {
        return conversation.weigh(content);
    }
    for block in list::<Block<'a>>(content) {
        if is(block.kind, "image") {
            conversation.show_image();
        }
        conversation.weigh(block.text);
    }
}
