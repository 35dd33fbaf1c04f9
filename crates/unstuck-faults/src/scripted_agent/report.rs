//! The agent's output: its answer, or the failure in the format of an agent CLI.

use serde_json::{Value, json};
use unstuck_core::Timestamp;

use super::outcome::{AgentFailure, ApiRefusal, ModelAnswer};

/// Dollars per million tokens of prompt and of answer.
const PRICES: (f64, f64) = (3.0, 15.0);

/// The result of a run, ready to be printed.
#[derive(Debug)]
pub(super) struct AgentReport<'a> {
    outcome: &'a Result<ModelAnswer, AgentFailure>,
    session: &'a str,
}

impl<'a> AgentReport<'a> {
    pub(super) fn new(outcome: &'a Result<ModelAnswer, AgentFailure>, session: &'a str) -> Self {
        Self { outcome, session }
    }

    pub(super) fn exit_code(&self) -> i32 {
        match (self.tool_failure(), self.outcome) {
            (Some((_, code)), _) => *code,
            (None, Ok(_)) => 0,
            (None, Err(_)) => 1,
        }
    }

    /// Returns the standard error output of a failed tool.
    pub(super) fn stderr(&self) -> String {
        self.tool_failure()
            .map(|(stderr, _)| format!("{}\n", stderr.trim_end()))
            .unwrap_or_default()
    }

    /// Returns the answer or the failure as a line; failures go to standard output too, as in Claude Code.
    pub(super) fn text(&self) -> String {
        if self.tool_failure().is_some() {
            return String::new();
        }
        format!("{}\n", self.result())
    }

    /// Returns the answer or the failure as a JSON object.
    pub(super) fn json(&self) -> String {
        if self.tool_failure().is_some() {
            return String::new();
        }
        let (input, output) = match self.outcome {
            Ok(said) => (said.input_tokens, said.output_tokens),
            Err(_) => (0, 0),
        };
        let object = json!({
            // A failed run says `success` here, as in Claude Code: only `is_error` shows the failure.
            "type": "result", "subtype": "success", "is_error": self.outcome.is_err(),
            "api_error_status": self.status(), "num_turns": 1, "result": self.result(),
            "session_id": self.session, "total_cost_usd": cost(input, output),
            "usage": {"input_tokens": input, "output_tokens": output},
        });
        format!("{object}\n")
    }

    fn tool_failure(&self) -> Option<&(String, i32)> {
        self.outcome.as_ref().ok()?.tool_failure.as_ref()
    }

    fn status(&self) -> Value {
        match self.outcome {
            Err(AgentFailure::Refused(refusal)) => json!(refusal.status),
            Err(AgentFailure::Malformed { status }) if *status != 200 => json!(status),
            _ => Value::Null,
        }
    }

    fn result(&self) -> String {
        match self.outcome {
            Ok(said) => said.text.clone(),
            Err(trouble) => failure_text(trouble),
        }
    }
}

fn cost(input: u64, output: u64) -> f64 {
    (input as f64 * PRICES.0 + output as f64 * PRICES.1) / 1e6
}

fn failure_text(trouble: &AgentFailure) -> String {
    match trouble {
        AgentFailure::Refused(refusal) => refusal_text(refusal),
        AgentFailure::Declined => {
            "API Error: the model can't help with this (stop_reason: refusal)".into()
        }
        AgentFailure::Unreachable(why) => format!("API Error: Can't reach the API server: {why}"),
        AgentFailure::Lost => "API Error: Connection to the API was lost (ECONNRESET)".into(),
        AgentFailure::TimedOut => "API Error: Request timed out".into(),
        AgentFailure::Malformed { status: 200 } => {
            "API Error: API returned an empty or malformed response (HTTP 200)".into()
        }
        AgentFailure::Malformed { status } => {
            format!("API Error: {status} without a readable body")
        }
    }
}

fn refusal_text(refusal: &ApiRefusal) -> String {
    let ApiRefusal {
        status, message, ..
    } = refusal;
    if let Some(reset) = refusal.reset {
        return format!(
            "You've hit your 5-hour limit · resets {} (UTC)",
            clock_time(reset)
        );
    }
    match status {
        429 => {
            let wait = refusal.retry_after;
            let wait = wait.map(|seconds| format!(" · retry after {seconds}s"));
            format!(
                "API Error: Request rejected (429) · {message}{}",
                wait.unwrap_or_default()
            )
        }
        401 | 403 => format!("Failed to authenticate. API Error: {status} {message}"),
        _ => format!("API Error: {status} {message}"),
    }
}

/// Returns the time of day in UTC, such as `9:30:05pm`.
///
/// Claude Code omits the seconds; here they are kept so that a test can wait for a reset a few seconds ahead.
fn clock_time(moment: Timestamp) -> String {
    let seconds = moment.millis().div_euclid(1000).rem_euclid(24 * 60 * 60);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let half = if hour < 12 { "am" } else { "pm" };
    let hour = if hour % 12 == 0 { 12 } else { hour % 12 };
    format!("{hour}:{minute:02}:{second:02}{half}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reset_time_is_formatted_as_a_12_hour_clock() {
        let shown = |seconds: i64| clock_time(Timestamp::from_seconds(1_763_078_400 + seconds));
        assert_eq!(shown(5), "12:00:05am");
        assert_eq!(shown(12 * 3600), "12:00:00pm");
        assert_eq!(shown(21 * 3600 + 30 * 60 + 7), "9:30:07pm");
    }
}
