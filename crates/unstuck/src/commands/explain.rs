//! `unstuck explain`: why it was decided like this.

use std::io::Write;

use anyhow::Result;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::{Value, json};
use unstuck_core::decision::{Chosen, FellThrough, Jitter};
use unstuck_core::diagnosis::Diagnosis;
use unstuck_core::episode::{AttemptStory, CallStory, Timeline};
use unstuck_core::event::{DecisionMade, SessionSpec};
use unstuck_core::{Kind, RetryPolicy};

use crate::history::History;
use crate::named::{Named, attempt_name};
use crate::output::{BOLD, DIM, Output};
use crate::session::Session;
use crate::show_text::{one_line, wrapped};
use crate::{clock, completion, repair_words, runtime};

/// Explain decisions: the rule that matched, the policy's values and their origin, the ways that lost
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck explain              (every decision of the newest run)
  unstuck explain k3v9/2       (the one about attempt 2)
  unstuck explain k3v9/tester  (those about a role of a pipeline)
  unstuck explain k3v9 --json")]
pub(crate) struct ExplainArgs {
    /// The run, and behind slashes a role of it and an attempt [default: the newest run]
    #[arg(
        value_name = "RUN[/ROLE][/N]",
        value_parser = NonEmptyStringValueParser::new(),
        add = completion::runs_and_roles()
    )]
    run: Option<String>,

    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ExplainArgs, session: &Session<'_>, out: &mut Output) -> Result<()> {
    let named = Named::read(args.run.as_deref())?;
    let timeline = runtime::block_on(async {
        let history = History::open(session.store).await?;
        let run = history.find(named.letters).await?;
        history.timeline(&run.id).await
    })?;
    let attempts = named.attempts(&timeline)?;
    if args.json {
        let all: Vec<_> = attempts
            .iter()
            .map(|attempt| as_json(&timeline, attempt))
            .collect();
        return out.json(&all);
    }
    let mut decided = attempts
        .iter()
        .filter(|attempt| attempt.decision.is_some())
        .peekable();
    if decided.peek().is_none() && timeline.calls.is_empty() {
        writeln!(out, "Nothing was decided: nothing failed.")?;
    }
    for call in &timeline.calls {
        calls(call, out)?;
    }
    for attempt in decided {
        explain(&timeline, attempt, out)?;
    }
    Ok(())
}

/// What was decided about a call of a client, try by try.
fn calls(call: &CallStory, out: &mut Output) -> Result<()> {
    for failed in &call.tries {
        let at = clock::shown(failed.at);
        let head = format!(
            "{BOLD}{at} {}{BOLD:#} (try {} of {}): {}",
            failed.kind, failed.number, failed.upstream, failed.reason
        );
        fitted(&head, 2, out)?;
    }
    Ok(())
}

fn as_json(timeline: &Timeline, attempt: &AttemptStory) -> Value {
    let spec = timeline.specs.get(&attempt.session);
    let mut told = json!({
        "id": attempt.id,
        "index": attempt.index,
        "number": attempt.number,
        "outcome": attempt.outcome,
        "diagnosis": attempt.diagnosis,
        "decision": attempt.decision.as_ref().map(|made| &made.decision),
        "made_from": attempt.decision.as_ref().map(|made| &made.made_from),
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

fn explain(timeline: &Timeline, attempt: &AttemptStory, out: &mut Output) -> Result<()> {
    let Some(made) = &attempt.decision else {
        return Ok(());
    };
    let head = format!(
        "{BOLD}{}{BOLD:#}: {}",
        attempt_name(attempt, &timeline.run),
        made.decision.reason
    );
    fitted(&head, 2, out)?;
    if let Some(diagnosis) = &attempt.diagnosis {
        seen(diagnosis, out)?;
    }
    let kind = attempt.diagnosis.as_ref().map(|found| found.kind);
    if let Some(spec) = timeline.specs.get(&attempt.session) {
        limits(spec, kind, made, out)?;
    }
    lost(made, out)?;
    if !attempt.repairs.is_empty() {
        part("repairs", out)?;
    }
    for repair in &attempt.repairs {
        fact(&repair_words::outcome(repair), out)?;
        fact(
            &format!("  the guard: {}", one_line(&repair.proposed.reason, 200)),
            out,
        )?;
    }
    part("replay", out)?;
    fact(
        &format!(
            "draw {}, policy {}, knowledge {}",
            made.decision.draw, made.made_from.policy_hash, made.made_from.knowledge
        ),
        out,
    )?;
    writeln!(out)?;
    Ok(())
}

fn seen(diagnosis: &Diagnosis, out: &mut Output) -> Result<()> {
    part("what was seen", out)?;
    let sure = f64::from(diagnosis.confidence) * 100.0;
    let (kind, category) = (diagnosis.kind, diagnosis.category());
    fact(&format!("{kind} ({category}), {sure:.0} % sure"), out)?;
    fact(&format!("rule {}", diagnosis.evidence.rule), out)?;
    let line = one_line(&diagnosis.evidence.line, 200);
    if !line.is_empty() {
        fact(&format!("line {line}"), out)?;
    }
    let fingerprint = &diagnosis.fingerprint;
    fact(
        &format!("the same failure has the fingerprint {fingerprint}"),
        out,
    )
}

fn limits(
    spec: &SessionSpec,
    kind: Option<Kind>,
    made: &DecisionMade,
    out: &mut Output,
) -> Result<()> {
    let limits = &made.made_from.limits;
    let policy = &spec.policy;
    part("what the policy says", out)?;
    let origin = |key: &str| spec.origins.get(key).or(spec.origins.get("policy"));
    let from = |key: &str| origin(key).map_or("", String::as_str);
    fact(&format!("policy {} ({})", policy.id, from("policy")), out)?;
    fact(
        &format!(
            "{} retries at each level ({})",
            limits.retries, limits.retries_from
        ),
        out,
    )?;
    fact(
        &format!(
            "waits start at {} s, ×{}, at most {} s{}",
            limits.backoff_base,
            limits.backoff_multiplier,
            limits.max_backoff,
            spread(policy, kind)
        ),
        out,
    )?;
    let can = &made.made_from.can;
    let can = if can.is_empty() {
        "nothing".to_owned()
    } else {
        can.join(", ")
    };
    fact(&format!("what can be changed here: {can}"), out)
}

/// How chance changes the waits, as the policy says for this kind.
fn spread(policy: &RetryPolicy, kind: Option<Kind>) -> &'static str {
    let own = kind.and_then(|kind| policy.kinds.get(&kind)?.jitter);
    match own.unwrap_or(policy.jitter) {
        Jitter::None => "",
        Jitter::Full => "; each is spread at random between nothing and that",
        Jitter::Equal => "; each is drawn at random between half of that and the whole",
        Jitter::Decorrelated => "; each is drawn at random, depending on the one before",
    }
}

/// The ways that lost, and why.
fn lost(made: &DecisionMade, out: &mut Output) -> Result<()> {
    part("what was weighed", out)?;
    let chosen = match (&made.decision.strategy, &made.decision.action) {
        (Some(strategy), _) => strategy.clone(),
        (None, Chosen::Retry { .. }) => "same: once more, unchanged".to_owned(),
        (None, Chosen::Ask { .. }) => "ask a person".to_owned(),
        (None, Chosen::Stop { .. }) => "pass it on".to_owned(),
        (None, Chosen::Change { .. }) => "a person's words".to_owned(),
    };
    fact(&format!("chosen: {chosen}"), out)?;
    for passed in &made.decision.fell_through {
        fact(&passed_over(passed, made.made_from.limits.retries), out)?;
    }
    if let Some(cost) = &made.decision.cost {
        fact(&format!("cost: {}", cost.formula), out)?;
    }
    Ok(())
}

fn passed_over(passed: &FellThrough, allowed: u32) -> String {
    match (&*passed.strategy, allowed) {
        // What stands for all further ways together.
        ("chain", 0) => "no other way: the policy allows none".to_owned(),
        ("chain", 1) => "no further way: the policy allows one, and it was tried".to_owned(),
        ("chain", n) => format!("no further way: the policy allows {n}, and all were tried"),
        ("same", _) => format!("passed over: once more, unchanged ({})", passed.why),
        (strategy, _) => format!("passed over: {strategy} ({})", passed.why),
    }
}

fn part(title: &str, out: &mut Output) -> Result<()> {
    writeln!(out, "  {DIM}{title}{DIM:#}")?;
    Ok(())
}

fn fact(text: &str, out: &mut Output) -> Result<()> {
    fitted(&format!("    {text}"), 6, out)
}

/// Writes a text, broken where the terminal ends.
fn fitted(text: &str, indent: usize, out: &mut Output) -> Result<()> {
    let broken = out.columns().map(|columns| wrapped(text, columns, indent));
    writeln!(out, "{}", broken.as_deref().unwrap_or(text))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_passed_over_is_told_in_plain_words() {
        let passed = |strategy: &'static str, why: &'static str| FellThrough {
            strategy: strategy.into(),
            why: why.into(),
        };
        assert_eq!(
            passed_over(&passed("chain", "2 of 2 ways are used"), 2),
            "no further way: the policy allows 2, and all were tried"
        );
        assert_eq!(
            passed_over(&passed("next_model", "it was already tried"), 2),
            "passed over: next_model (it was already tried)"
        );
    }
}
