//! OpenAI Chat Completions.

use serde_json::value::RawValue;

use super::Asked;
use super::conversation::{Conversation, Role};
use crate::protocol::json::{
    count, is, is_filled, is_text, is_true, list, object, read as part, text,
};

object!(Body {
    model: "model",
    stream: "stream",
    max_completion: "max_completion_tokens",
    max: "max_tokens",
    tools: "tools",
    functions: "functions",
    messages: "messages",
    format: "response_format",
});

object!(Format { kind: "type" });

object!(Message {
    role: "role",
    content: "content",
    calls: "tool_calls",
    call: "function_call",
});

object!(Call {
    function: "function"
});

object!(Function {
    name: "name",
    arguments: "arguments"
});

object!(Part {
    kind: "type",
    text: "text" | "refusal"
});

pub(super) fn read(body: &[u8]) -> Option<Asked> {
    let body: Body<'_> = serde_json::from_slice(body).ok()?;
    let format: Format<'_> = part(body.format);
    let mut asked = Asked {
        model: text(body.model).map(Into::into),
        stream: is_true(body.stream),
        tools: is_filled(body.tools) || is_filled(body.functions),
        wants_json: is(format.kind, "json_object") || is(format.kind, "json_schema"),
        max_output: count(body.max_completion.or(body.max)),
        ..Asked::default()
    };
    let mut conversation = Conversation::default();
    conversation.weigh(body.tools.or(body.functions));
    conversation.weigh(body.format);
    for message in list::<Message<'_>>(body.messages) {
        read_message(&mut conversation, &message);
    }
    conversation.finish(&mut asked);
    Some(asked)
}

fn read_message<'a>(conversation: &mut Conversation<'a>, message: &Message<'a>) {
    let role = match text(message.role).as_deref() {
        Some("assistant") => Role::Assistant,
        Some("system" | "developer") => Role::System,
        Some("tool" | "function") => Role::Tool,
        _ => Role::User,
    };
    conversation.begin(role);
    if role == Role::Tool {
        conversation.result(message.content);
    }
    content(conversation, message.content);
    for call in list::<Call<'a>>(message.calls) {
        let function: Function<'a> = part(call.function);
        conversation.call(function.name, function.arguments);
    }
    if message.call.is_some() {
        let function: Function<'a> = part(message.call);
        conversation.call(function.name, function.arguments);
    }
}

fn content<'a>(conversation: &mut Conversation<'a>, content: Option<&'a RawValue>) {
    if is_text(content) {
        return conversation.say(content);
    }
    for part in list::<Part<'a>>(content) {
        if is(part.kind, "image_url") {
            conversation.show_image();
        }
        conversation.say(part.text);
    }
}
