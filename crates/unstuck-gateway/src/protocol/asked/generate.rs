//! Gemini generateContent. Its JSON may be written in camel or in snake case.

use serde_json::value::RawValue;

use super::Asked;
use super::conversation::{Conversation, Role};
use crate::protocol::endpoint::gemini_model;
use crate::protocol::json::{count, is, is_filled, list, object, read as part, text};

object!(Body {
    contents: "contents",
    system: "systemInstruction" | "system_instruction",
    tools: "tools",
    config: "generationConfig" | "generation_config",
});

object!(Config {
    max: "maxOutputTokens" | "max_output_tokens",
    mime: "responseMimeType" | "response_mime_type",
    schema: "responseSchema" | "response_schema" | "responseJsonSchema" | "response_json_schema",
});

object!(Content {
    role: "role",
    parts: "parts"
});

object!(Part {
    text: "text",
    inline: "inlineData" | "inline_data" | "fileData" | "file_data",
    call: "functionCall" | "function_call",
    response: "functionResponse" | "function_response",
});

object!(Data {
    mime: "mimeType" | "mime_type"
});

object!(Call {
    name: "name",
    args: "args"
});

object!(Response {
    response: "response"
});

pub(super) fn read(path: &str, body: &[u8]) -> Asked {
    let mut asked = Asked::default();
    if let Some((model, streams)) = gemini_model(path) {
        asked.model = path.get(model).map(Into::into);
        asked.stream = streams;
    }
    let Ok(body) = serde_json::from_slice::<Body<'_>>(body) else {
        return asked;
    };
    let config: Config<'_> = part(body.config);
    asked.tools = is_filled(body.tools);
    asked.wants_json = config.schema.is_some() || is(config.mime, "application/json");
    asked.max_output = count(config.max);
    let mut conversation = Conversation::default();
    conversation.weigh(body.system);
    conversation.weigh(body.tools);
    for content in list::<Content<'_>>(body.contents) {
        let speaker = match text(content.role).as_deref() {
            Some("model") => Role::Assistant,
            _ => Role::User,
        };
        conversation.begin(speaker);
        for part in list::<Part<'_>>(content.parts) {
            read_part(&mut conversation, &part);
        }
    }
    conversation.finish(&mut asked);
    asked
}

fn read_part<'a>(conversation: &mut Conversation<'a>, piece: &Part<'a>) {
    conversation.say(piece.text);
    if is_image(piece.inline) {
        conversation.show_image();
    }
    if piece.call.is_some() {
        let call: Call<'a> = part(piece.call);
        conversation.call(call.name, call.args);
    }
    if piece.response.is_some() {
        let response: Response<'a> = part(piece.response);
        conversation.weigh(response.response);
        conversation.result(response.response.or(piece.response));
    }
}

fn is_image(data: Option<&RawValue>) -> bool {
    let data: Data<'_> = part(data);
    text(data.mime).is_some_and(|mime| mime.starts_with("image/"))
}
