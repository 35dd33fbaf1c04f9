//! Gemini generateContent.

use serde_json::value::RawValue;

use super::{Finish, Frame, Reading, calls};
use crate::protocol::json::{count, filled_text, is_true, list, object, read, text};

object!(Chunk {
    candidates: "candidates",
    usage: "usageMetadata" | "usage_metadata",
    model: "modelVersion" | "model_version",
    feedback: "promptFeedback" | "prompt_feedback",
    error: "error",
});

object!(Candidate {
    content: "content",
    finish_reason: "finishReason" | "finish_reason",
});

object!(Content { parts: "parts" });

object!(Part {
    text: "text",
    thought: "thought",
    call: "functionCall" | "function_call",
    inline: "inlineData" | "inline_data",
    code: "executableCode" | "executable_code" | "codeExecutionResult",
});

object!(Call {
    name: "name",
    args: "args"
});

object!(Feedback {
    reason: "blockReason" | "block_reason"
});

object!(Usage {
    prompt: "promptTokenCount" | "prompt_token_count",
    tools: "toolUsePromptTokenCount" | "tool_use_prompt_token_count",
    cached: "cachedContentTokenCount" | "cached_content_token_count",
    candidates: "candidatesTokenCount" | "candidates_token_count",
    thoughts: "thoughtsTokenCount" | "thoughts_token_count",
});

pub(super) fn chunk(reading: &mut Reading, data: &[u8]) -> Option<Frame> {
    let open = data.trim_ascii_start().starts_with(b"{");
    let chunk: Chunk<'_> = open.then(|| serde_json::from_slice(data).ok()).flatten()?;
    reading.name_model(chunk.model);
    count_tokens(reading, chunk.usage);
    if let Some(error) = chunk.error {
        return Some(reading.fail(error.get()));
    }
    let mut content = false;
    for candidate in list::<Candidate<'_>>(chunk.candidates) {
        let parts = read::<Content<'_>>(candidate.content).parts;
        for part in list::<Part<'_>>(parts) {
            content |= take(reading, &part);
        }
        finish(reading, candidate.finish_reason);
    }
    if filled_text(read::<Feedback<'_>>(chunk.feedback).reason).is_some() {
        reading.finish(Finish::ContentFilter);
        reading.ending = true;
    }
    reading.complete = reading.ending && !reading.in_array;
    Some(match (content, reading.ending) {
        (true, _) => Frame::Content,
        (false, true) => Frame::End,
        (false, false) => Frame::Lifecycle,
    })
}

/// Takes in a part; whether there is something for a user in it.
fn take(reading: &mut Reading, part: &Part<'_>) -> bool {
    if part.call.is_some() {
        let call: Call<'_> = read(part.call);
        let name = text(call.name).unwrap_or_default();
        let args = call.args.map_or("{}", RawValue::get);
        reading
            .said
            .calls
            .push(calls::whole(&name, args.as_bytes()));
        return true;
    }
    let more = part.inline.or(part.code).is_some();
    match is_true(part.thought) {
        true => filled_text(part.text).is_some() || more,
        false => reading.say(part.text) || more,
    }
}

fn finish(reading: &mut Reading, reason: Option<&RawValue>) {
    let Some(reason) = filled_text(reason) else {
        return;
    };
    reading.ending = true;
    reading.finish(match &*reason {
        "STOP" if reading.said.calls.is_empty() => Finish::Stop,
        "STOP" => Finish::ToolUse,
        "MAX_TOKENS" => Finish::MaxTokens,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "LANGUAGE"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT" => Finish::ContentFilter,
        other => Finish::Other(other.to_owned()),
    });
}

/// The counts are totals; the last ones stand.
fn count_tokens(reading: &mut Reading, usage: Option<&RawValue>) {
    if usage.is_none() {
        return;
    }
    let usage: Usage<'_> = read(usage);
    let of = |value: Option<&RawValue>| count(value).unwrap_or_default();
    let cached = of(usage.cached);
    let all = of(usage.prompt).saturating_add(of(usage.tools));
    let output = of(usage.candidates).saturating_add(of(usage.thoughts));
    reading.use_tokens(all.saturating_sub(cached), cached, output);
}

/// One answer, or an array of the pieces of one.
pub(super) fn whole(reading: &mut Reading, body: &[u8]) -> Option<Frame> {
    let body = body.trim_ascii();
    let frame = match body.starts_with(b"[") {
        false => chunk(reading, body)?,
        true => {
            let mut last = Frame::End;
            for element in serde_json::from_slice::<Vec<&RawValue>>(body).ok()? {
                match (chunk(reading, element.get().as_bytes())?, last) {
                    (Frame::Error, _) => return Some(Frame::Error),
                    (Frame::Content, _) => last = Frame::Content,
                    _ => {}
                }
            }
            last
        }
    };
    Some(match frame {
        Frame::Lifecycle => Frame::End,
        frame => frame,
    })
}
