//! OpenAI Responses.

use serde_json::value::RawValue;

use super::Asked;
use super::conversation::{Conversation, Role};
use crate::protocol::json::{
    count, is, is_filled, is_text, is_true, list, object, read as part, text,
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

pub(super) fn read(body: &[u8]) -> Option<Asked> {
    let body: Body<'_> = serde_json::from_slice(body).ok()?;
    let output: Output<'_> = part(body.text);
    let format: Format<'_> = part(output.format);
    let mut asked = Asked {
        model: text(body.model).map(Into::into),
        stream: is_true(body.stream),
        tools: is_filled(body.tools),
        wants_json: is(format.kind, "json_object") || is(format.kind, "json_schema"),
        max_output: count(body.max),
        ..Asked::default()
    };
    let mut conversation = Conversation::default();
    conversation.weigh(body.instructions);
    conversation.weigh(body.tools);
    conversation.continues(body.previous);
    if is_text(body.input) {
        conversation.begin(Role::User);
        conversation.say(body.input);
    }
    for item in list::<Item<'_>>(body.input) {
        read_item(&mut conversation, &item);
    }
    conversation.finish(&mut asked);
    Some(asked)
}

fn read_item<'a>(conversation: &mut Conversation<'a>, item: &Item<'a>) {
    let kind = text(item.kind);
    match kind.as_deref() {
        None | Some("message") => {
            conversation.begin(role(item.role));
            content(conversation, item.content);
        }
        // What the model thought belongs to the call that follows it.
        Some("reasoning") => conversation.weigh(item.summary),
        Some(kind) if kind.ends_with("_output") => {
            conversation.begin(Role::Tool);
            conversation.result(item.output);
            content(conversation, item.output);
        }
        Some(kind) if kind.ends_with("_call") => {
            conversation.begin(Role::Assistant);
            conversation.call(item.name.or(item.kind), item.arguments);
        }
        Some(_) => {}
    }
}

fn role(role: Option<&RawValue>) -> Role {
    match text(role).as_deref() {
        Some("assistant") => Role::Assistant,
        Some("system" | "developer") => Role::System,
        _ => Role::User,
    }
}

fn content<'a>(conversation: &mut Conversation<'a>, content: Option<&'a RawValue>) {
    if is_text(content) {
        return conversation.say(content);
    }
    for part in list::<Part<'a>>(content) {
        if is(part.kind, "input_image") {
            conversation.show_image();
        }
        conversation.say(part.text);
    }
}
