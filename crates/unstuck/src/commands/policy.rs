//! `unstuck policy`: shows and checks retry policies.
#![expect(
    clippy::disallowed_methods,
    reason = "a file that the user names on the command line"
)]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use unstuck_core::RetryPolicy;
use unstuck_core::decision::DEFAULT_TEMPLATE;
use unstuck_core::duration::HumanDuration;

use crate::config::Config;
use crate::error_report::error_with_hint;
use crate::output::{BOLD, DIM, GREEN, Output};

/// Show and check retry policies
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck policy list
  unstuck policy show patient --json
  unstuck policy check my-policy.json")]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// List the available policies
    #[command(after_help = "Example:\n  unstuck policy list")]
    List {
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one policy, or the effective one
    #[command(after_help = "Example:\n  unstuck policy show patient")]
    Show {
        /// Policy id [default: the configured policy, otherwise resilient]
        id: Option<String>,
        /// Print JSON in the format of the REST API
        #[arg(long)]
        json: bool,
    },
    /// Check policies in JSON or TOML files, or the effective configuration
    #[command(after_help = "Example:\n  unstuck policy check my-policy.json")]
    Check {
        /// Files that contain one policy each
        files: Vec<PathBuf>,
    },
}

pub(crate) fn run(args: &PolicyArgs, config: &Config, out: &mut Output) -> Result<()> {
    match &args.command {
        PolicyCommand::List { json: true } => {
            out.write_json(&config.policies().collect::<Vec<_>>())
        }
        PolicyCommand::List { json: false } => list(config, out),
        PolicyCommand::Show { id, json } => {
            let policy = find(config, id.as_deref())?;
            if *json {
                out.write_json(policy)
            } else {
                show(policy, out)
            }
        }
        PolicyCommand::Check { files } if files.is_empty() => check_config(config, out),
        PolicyCommand::Check { files } => check(files, out),
    }
}

fn find<'c>(config: &'c Config, id: Option<&str>) -> Result<&'c RetryPolicy> {
    let wanted = id.unwrap_or(DEFAULT_TEMPLATE);
    if let (None, Some(policy)) = (id, config.policy()) {
        return Ok(policy);
    }
    let found = config.policies().find(|policy| policy.id == wanted);
    found.ok_or_else(|| {
        let known: Vec<_> = config.policies().map(|policy| policy.id.as_str()).collect();
        error_with_hint(
            format!("unknown policy `{wanted}`"),
            format!("available policies: {}", known.join(", ")),
        )
    })
}

fn list(config: &Config, out: &mut Output) -> Result<()> {
    for policy in config.policies() {
        writeln!(
            out,
            "{BOLD}{:<10}{BOLD:#} {}",
            policy.id, policy.description
        )?;
        writeln!(out, "           {DIM}{}{DIM:#}", policy_summary(policy))?;
    }
    Ok(())
}

fn policy_summary(policy: &RetryPolicy) -> String {
    if !policy.enabled {
        return "no retries".to_owned();
    }
    let model = if policy.auto_switch_model {
        "switches the model automatically"
    } else {
        "keeps the model"
    };
    if let Some(time) = policy.give_up_after {
        let time = HumanDuration(time);
        let waits = waits_text(policy);
        return format!("retries for {time} without progress, after {waits}; {model}");
    }
    let retries = if policy.max_retries == 1 {
        "retry"
    } else {
        "retries"
    };
    format!(
        "{} {retries} after {}; {model}",
        policy.max_retries,
        waits_text(policy)
    )
}

/// Renders the delays before each retry, without jitter.
fn waits_text(policy: &RetryPolicy) -> String {
    let backoff = policy.backoff();
    let count = match policy.give_up_after {
        Some(_) => 8,
        None => policy.max_retries.min(8),
    };
    let waits: Vec<_> = (1..=count)
        .map(|n| HumanDuration(backoff.curve_delay(n)).to_string())
        .collect();
    waits.join(", ")
}

fn show(policy: &RetryPolicy, out: &mut Output) -> Result<()> {
    writeln!(out, "{BOLD}{}{BOLD:#}  {}", policy.id, policy.name)?;
    if !policy.description.is_empty() {
        writeln!(out, "  {}", policy.description)?;
    }
    for (label, value) in rows(policy) {
        writeln!(out, "  {DIM}{label:<13}{DIM:#}{value}")?;
    }
    let kinds = policy.kinds.iter().map(|(kind, of)| (kind.name(), of));
    let tools = policy.tools.iter().map(|(tool, of)| (tool.as_str(), of));
    for (place, of) in kinds.chain(tools) {
        writeln!(
            out,
            "  {DIM}{place:<13}{DIM:#}{}",
            serde_json::to_string(of)?
        )?;
    }
    Ok(())
}

fn rows(policy: &RetryPolicy) -> [(&'static str, String); 8] {
    let (model, asks) = model_and_approval_text(policy);
    [
        ("retries", retries(policy)),
        ("waits", waits_in_full(policy)),
        ("retries on", retryable_text(policy)),
        ("model", model),
        ("asks", asks),
        ("longest wait", duration_or(policy.max_wait, "unlimited")),
        ("total time", duration_or(policy.max_elapsed, "unlimited")),
        ("budget", usd_or(policy.max_cost, "unlimited")),
    ]
}

fn retries(policy: &RetryPolicy) -> String {
    let count = policy.max_retries;
    match policy.give_up_after {
        Some(time) => format!(
            "transient kinds for {} without progress, others {count}",
            HumanDuration(time)
        ),
        None => count.to_string(),
    }
}

fn waits_in_full(policy: &RetryPolicy) -> String {
    if policy.max_retries == 0 && policy.give_up_after.is_none() {
        return "none".to_owned();
    }
    let (waits, jitter) = (waits_text(policy), serde_name(&policy.jitter));
    format!("{waits} (cap {} s, jitter {jitter})", policy.max_backoff)
}

fn retryable_text(policy: &RetryPolicy) -> String {
    let kinds: Vec<_> = policy
        .retryable_errors
        .iter()
        .map(|kind| kind.name())
        .collect();
    if kinds.is_empty() {
        "every transient kind".to_owned()
    } else {
        kinds.join(", ")
    }
}

fn model_and_approval_text(policy: &RetryPolicy) -> (String, String) {
    if !policy.auto_switch_model {
        return (
            "never switched without approval".to_owned(),
            "when all strategies are exhausted".to_owned(),
        );
    }
    let approval = match policy.confirm_above {
        Some(usd) => format!("before a model switch costs more than ${usd} extra"),
        None => "when all strategies are exhausted".to_owned(),
    };
    (
        format!(
            "switched automatically after {} retries",
            policy.switch_model_after_retries
        ),
        approval,
    )
}

fn usd_or(usd: Option<f64>, none: &str) -> String {
    usd.map_or_else(|| none.to_owned(), |usd| format!("${usd}"))
}

fn duration_or(limit: Option<Duration>, none: &str) -> String {
    limit.map_or_else(|| none.to_owned(), |limit| HumanDuration(limit).to_string())
}

fn serde_name(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn check_config(config: &Config, out: &mut Output) -> Result<()> {
    // Loading has already rejected invalid policies.
    let policy = find(config, None)?;
    let from = config
        .files()
        .iter()
        .map(|path| path.display().to_string())
        .collect::<Vec<_>>()
        .join(", ");
    let from = if from.is_empty() {
        "no configuration file, using defaults".to_owned()
    } else {
        from
    };
    writeln!(
        out,
        "{GREEN}ok{GREEN:#}: {from}: {} ({})",
        policy.id,
        policy_summary(policy)
    )?;
    Ok(())
}

fn check(files: &[PathBuf], out: &mut Output) -> Result<()> {
    for path in files {
        let policy = read_policy(path)?;
        writeln!(
            out,
            "{GREEN}ok{GREEN:#}: {}: {} ({})",
            path.display(),
            policy.id,
            policy_summary(&policy)
        )?;
    }
    Ok(())
}

fn read_policy(path: &Path) -> Result<RetryPolicy> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let is_json =
        path.extension().is_some_and(|end| end == "json") || text.trim_start().starts_with('{');
    let policy = if is_json {
        RetryPolicy::from_json(&text)
    } else {
        RetryPolicy::from_toml(&text)
    };
    policy.map_err(|error| {
        let problems = error
            .problems
            .iter()
            .map(|problem| format!("\n  {problem}"))
            .collect::<String>();
        error_with_hint(
            format!("invalid policy {}:{problems}", path.display()),
            "`unstuck policy show resilient --json` shows all fields",
        )
    })
}
