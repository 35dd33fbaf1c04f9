//! What is said of calls of LLM APIs that went through the gateway.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use unstuck_core::duration::Human;
use unstuck_core::episode::{CallStory, FailedTry, Timeline};
use unstuck_core::event::{CallOutcome, CallRecord};
use unstuck_core::money::{known, rounded};
use unstuck_store::Spent;

use crate::clock;
use crate::show_text::one_line;

/// So many calls are told of one attempt; of a long one the newest matter.
const MOST: usize = 10;
/// How much of a reason is told.
const REASON: usize = 160;

/// One line for each call that did not simply work: when, what failed, and what was done.
pub(crate) fn stories(calls: &[CallStory]) -> Vec<String> {
    let older = calls.len().saturating_sub(MOST);
    let mut lines = Vec::new();
    if older > 0 {
        lines.push(format!("{older} earlier ones are in --json"));
    }
    lines.extend(calls[older..].iter().map(story));
    lines
}

fn story(call: &CallStory) -> String {
    let at = call.at().map(clock::shown).unwrap_or_default();
    format!("{at} {}: {}", failures(call), ended(call))
}

/// What failed, such as `server_overloaded (529) ×2`; each kind once, in the order in which they came.
fn failures(call: &CallStory) -> String {
    let mut told: Vec<(String, usize)> = Vec::new();
    for failed in &call.tries {
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
        call.ended.as_ref().and_then(|end| end.kind),
    ) {
        (false, _) => told.join(", "),
        (true, Some(kind)) => kind.to_string(),
        (true, None) => "failed".to_owned(),
    }
}

fn ended(call: &CallStory) -> String {
    let last = call.tries.last();
    let reason = || last.map(|last| one_line(&last.reason, REASON));
    let Some(end) = &call.ended else {
        return reason().unwrap_or_default();
    };
    let took = Human(Duration::from_millis(end.duration_ms));
    match end.outcome {
        CallOutcome::Answered | CallOutcome::Recovered => {
            format!(
                "answered{} at try {} after {took}",
                by(last, end),
                end.attempts
            )
        }
        CallOutcome::Failed => match reason() {
            Some(reason) => format!("given up after {took}: {reason}{}", passed_over(last)),
            None => format!("given up after {took}"),
        },
        CallOutcome::Cut => format!(
            "broke off after {} bytes, and the client was told",
            end.sent_bytes
        ),
        CallOutcome::Cancelled => format!("the client went away after {took}"),
        CallOutcome::Refused => "not let through".to_owned(),
    }
}

/// Who could have been asked instead and was not, each as one more sentence.
fn passed_over(last: Option<&FailedTry>) -> String {
    let passed = last.map_or(&[][..], |last| &last.passed_over);
    let told = passed
        .iter()
        .map(|one| format!(" {}.", one_line(&one.to_string(), REASON)));
    told.collect()
}

/// Who answered, where that is another one than was asked before.
fn by(last: Option<&FailedTry>, end: &CallRecord) -> String {
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

/// All calls of a run in one line.
pub(crate) fn closing(spent: &Spent) -> String {
    let mut facts = vec![format!("API calls: {}", spent.calls)];
    if spent.recovered > 0 {
        facts.push(format!("{} recovered", spent.recovered));
    }
    if spent.failed > 0 {
        facts.push(format!("{} failed", spent.failed));
    }
    facts.push(format!("{} tokens", short(spent.tokens())));
    facts.push(money(spent));
    facts.join(", ")
}

/// What they cost, and whether that is all.
pub(crate) fn money(spent: &Spent) -> String {
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

/// A large number, short to read: 1.2 M, 34 k.
pub(crate) fn short(number: u64) -> String {
    let short = |unit: u64, letter: &str| {
        let share = number as f64 / unit as f64;
        match share < 10.0 {
            true => format!("{share:.1} {letter}"),
            false => format!("{share:.0} {letter}"),
        }
    };
    match number {
        0..1000 => number.to_string(),
        1000..999_500 => short(1000, "k"),
        999_500..999_500_000 => short(1_000_000, "M"),
        _ => short(1_000_000_000, "G"),
    }
}

/// The calls of a run as JSON: the sums, and those that belong to no attempt.
pub(crate) fn as_json(timeline: &Timeline, spent: Option<&Spent>) -> Result<Value> {
    let Some(spent) = spent else {
        return Ok(Value::Null);
    };
    let mut told = serde_json::to_value(spent)?;
    told["cost_usd"] = json!(known(spent.cost_usd, spent.unpriced).map(rounded));
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
    fn large_numbers_are_short_to_read() {
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
        .map(short);
        let wanted = [
            "0", "999", "1.0 k", "12 k", "999 k", "1.0 M", "1.2 M", "2.0 G",
        ];
        assert_eq!(told, wanted);
    }

    #[test]
    fn all_calls_are_one_line() {
        let mut spent = Spent {
            calls: 42,
            recovered: 3,
            failed: 1,
            input_tokens: 1_000_000,
            output_tokens: 200_000,
            cost_usd: 0.84,
            ..Spent::default()
        };
        let told = "API calls: 42, 3 recovered, 1 failed, 1.2 M tokens, 0.84 USD";
        assert_eq!(closing(&spent), told);
        spent.unpriced = 2;
        assert!(closing(&spent).ends_with("0.84 USD and 2 calls of unknown price"));
        (spent.unpriced, spent.cost_usd) = (42, 0.0);
        assert!(closing(&spent).ends_with("unknown price"));
    }
}
