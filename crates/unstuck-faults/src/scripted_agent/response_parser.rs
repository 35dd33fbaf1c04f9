//! Parses an HTTP response into the model's answer or a failure.

use serde_json::Value;
use unstuck_core::Timestamp;

use super::FAILING_TOOL;
use super::client::ReceivedResponse;
use super::outcome::{AgentFailure, ApiRefusal, ModelAnswer};

/// Parses a response.
pub(super) fn parse_response(response: &ReceivedResponse) -> Result<ModelAnswer, AgentFailure> {
    let malformed = || AgentFailure::Malformed {
        status: response.status,
    };
    if response.status != 200 {
        return Err(parse_refusal(response).map_or_else(malformed, AgentFailure::Refused));
    }
    let text = std::str::from_utf8(&response.body).map_err(|_| malformed())?;
    let events = parse_events(text).ok_or_else(malformed)?;
    if events.is_empty() {
        return Err(malformed());
    }
    parse_answer(&events)
}

fn parse_refusal(response: &ReceivedResponse) -> Option<ApiRefusal> {
    let body: Value = serde_json::from_slice(&response.body).ok()?;
    let header = |name: &str| response.headers.get(name)?.to_str().ok();
    let reset = || {
        let seconds = header("anthropic-ratelimit-unified-reset")?.parse().ok()?;
        Some(Timestamp::from_seconds(seconds))
    };
    Some(ApiRefusal {
        status: response.status,
        message: body["error"]["message"].as_str()?.to_owned(),
        retry_after: header("retry-after").and_then(|seconds| seconds.parse().ok()),
        reset: reset(),
    })
}

/// Returns the events of a stream, or `None` if one is not JSON.
fn parse_events(text: &str) -> Option<Vec<Value>> {
    text.lines()
        .filter_map(|line| line.strip_prefix("data:"))
        .map(|data| serde_json::from_str(data).ok())
        .collect()
}

fn parse_answer(events: &[Value]) -> Result<ModelAnswer, AgentFailure> {
    let mut said = ModelAnswer::default();
    let (mut tool, mut input, mut ended) = (None, String::new(), false);
    for event in events {
        match event["type"].as_str() {
            Some("message_start") => {
                let tokens = event["message"]["usage"]["input_tokens"].as_u64();
                said.input_tokens = tokens.unwrap_or_default();
            }
            Some("content_block_start") => tool = event["content_block"]["name"].as_str(),
            Some("content_block_delta") => {
                said.text += event["delta"]["text"].as_str().unwrap_or_default();
                input += event["delta"]["partial_json"].as_str().unwrap_or_default();
            }
            Some("message_delta") if event["delta"]["stop_reason"] == "refusal" => {
                return Err(AgentFailure::Declined);
            }
            Some("message_delta") => {
                said.output_tokens = event["usage"]["output_tokens"].as_u64().unwrap_or_default();
            }
            Some("message_stop") => ended = true,
            Some("error") => return Err(stream_error(event)),
            _ => {}
        }
    }
    if !ended {
        return Err(AgentFailure::Lost);
    }
    if tool == Some(FAILING_TOOL) {
        said.tool_failure = parse_tool_failure(&input);
    }
    Ok(said)
}

/// Returns the failure of an error event inside a stream whose HTTP status was successful.
fn stream_error(event: &Value) -> AgentFailure {
    let text = |key: &str| event["error"][key].as_str().unwrap_or_default();
    let status = match text("type") {
        "overloaded_error" => 529,
        "rate_limit_error" => 429,
        _ => 500,
    };
    AgentFailure::Refused(ApiRefusal {
        status,
        message: text("message").to_owned(),
        retry_after: None,
        reset: None,
    })
}

fn parse_tool_failure(input: &str) -> Option<(String, i32)> {
    let input: Value = serde_json::from_str(input).ok()?;
    let exit_code = i32::try_from(input["exit_code"].as_i64()?).ok()?;
    Some((input["stderr"].as_str()?.to_owned(), exit_code))
}
