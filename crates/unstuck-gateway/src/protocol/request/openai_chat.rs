//! Reads the facts of an OpenAI Chat Completions request.

use serde_json::value::RawValue;

use super::RequestFacts;
use super::conversation::{ConversationReader, Speaker};
use crate::protocol::json::{
    is_filled, is_string, is_text, is_true, object, text, to_count, to_list, to_object as part,
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

pub(super) fn read_request(body: &[u8]) -> Option<RequestFacts> {
    let body: Body<'_> = serde_json::from_slice(body).ok()?;
    let format: Format<'_> = part(body.format);
    let mut asked = RequestFacts {
        model: text(body.model).map(Into::into),
        stream: is_true(body.stream),
        tools: is_filled(body.tools) || is_filled(body.functions),
        wants_json: is_string(format.kind, "json_object") || is_string(format.kind, "json_schema"),
        max_output: to_count(body.max_completion.or(body.max)),
        ..RequestFacts::default()
    };
    let mut conversation = ConversationReader::default();
    conversation.add_context(body.tools.or(body.functions));
    conversation.add_context(body.format);
    for message in to_list::<Message<'_>>(body.messages) {
        read_message(&mut conversation, &message);
    }
    conversation.finish(&mut asked);
    Some(asked)
}

fn read_message<'a>(conversation: &mut ConversationReader<'a>, message: &Message<'a>) {
    let role = match text(message.role).as_deref() {
        Some("assistant") => Speaker::Assistant,
        Some("system" | "developer") => Speaker::System,
        Some("tool" | "function") => Speaker::Tool,
        _ => Speaker::User,
    };
    conversation.begin_message(role);
    if role == Speaker::Tool {
        conversation.add_result(message.content);
    }
    read_content(conversation, message.content);
    for call in to_list::<Call<'a>>(message.calls) {
        let function: Function<'a> = part(call.function);
        conversation.add_call(function.name, function.arguments);
    }
    if message.call.is_some() {
        let function: Function<'a> = part(message.call);
        conversation.add_call(function.name, function.arguments);
    }
}

fn read_content<'a>(conversation: &mut ConversationReader<'a>, content: Option<&'a RawValue>) {
    if is_text(content) {
        return conversation.add_text(content);
    }
    for part in to_list::<Part<'a>>(content) {
        if is_string(part.kind, "image_url") {
            conversation.add_image();
        }
        conversation.add_text(part.text);
    }
}
