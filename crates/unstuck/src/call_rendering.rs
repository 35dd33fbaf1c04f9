//! Renders LLM API calls that went through the gateway.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use unstuck_core::duration::HumanDuration;
use unstuck_core::event::{ApiCallOutcome, ApiCallRecord};
use unstuck_core::money::{known_cost, round_usd};
use unstuck_core::views::{ApiCallRecoverySummary, FailedApiAttempt, RunTimeline};
use unstuck_store::CostSummary;

use crate::clock;
use crate::sanitized_text::one_line;

/// Maximum number of calls shown per attempt; the newest are kept.
const MAX_CALLS: usize = 10;
/// Maximum length of a reason.
const MAX_REASON: usize = 160;

/// Renders one line for each call that did not succeed at once: time, failure and reaction.
pub(crate) fn call_lines(calls: &[ApiCallRecoverySummary]) -> Vec<String> {
    let older = calls.len().saturating_sub(MAX_CALLS);
    let mut lines = Vec::new();
    if older > 0 {
        lines.push(format!("{older} earlier calls omitted (use --json)"));
    }
    lines.extend(calls[older..].iter().map(call_line));
    lines
}

fn call_line(call: &ApiCallRecoverySummary) -> String {
    let at = call
        .started_at()
        .map(clock::format_time)
        .unwrap_or_default();
    format!("{at} {}: {}", failures(call), outcome_text(call))
}

/// Renders the failures, such as `server_overloaded (529) ×2`; each kind once, in order of appearance.
fn failures(call: &ApiCallRecoverySummary) -> String {
    let mut told: Vec<(String, usize)> = Vec::new();
    for failed in &call.failed_attempts {
        let status = failed.status.map(|status| format!(" ({status})"));
        let name = format!("{}{}", failed.kind, status.unwrap_or_default());
        match told.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => told.push((name, 1)),
        }
    }
    let told = told.into_iter().map(|(name, count)| match count {
        1 => name,
        count => format!("{name} ×{count}"),
    });
    let told: Vec<_> = told.collect();
    match (
        told.is_empty(),
        call.finished.as_ref().and_then(|end| end.kind),
    ) {
        (false, _) => told.join(", "),
        (true, Some(kind)) => kind.to_string(),
        (true, None) => "failed".to_owned(),
    }
}

fn outcome_text(call: &ApiCallRecoverySummary) -> String {
    let last = call.failed_attempts.last();
    let reason = || last.map(|last| one_line(&last.reason, MAX_REASON));
    let Some(end) = &call.finished else {
        return reason().unwrap_or_default();
    };
    let took = HumanDuration(Duration::from_millis(end.duration_ms));
    match end.outcome {
        ApiCallOutcome::Answered | ApiCallOutcome::Recovered => {
            format!(
                "answered{} on attempt {} after {took}",
                answering_upstream(last, end),
                end.attempts
            )
        }
        ApiCallOutcome::Failed => match reason() {
            Some(reason) => format!(
                "call failed after {took}: {reason}{}",
                skipped_upstreams(last)
            ),
            None => format!("gave up after {took}"),
        },
        ApiCallOutcome::Truncated => format!(
            "interrupted after {} bytes; error sent to the client",
            end.sent_bytes
        ),
        ApiCallOutcome::Cancelled => format!("client disconnected after {took}"),
        ApiCallOutcome::Refused => "blocked".to_owned(),
    }
}

/// Renders the skipped upstreams, one sentence each.
fn skipped_upstreams(last: Option<&FailedApiAttempt>) -> String {
    let passed = last.map_or(&[][..], |last| &last.skipped_upstreams);
    let told = passed
        .iter()
        .map(|one| format!(" {}.", one_line(&one.to_string(), MAX_REASON)));
    told.collect()
}

/// Returns the answering upstream if it differs from the one tried before.
fn answering_upstream(last: Option<&FailedApiAttempt>, end: &ApiCallRecord) -> String {
    let Some(last) = last else {
        return String::new();
    };
    if last.upstream != end.upstream {
        return format!(" by {}", end.upstream);
    }
    match (&last.model, &end.model) {
        (Some(asked), Some(model)) if asked != model => format!(" by {model}"),
        _ => String::new(),
    }
}

/// Renders the totals of all calls of a run in one line.
pub(crate) fn summary_line(spent: &CostSummary) -> String {
    let mut facts = vec![format!("API calls: {}", spent.calls)];
    if spent.recovered > 0 {
        facts.push(format!("{} recovered", spent.recovered));
    }
    if spent.failed > 0 {
        facts.push(format!("{} failed", spent.failed));
    }
    facts.push(format!("{} tokens", short_number(spent.total_tokens())));
    facts.push(cost_text(spent));
    facts.join(", ")
}

/// Renders the cost, and whether it is complete.
pub(crate) fn cost_text(spent: &CostSummary) -> String {
    let usd = match spent.cost_usd {
        usd if usd > 0.0 && usd < 0.01 => format!("{usd:.4} USD"),
        usd => format!("{usd:.2} USD"),
    };
    match spent.unpriced {
        0 => usd,
        _ if spent.cost_usd == 0.0 => "unknown price".to_owned(),
        1 => format!("{usd} and 1 call of unknown price"),
        some => format!("{usd} and {some} calls of unknown price"),
    }
}

/// Renders a large number in short form: 1.2 M, 34 k.
pub(crate) fn short_number(number: u64) -> String {
    let short = |unit: u64, letter: &str| {
        let share = number as f64 / unit as f64;
        if share < 10.0 {
            format!("{share:.1} {letter}")
        } else {
            format!("{share:.0} {letter}")
        }
    };
    match number {
        0..1000 => number.to_string(),
        1000..999_500 => short(1000, "k"),
        999_500..999_500_000 => short(1_000_000, "M"),
        _ => short(1_000_000_000, "G"),
    }
}

/// Renders the calls of a run as JSON: totals, and calls that belong to no attempt.
pub(crate) fn as_json(timeline: &RunTimeline, spent: Option<&CostSummary>) -> Result<Value> {
    let Some(spent) = spent else {
        return Ok(Value::Null);
    };
    let mut told = serde_json::to_value(spent)?;
    told["cost_usd"] = json!(known_cost(spent.cost_usd, spent.unpriced).map(round_usd));
    told["troubled"] = serde_json::to_value(&timeline.calls)?;
    if let Some(fields) = told.as_object_mut() {
        fields.remove("id");
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_abbreviated() {
        let told = [
            0,
            999,
            1000,
            12_345,
            999_499,
            999_500,
            1_234_567,
            2_000_000_000,
        ]
        .map(short_number);
        let wanted = [
            "0", "999", "1.0 k", "12 k", "999 k", "1.0 M", "1.2 M", "2.0 G",
        ];
        assert_eq!(told, wanted);
    }

    #[test]
    fn all_calls_fit_on_one_line() {
        let mut spent = CostSummary {
            calls: 42,
            recovered: 3,
            failed: 1,
            input_tokens: 1_000_000,
            output_tokens: 200_000,
            cost_usd: 0.84,
            ..CostSummary::default()
        };
        let told = "API calls: 42, 3 recovered, 1 failed, 1.2 M tokens, 0.84 USD";
        assert_eq!(summary_line(&spent), told);
        spent.unpriced = 2;
        assert!(summary_line(&spent).ends_with("0.84 USD and 2 calls of unknown price"));
        (spent.unpriced, spent.cost_usd) = (42, 0.0);
        assert!(summary_line(&spent).ends_with("unknown price"));
    }
}
