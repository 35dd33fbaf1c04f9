//! `unstuck show`: the story of one run, attempt by attempt; of a pipeline, role by role.

mod attempt;
mod roles;

use std::io::Write;

use anyhow::Result;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::{Value, json};
use unstuck_core::duration::Human;
use unstuck_core::episode::{AttemptStory, Status, Timeline};
use unstuck_store::Spent;

use self::attempt::{tell, written};
use crate::history::{History, Listed};
use crate::named::Named;
use crate::output::{BOLD, DIM, Output};
use crate::place::homely;
use crate::run_words::{is_clients, style, what};
use crate::session::Session;
use crate::show_text::cut;
use crate::{call_words, clock, completion, runtime, state_text};

/// Show a run: what was tried, what failed, what was decided and why, what it cost
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck show            (the newest run)
  unstuck show k3v9
  unstuck show k3v9/2     (attempt 2, with the end of its output)
  unstuck show k3v9/tester      (a role of a pipeline, in all iterations)
  unstuck show k3v9/tester/2    (attempt 2 of its newest iteration)
  unstuck show --json | jq '.attempts[].diagnosis.kind'")]
pub(crate) struct ShowArgs {
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

pub(crate) fn run(args: &ShowArgs, session: &Session<'_>, out: &mut Output) -> Result<()> {
    let named = Named::read(args.run.as_deref())?;
    let (timeline, driven, spent) = runtime::block_on(async {
        let history = History::open(session.store).await?;
        let (timeline, driven) = history.story(named.letters, clock::now().at).await?;
        let spent = history.spent(&timeline.view.id).await?;
        anyhow::Ok((timeline, driven, spent))
    })?;
    let attempts = named.attempts(&timeline)?;
    if args.json {
        let run = Listed::of(timeline.view.clone(), driven);
        let mut whole = as_json(&timeline, named, &attempts, &run)?;
        whole["api_calls"] = call_words::as_json(&timeline, spent.as_ref())?;
        return out.json(&whole);
    }
    let run = Listed::of(timeline.view.clone(), driven);
    match (named.attempt, attempts.as_slice()) {
        (Some(_), [attempt]) => show_attempt(&run, &timeline, attempt, session, out),
        _ => {
            let shown = Shown {
                run: &run,
                timeline: &timeline,
                spent: spent.as_ref(),
            };
            show_all(&shown, named, session, out)
        }
    }
}

/// The run at a glance, with the attempts that are meant in full.
fn as_json(
    timeline: &Timeline,
    named: Named<'_>,
    attempts: &[&AttemptStory],
    run: &Listed,
) -> Result<Value> {
    let mut whole = serde_json::to_value(run)?;
    if let Some(fields) = whole.as_object_mut() {
        let count = fields.insert("attempts".into(), json!(attempts));
        fields.insert("attempt_count".into(), count.unwrap_or(Value::Null));
        fields.insert("cwd".into(), json!(timeline.run.cwd()));
        fields.insert("sessions".into(), roles::as_json(timeline, named, run)?);
        if let Some(plan) = timeline.run.pipeline() {
            fields.insert("config_path".into(), json!(plan.config_path));
        }
    }
    Ok(whole)
}

/// Tells the story of a run that this process has driven to its end.
pub(crate) fn show(timeline: &Timeline, session: &Session<'_>, out: &mut Output) -> Result<()> {
    let run = Listed::of(timeline.view.clone(), true);
    let shown = Shown {
        run: &run,
        timeline,
        spent: None,
    };
    show_all(&shown, Named::default(), session, out)
}

/// What is shown of a run.
struct Shown<'a> {
    run: &'a Listed,
    timeline: &'a Timeline,
    /// What its calls used, as the gateway counted it.
    spent: Option<&'a Spent>,
}

fn show_all(
    shown: &Shown<'_>,
    named: Named<'_>,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<()> {
    let Shown {
        run,
        timeline,
        spent,
    } = shown;
    head(run, timeline, out)?;
    match timeline.run.pipeline() {
        Some(plan) => roles::show(run, timeline, plan, named, out)?,
        None => {
            for attempt in &timeline.attempts {
                writeln!(out)?;
                tell(attempt, out)?;
            }
        }
    }
    loose_calls(timeline, out)?;
    writeln!(out)?;
    if let Some(spent) = spent {
        writeln!(out, "{}", call_words::closing(spent))?;
    }
    ending(run, session, out)
}

/// The calls that belong to no attempt.
fn loose_calls(timeline: &Timeline, out: &mut Output) -> Result<()> {
    if !timeline.calls.is_empty() || !timeline.moved.is_empty() {
        writeln!(out)?;
    }
    for told in call_words::stories(&timeline.calls) {
        writeln!(out, "{told}")?;
    }
    for change in &timeline.moved {
        writeln!(out, "model {} → {}", change.from_model, change.to_model)?;
    }
    Ok(())
}

/// One attempt, with the end of what it wrote.
fn show_attempt(
    run: &Listed,
    timeline: &Timeline,
    attempt: &AttemptStory,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<()> {
    head(run, timeline, out)?;
    writeln!(out)?;
    if let Some(part) = &attempt.part {
        roles::name(part, &timeline.run, out)?;
    }
    tell(attempt, out)?;
    if let Some(excerpt) = &attempt.excerpt {
        written(excerpt, out)?;
    }
    writeln!(out)?;
    let (short, index) = (run.run.id.short(), attempt.index);
    let mut next = vec![format!("logs {short} --attempt {index}")];
    if attempt.decision.is_some() {
        next.insert(0, format!("explain {short}/{index}"));
    }
    proposed(&next, session, out)
}

fn head(listed: &Listed, timeline: &Timeline, out: &mut Output) -> Result<()> {
    let run = &listed.run;
    let (style, standing) = (style(run.status), run.status.name());
    let before = run.id.as_str().len() + standing.len() + 4;
    let room = out.columns().map(|columns| columns.saturating_sub(before));
    writeln!(
        out,
        "{BOLD}{}{BOLD:#}  {style}{standing}{style:#}  {}",
        run.id,
        cut(&what(run), room.unwrap_or(100).max(20))
    )?;
    let plan = timeline.run.pipeline();
    let config = plan.and_then(|plan| plan.config_path.as_deref());
    let mut facts = vec![
        homely(config.unwrap_or(&run.project)),
        format!("policy {}", run.policy),
        format!("began {}", clock::shown(run.started)),
    ];
    // The roles of a pipeline have models of their own.
    facts.extend(run.model.clone().filter(|_| plan.is_none()));
    match (run.cost_usd > 0.0, run.unpriced > 0) {
        (true, false) => facts.push(format!("${:.4}", run.cost_usd)),
        (true, true) => facts.push(format!("${:.4} + unknown", run.cost_usd)),
        (false, true) => facts.push("cost unknown".to_owned()),
        (false, false) => {}
    }
    writeln!(out, "{DIM}{}{DIM:#}", facts.join(" · "))?;
    Ok(())
}

fn ending(listed: &Listed, session: &Session<'_>, out: &mut Output) -> Result<()> {
    let run = &listed.run;
    let (short, style) = (run.id.short(), style(run.status));
    let Some(finished) = run.finished else {
        return unfinished(listed, session, out);
    };
    let took = Human(finished.since(run.started));
    writeln!(
        out,
        "{style}{}{style:#} after {took}: {}",
        run.status,
        run.reason.as_deref().unwrap_or_default()
    )?;
    if is_clients(run) {
        return proposed(&["cost --by session".to_owned()], session, out);
    }
    let mut next = vec![format!("explain {short}"), format!("logs {short}")];
    if !run.status.is_final() {
        next.push(format!("resume {short}"));
    }
    proposed(&next, session, out)
}

/// The state of a run that has not ended.
fn unfinished(listed: &Listed, session: &Session<'_>, out: &mut Output) -> Result<()> {
    let run = &listed.run;
    let (status, style) = (run.status, style(run.status));
    let wait = state_text::wait(&listed.state, clock::now().at);
    if status != Status::Crashed {
        let wait = wait.map(|wait| format!(" {wait}")).unwrap_or_default();
        writeln!(out, "{style}{status}{style:#}{wait}")?;
        return Ok(());
    }
    if is_clients(run) {
        writeln!(
            out,
            "{style}{status}{style:#}: the gateway that served it is gone"
        )?;
        return Ok(());
    }
    let doing = match wait {
        Some(wait) => format!(" while waiting {wait}"),
        None => String::new(),
    };
    writeln!(
        out,
        "{style}{status}{style:#}{doing}: its supervising process is gone"
    )?;
    let short = run.id.short();
    let next = [format!("resume {short}"), format!("logs {short}")];
    proposed(&next, session, out)
}

/// Commands that a person may want next.
fn proposed(next: &[String], session: &Session<'_>, out: &mut Output) -> Result<()> {
    let next: Vec<_> = next.iter().map(|words| session.line(words)).collect();
    let line = next.join("  ·  ");
    let fits = line.chars().count() <= out.columns().unwrap_or(80);
    // A command that is broken in two cannot be copied.
    let line = if fits { line } else { next.join("\n") };
    writeln!(out, "{DIM}{line}{DIM:#}")?;
    Ok(())
}
