//! Reads the facts of a Gemini generateContent request. Its JSON may use camel case or snake case.

use serde_json::value::RawValue;

use super::RequestFacts;
use super::conversation::{ConversationReader, Speaker};
use crate::protocol::endpoint::gemini_model;
use crate::protocol::json::{
    is_filled, is_string, object, text, to_count, to_list, to_object as part,
};

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

pub(super) fn read_request(path: &str, body: &[u8]) -> RequestFacts {
    let mut asked = RequestFacts::default();
    if let Some((model, streams)) = gemini_model(path) {
        asked.model = path.get(model).map(Into::into);
        asked.stream = streams;
    }
    let Ok(body) = serde_json::from_slice::<Body<'_>>(body) else {
        return asked;
    };
    let config: Config<'_> = part(body.config);
    asked.tools = is_filled(body.tools);
    asked.wants_json = config.schema.is_some() || is_string(config.mime, "application/json");
    asked.max_output = to_count(config.max);
    let mut conversation = ConversationReader::default();
    conversation.add_context(body.system);
    conversation.add_context(body.tools);
    for content in to_list::<Content<'_>>(body.contents) {
        let speaker = match text(content.role).as_deref() {
            Some("model") => Speaker::Assistant,
            _ => Speaker::User,
        };
        conversation.begin_message(speaker);
        for part in to_list::<Part<'_>>(content.parts) {
            read_part(&mut conversation, &part);
        }
    }
    conversation.finish(&mut asked);
    asked
}

fn read_part<'a>(conversation: &mut ConversationReader<'a>, piece: &Part<'a>) {
    conversation.add_text(piece.text);
    if is_image(piece.inline) {
        conversation.add_image();
    }
    if piece.call.is_some() {
        let call: Call<'a> = part(piece.call);
        conversation.add_call(call.name, call.args);
    }
    if piece.response.is_some() {
        let response: Response<'a> = part(piece.response);
        conversation.add_context(response.response);
        conversation.add_result(response.response.or(piece.response));
    }
}

fn is_image(data: Option<&RawValue>) -> bool {
    let data: Data<'_> = part(data);
    text(data.mime).is_some_and(|mime| mime.starts_with("image/"))
}
