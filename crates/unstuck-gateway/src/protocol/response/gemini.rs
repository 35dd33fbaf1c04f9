//! Reads Gemini generateContent responses.

use serde_json::value::RawValue;

use super::{FinishReason, FrameKind, ResponseReader, streamed_tool_calls};
use crate::protocol::json::{filled_text, is_true, object, text, to_count, to_list, to_object};

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

pub(super) fn read_chunk(reading: &mut ResponseReader, data: &[u8]) -> Option<FrameKind> {
    let open = data.trim_ascii_start().starts_with(b"{");
    let chunk: Chunk<'_> = open.then(|| serde_json::from_slice(data).ok()).flatten()?;
    reading.set_model(chunk.model);
    count_tokens(reading, chunk.usage);
    if let Some(error) = chunk.error {
        return Some(reading.set_error(error.get()));
    }
    let mut content = false;
    for candidate in to_list::<Candidate<'_>>(chunk.candidates) {
        let parts = to_object::<Content<'_>>(candidate.content).parts;
        for part in to_list::<Part<'_>>(parts) {
            content |= add_part(reading, &part);
        }
        set_finish(reading, candidate.finish_reason);
    }
    if filled_text(to_object::<Feedback<'_>>(chunk.feedback).reason).is_some() {
        reading.set_finish(FinishReason::ContentFilter);
        reading.is_end_announced = true;
    }
    reading.is_complete = reading.is_end_announced && !reading.in_array;
    Some(match (content, reading.is_end_announced) {
        (true, _) => FrameKind::Content,
        (false, true) => FrameKind::End,
        (false, false) => FrameKind::Lifecycle,
    })
}

/// Adds a part; returns true if it has content visible to a user.
fn add_part(reading: &mut ResponseReader, part: &Part<'_>) -> bool {
    if part.call.is_some() {
        let call: Call<'_> = to_object(part.call);
        let name = text(call.name).unwrap_or_default();
        let args = call.args.map_or("{}", RawValue::get);
        reading
            .summary
            .calls
            .push(streamed_tool_calls::complete_call(&name, args.as_bytes()));
        return true;
    }
    let more = part.inline.or(part.code).is_some();
    if is_true(part.thought) {
        filled_text(part.text).is_some() || more
    } else {
        reading.add_text(part.text) || more
    }
}

fn set_finish(reading: &mut ResponseReader, reason: Option<&RawValue>) {
    let Some(reason) = filled_text(reason) else {
        return;
    };
    reading.is_end_announced = true;
    reading.set_finish(match &*reason {
        "STOP" if reading.summary.calls.is_empty() => FinishReason::Stop,
        "STOP" => FinishReason::ToolUse,
        "MAX_TOKENS" => FinishReason::MaxTokens,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "LANGUAGE"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    });
}

/// Adds the token counts: they are totals, the last ones apply.
fn count_tokens(reading: &mut ResponseReader, usage: Option<&RawValue>) {
    if usage.is_none() {
        return;
    }
    let usage: Usage<'_> = to_object(usage);
    let of = |value: Option<&RawValue>| to_count(value).unwrap_or_default();
    let cached = of(usage.cached);
    let all = of(usage.prompt).saturating_add(of(usage.tools));
    let output = of(usage.candidates).saturating_add(of(usage.thoughts));
    reading.set_tokens(all.saturating_sub(cached), cached, output);
}

/// Reads one response, or an array of its pieces.
pub(super) fn read_body(reading: &mut ResponseReader, body: &[u8]) -> Option<FrameKind> {
    let body = body.trim_ascii();
    let frame = if !body.starts_with(b"[") {
        read_chunk(reading, body)?
    } else {
        let mut last = FrameKind::End;
        for element in serde_json::from_slice::<Vec<&RawValue>>(body).ok()? {
            match (read_chunk(reading, element.get().as_bytes())?, last) {
                (FrameKind::Error, _) => return Some(FrameKind::Error),
                (FrameKind::Content, _) => last = FrameKind::Content,
                _ => {}
            }
        }
        last
    };
    Some(match frame {
        FrameKind::Lifecycle => FrameKind::End,
        frame => frame,
    })
}
