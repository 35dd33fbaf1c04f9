//! `unstuck explain`: explains the decisions of a run.

use std::io::Write;

use anyhow::Result;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::{Value, json};
use unstuck_core::decision::{Jitter, RecoveryAction, SkippedStrategy};
use unstuck_core::diagnosis::Diagnosis;
use unstuck_core::event::{DecisionMade, SessionSpec};
use unstuck_core::views::{ApiCallRecoverySummary, AttemptView, RunTimeline};
use unstuck_core::{FailureKind, RetryPolicy};

use crate::command_context::CommandContext;
use crate::output::{BOLD, DIM, Output};
use crate::run_history::RunHistory;
use crate::run_ref::{RunRef, attempt_name};
use crate::sanitized_text::{one_line, wrap_words};
use crate::{async_runtime, clock, completion_candidates, repair_rendering};

/// Explain decisions: matched rules, policy values and rejected alternatives
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck explain              (every decision of the newest run)
  unstuck explain k3v9/2       (the decision about attempt 2)
  unstuck explain k3v9/tester  (the decisions about a role of a pipeline)
  unstuck explain k3v9 --json")]
pub(crate) struct ExplainArgs {
    /// Run, optionally followed by /ROLE and /ATTEMPT [default: the newest run]
    #[arg(
        value_name = "RUN[/ROLE][/N]",
        value_parser = NonEmptyStringValueParser::new(),
        add = completion_candidates::runs_and_roles()
    )]
    run: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(
    args: &ExplainArgs,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<()> {
    let named = RunRef::parse(args.run.as_deref())?;
    let timeline = async_runtime::block_on(async {
        let history = RunHistory::open(session.store).await?;
        let run = history.find(named.run_prefix).await?;
        history.timeline(&run.id).await
    })?;
    let attempts = named.find_attempts(&timeline)?;
    if args.json {
        let all: Vec<_> = attempts
            .iter()
            .map(|attempt| as_json(&timeline, attempt))
            .collect();
        return out.write_json(&all);
    }
    let mut decided = attempts
        .iter()
        .filter(|attempt| attempt.decision.is_some())
        .peekable();
    if decided.peek().is_none() && timeline.calls.is_empty() {
        writeln!(out, "No decisions: nothing failed.")?;
    }
    for call in &timeline.calls {
        print_calls(call, out)?;
    }
    for attempt in decided {
        explain(&timeline, attempt, out)?;
    }
    Ok(())
}

/// Prints the decisions on a client's call, attempt by attempt.
fn print_calls(call: &ApiCallRecoverySummary, out: &mut Output) -> Result<()> {
    for failed in &call.failed_attempts {
        let at = clock::format_time(failed.at);
        let head = format!(
            "{BOLD}{at} {}{BOLD:#} (attempt {}, {}): {}",
            failed.kind, failed.number, failed.upstream, failed.reason
        );
        print_wrapped(&head, 2, out)?;
    }
    Ok(())
}

fn as_json(timeline: &RunTimeline, attempt: &AttemptView) -> Value {
    let spec = timeline.specs.get(&attempt.session);
    let mut told = json!({
        "id": attempt.id,
        "index": attempt.index,
        "number": attempt.number,
        "outcome": attempt.outcome,
        "diagnosis": attempt.diagnosis,
        "decision": attempt.decision.as_ref().map(|made| &made.decision),
        "basis": attempt.decision.as_ref().map(|made| &made.inputs),
        "repairs": attempt.repairs,
        "policy": spec.map(|spec| &spec.policy),
        "origins": spec.map(|spec| &spec.origins),
    });
    if let Some(part) = &attempt.part {
        told["role"] = json!(part.role);
        told["iteration"] = json!(part.iteration);
        told["instance"] = json!(part.instance);
    }
    told
}

fn explain(timeline: &RunTimeline, attempt: &AttemptView, out: &mut Output) -> Result<()> {
    let Some(made) = &attempt.decision else {
        return Ok(());
    };
    let head = format!(
        "{BOLD}{}{BOLD:#}: {}",
        attempt_name(attempt, &timeline.run),
        made.decision.reason
    );
    print_wrapped(&head, 2, out)?;
    if let Some(diagnosis) = &attempt.diagnosis {
        print_diagnosis(diagnosis, out)?;
    }
    let kind = attempt.diagnosis.as_ref().map(|found| found.kind);
    if let Some(spec) = timeline.specs.get(&attempt.session) {
        print_limits(spec, kind, made, out)?;
    }
    print_rejected(made, out)?;
    if !attempt.repairs.is_empty() {
        print_heading("repairs", out)?;
    }
    for repair in &attempt.repairs {
        print_fact(&repair_rendering::outcome_line(repair), out)?;
        print_fact(
            &format!(
                "  command policy: {}",
                one_line(&repair.proposed.reason, 200)
            ),
            out,
        )?;
    }
    print_heading("replay", out)?;
    print_fact(
        &format!(
            "draw {}, policy {}, knowledge {}",
            made.decision.draw, made.inputs.policy_hash, made.inputs.knowledge
        ),
        out,
    )?;
    writeln!(out)?;
    Ok(())
}

fn print_diagnosis(diagnosis: &Diagnosis, out: &mut Output) -> Result<()> {
    print_heading("diagnosis", out)?;
    let sure = f64::from(diagnosis.confidence) * 100.0;
    let (kind, category) = (diagnosis.kind, diagnosis.category());
    print_fact(&format!("{kind} ({category}, confidence {sure:.0}%)"), out)?;
    print_fact(&format!("rule {}", diagnosis.evidence.rule), out)?;
    let line = one_line(&diagnosis.evidence.line, 200);
    if !line.is_empty() {
        print_fact(&format!("line {line}"), out)?;
    }
    let fingerprint = &diagnosis.fingerprint;
    print_fact(&format!("fingerprint {fingerprint}"), out)
}

fn print_limits(
    spec: &SessionSpec,
    kind: Option<FailureKind>,
    made: &DecisionMade,
    out: &mut Output,
) -> Result<()> {
    let limits = &made.inputs.limits;
    let policy = &spec.policy;
    print_heading("limits", out)?;
    let origin = |key: &str| spec.origins.get(key).or(spec.origins.get("policy"));
    let from = |key: &str| origin(key).map_or("", String::as_str);
    print_fact(&format!("policy {} ({})", policy.id, from("policy")), out)?;
    print_fact(
        &format!(
            "retries per level: {} ({})",
            limits.retries, limits.retries_from
        ),
        out,
    )?;
    print_fact(
        &format!(
            "backoff starts at {} s, ×{}, at most {} s{}",
            limits.backoff_base,
            limits.backoff_multiplier,
            limits.max_backoff,
            jitter_text(policy, kind)
        ),
        out,
    )?;
    let can = &made.inputs.capabilities;
    let can = if can.is_empty() {
        "none".to_owned()
    } else {
        can.join(", ")
    };
    print_fact(&format!("available changes: {can}"), out)
}

/// Describes the jitter that the policy uses for this kind.
fn jitter_text(policy: &RetryPolicy, kind: Option<FailureKind>) -> &'static str {
    let own = kind.and_then(|kind| policy.kinds.get(&kind)?.jitter);
    match own.unwrap_or(policy.jitter) {
        Jitter::None => "",
        Jitter::Full => "; full jitter: random between 0 and the delay",
        Jitter::Equal => "; equal jitter: random between half and all of the delay",
        Jitter::Decorrelated => "; decorrelated jitter: random, based on the previous delay",
    }
}

/// Prints the rejected alternatives with their reasons.
fn print_rejected(made: &DecisionMade, out: &mut Output) -> Result<()> {
    print_heading("alternatives", out)?;
    let chosen = match (&made.decision.strategy, &made.decision.action) {
        (Some(strategy), _) => strategy.clone(),
        (None, RecoveryAction::Retry { .. }) => "retry unchanged".to_owned(),
        (None, RecoveryAction::Escalate { .. }) => "ask for your input".to_owned(),
        (None, RecoveryAction::Stop { .. }) => "stop and pass the failure through".to_owned(),
        (None, RecoveryAction::Change { .. }) => "retry with your message".to_owned(),
    };
    print_fact(&format!("chosen: {chosen}"), out)?;
    for passed in &made.decision.skipped {
        print_fact(&rejection_line(passed, made.inputs.limits.retries), out)?;
    }
    if let Some(cost) = &made.decision.cost {
        print_fact(&format!("cost: {}", cost.formula), out)?;
    }
    Ok(())
}

fn rejection_line(passed: &SkippedStrategy, allowed: u32) -> String {
    match (&*passed.strategy, allowed) {
        // A single entry that stands for all further strategies.
        ("chain", 0) => "no other strategy: the policy allows none".to_owned(),
        ("chain", 1) => "no further strategy: the policy allows 1, and it was used".to_owned(),
        ("chain", n) => format!("no further strategy: the policy allows {n}, and all were used"),
        ("same", _) => format!("skipped: retry unchanged ({})", passed.why),
        (strategy, _) => format!("skipped: {strategy} ({})", passed.why),
    }
}

fn print_heading(title: &str, out: &mut Output) -> Result<()> {
    writeln!(out, "  {DIM}{title}{DIM:#}")?;
    Ok(())
}

fn print_fact(text: &str, out: &mut Output) -> Result<()> {
    print_wrapped(&format!("    {text}"), 6, out)
}

/// Prints a text wrapped at the terminal width.
fn print_wrapped(text: &str, indent: usize, out: &mut Output) -> Result<()> {
    let broken = out
        .columns()
        .map(|columns| wrap_words(text, columns, indent));
    writeln!(out, "{}", broken.as_deref().unwrap_or(text))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_strategies_are_described_in_plain_words() {
        let passed = |strategy: &'static str, why: &'static str| SkippedStrategy {
            strategy: strategy.into(),
            why: why.into(),
        };
        assert_eq!(
            rejection_line(&passed("chain", "2 of 2 strategies used"), 2),
            "no further strategy: the policy allows 2, and all were used"
        );
        assert_eq!(
            rejection_line(&passed("next_model", "it was already tried"), 2),
            "skipped: next_model (it was already tried)"
        );
    }
}
