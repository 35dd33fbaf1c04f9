//! `unstuck explain`: why it was decided like this.

use std::io::Write;

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use unstuck_core::decision::Chosen;
use unstuck_core::episode::{AttemptStory, Timeline};
use unstuck_core::event::DecisionMade;

use crate::history::History;
use crate::output::{BOLD, DIM, Output};
use crate::report::refused;
use crate::show_text::one_line;
use crate::supervise::Session;
use crate::{completion, runtime};

/// Explain decisions: the rule that matched, the policy's values and their origin, the ways that lost
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck explain              (every decision of the newest run)
  unstuck explain k3v9/2       (the one about attempt 2)
  unstuck explain k3v9 --json")]
pub(crate) struct ExplainArgs {
    /// The run, and the attempt behind a slash if only one is meant [default: the newest run]
    #[arg(value_name = "RUN[/ATTEMPT]", add = completion::runs())]
    run: Option<String>,

    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ExplainArgs, session: &Session<'_>, out: &mut Output) -> Result<()> {
    let (letters, number) = split(args.run.as_deref())?;
    let timeline = runtime::block_on(async {
        let history = History::open(session.store).await?;
        let run = history.find(letters).await?;
        history.timeline(&run.id).await
    })?;
    let wanted = |attempt: &&AttemptStory| number.is_none_or(|number| attempt.number == number);
    let attempts: Vec<_> = timeline.attempts.iter().filter(wanted).collect();
    if let (Some(number), true) = (number, attempts.is_empty()) {
        let there = timeline.attempts.len();
        return Err(refused(
            format!("run {} has no attempt {number}", timeline.view.id),
            format!("it has {there} of them"),
        ));
    }
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
    if decided.peek().is_none() {
        writeln!(out, "Nothing was decided: nothing failed.")?;
    }
    for attempt in decided {
        explain(&timeline, attempt, out)?;
    }
    Ok(())
}

/// The letters of the run and the number of the attempt.
fn split(given: Option<&str>) -> Result<(Option<&str>, Option<u32>)> {
    let Some((letters, number)) = given.and_then(|given| given.split_once('/')) else {
        return Ok((given, None));
    };
    let number = number.parse().map_err(|_| {
        refused(
            format!("`{number}` is not the number of an attempt"),
            "write the run and the number, such as k3v9/2",
        )
    })?;
    Ok((
        Some(letters).filter(|letters| !letters.is_empty()),
        Some(number),
    ))
}

fn as_json(timeline: &Timeline, attempt: &AttemptStory) -> Value {
    json!({
        "id": attempt.id,
        "number": attempt.number,
        "outcome": attempt.outcome,
        "diagnosis": attempt.diagnosis,
        "decision": attempt.decision.as_ref().map(|made| &made.decision),
        "made_from": attempt.decision.as_ref().map(|made| &made.made_from),
        "policy": timeline.run.policy,
        "origins": timeline.run.origins,
    })
}

fn explain(timeline: &Timeline, attempt: &AttemptStory, out: &mut Output) -> Result<()> {
    let Some(made) = &attempt.decision else {
        return Ok(());
    };
    writeln!(
        out,
        "{BOLD}attempt {}{BOLD:#}: {}",
        attempt.number, made.decision.reason
    )?;
    if let Some(diagnosis) = &attempt.diagnosis {
        part("what was seen", out)?;
        let sure = f64::from(diagnosis.confidence) * 100.0;
        fact(
            &format!(
                "{} ({}), {sure:.0} % sure",
                diagnosis.kind,
                diagnosis.category()
            ),
            out,
        )?;
        fact(&format!("rule {}", diagnosis.evidence.rule), out)?;
        fact(
            &format!("line {}", one_line(&diagnosis.evidence.line, 200)),
            out,
        )?;
        fact(
            &format!(
                "the same failure has the fingerprint {}",
                diagnosis.fingerprint
            ),
            out,
        )?;
    }
    limits(timeline, made, out)?;
    lost(made, out)?;
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

fn limits(timeline: &Timeline, made: &DecisionMade, out: &mut Output) -> Result<()> {
    let limits = &made.made_from.limits;
    let (run, policy) = (&timeline.run, &timeline.run.policy);
    part("what the policy says", out)?;
    let origin = |key: &str| run.origins.get(key).or(run.origins.get("policy"));
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
            "waits start at {} s, ×{}, at most {} s",
            limits.backoff_base, limits.backoff_multiplier, limits.max_backoff
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
        fact(
            &format!("passed over: {} ({})", passed.strategy, passed.why),
            out,
        )?;
    }
    if let Some(cost) = &made.decision.cost {
        fact(&format!("cost: {}", cost.formula), out)?;
    }
    Ok(())
}

fn part(title: &str, out: &mut Output) -> Result<()> {
    writeln!(out, "  {DIM}{title}{DIM:#}")?;
    Ok(())
}

fn fact(text: &str, out: &mut Output) -> Result<()> {
    writeln!(out, "    {text}")?;
    Ok(())
}
