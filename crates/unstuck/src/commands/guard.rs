//! `unstuck guard`: checks whether a repair may run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use data_encoding::BASE64;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use unstuck_core::command_policy::{
    ApprovalReason, CommandEvaluation, CommandVerdict, CommandVerdictRestrictions, DirectOrShell,
    EvaluationStep, RepairPolicy, sanitize_command,
};
use unstuck_repair::project_dir::ProjectRoot;
use unstuck_repair::{ProposalEvaluation, evaluate_proposal};

use super::jsonl_input;
use crate::config::{self, Config, ConfigSources};
use crate::error_report::error_with_hint;
use crate::output::{BOLD, DIM, GREEN, Output, RED, YELLOW};
use crate::project_lookup::project_of;
use crate::{effective_repair_settings, project_trust};

/// Check whether a repair command may run, and why
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    arg_required_else_help = true,
    after_help = "Examples:
  unstuck guard \"npm ci\"                 (the same as `unstuck guard check`)
  unstuck guard check \"rm -rf node_modules && npm ci\" --working-dir packages/web --json
  unstuck guard --jsonl --root path/to/project < proposals.jsonl

Rules:
  R0 document   R1 schema       R2 characters    R3 trimming   R4 auto_approve, byte for byte
  R5 require_human, on_unknown  R6 working_dir   R7 timeout    R8 plain commands only
  R9 invalid [recovery] approves nothing         R10 switch, limit, cooldown
  Details: docs/guide/guard.md"
)]
pub(crate) struct GuardArgs {
    #[command(subcommand)]
    command: Option<GuardCommand>,

    /// Read one JSON proposal per line (id, document_base64, config, state) from FILE or standard input, and print
    /// one verdict per line
    ///
    /// `config` is the `[recovery]` section, `state` holds `auto_recoveries_this_run`. unstuck assumes that trust,
    /// watched files and the cooldown allow the command.
    #[arg(long, requires = "root")]
    jsonl: bool,

    /// Project root to which the proposals apply
    #[arg(long, value_name = "DIR", requires = "jsonl")]
    root: Option<PathBuf>,

    /// Command to check; with --jsonl, the file to read [default: standard input]
    #[arg(value_name = "COMMAND")]
    input: Option<String>,

    #[command(flatten)]
    options: CheckOptions,
}

#[derive(Debug, Subcommand)]
enum GuardCommand {
    /// Explain step by step whether a command would run here, without running it
    ///
    /// Exit code: 0 runs automatically, 3 needs approval, 1 denied or rejected, 2 unstuck error.
    #[command(after_help = "Example:\n  unstuck guard check \"npm ci\" --working-dir packages/web")]
    Check(CheckArgs),
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// Command to check
    command: String,

    #[command(flatten)]
    options: CheckOptions,
}

#[derive(Debug, Clone, Args)]
struct CheckOptions {
    /// Working directory, relative to the project root [default: the root]
    #[arg(long, value_name = "DIR")]
    working_dir: Option<String>,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &GuardArgs, named: Option<&Path>, out: &mut Output) -> Result<ExitCode> {
    let explain_one = |command: &str, options: &CheckOptions, out: &mut Output| {
        let sources = ConfigSources {
            named,
            ..ConfigSources::default()
        };
        let check = CommandCheck { command, options };
        check_one(&check, &config::load(sources)?, out)
    };
    match (&args.command, &args.root, &args.input) {
        (Some(GuardCommand::Check(check)), ..) => explain_one(&check.command, &check.options, out),
        (None, Some(root), input) => each_line(root, input.as_deref().map(Path::new), out),
        (None, None, Some(command)) => explain_one(command, &args.options, out),
        (None, None, None) => Err(error_with_hint(
            "no command given",
            "`unstuck guard \"npm ci\"` checks a command",
        )),
    }
}

/// One proposal of a list.
#[derive(Deserialize)]
struct ProposalLine {
    document_base64: String,
    #[serde(default)]
    config: Value,
    #[serde(default)]
    state: ProposalState,
}

#[derive(Deserialize, Default)]
struct ProposalState {
    #[serde(default)]
    auto_recoveries_this_run: u32,
}

fn each_line(root: &Path, file: Option<&Path>, out: &mut Output) -> Result<ExitCode> {
    let root = ProjectRoot::open(root)?;
    jsonl_input::each_line(file, out, |line| {
        let line: ProposalLine = serde_json::from_value(line)?;
        let bytes = BASE64
            .decode(line.document_base64.as_bytes())
            .context("document_base64 is not valid Base64")?;
        Ok(verdict_json(&bytes, &root, &line.config, line.state))
    })?;
    Ok(ExitCode::SUCCESS)
}

fn verdict_json(bytes: &[u8], root: &ProjectRoot, config: &Value, state: ProposalState) -> Value {
    let (rules, unread) = match RepairPolicy::from_json(config) {
        Ok(rules) => (rules, None),
        Err(_) if config.is_null() => (RepairPolicy::default(), None),
        Err(error) => (
            RepairPolicy::default(),
            Some(error_verdict(&error.to_string())),
        ),
    };
    let standing = CommandVerdictRestrictions {
        auto_repairs_this_run: state.auto_recoveries_this_run,
        ..CommandVerdictRestrictions::default()
    };
    let weighed = evaluate_proposal(bytes, root, &rules, &standing);
    let judgement = weighed.command_evaluation();
    let mut answer = json!({
        "verdict": judgement.verdict.name(),
        "reason": unread.map_or_else(|| judgement.reason.clone(), |unread| format!("{unread}; {}", judgement.reason)),
    });
    let fallback = match &weighed {
        ProposalEvaluation::Rejected(judgement) => Some(judgement),
        ProposalEvaluation::Evaluated(judged) => judged.fallback_evaluation.as_ref(),
    };
    if let Some(fallback) = fallback {
        answer["fallback_verdict"] = fallback.verdict.name().into();
    }
    answer
}

fn error_verdict(problem: &str) -> String {
    format!("[recovery] is ignored: {problem}")
}

/// The JSON result of `guard check`.
#[derive(Serialize)]
struct CheckReport<'c> {
    verdict: &'static str,
    reason: &'c str,
    command: &'c str,
    /// Directory relative to the project root; none if the proposal is rejected.
    directory: Option<String>,
    /// Execution form: as argv or through a shell.
    execution: Option<ExecutionForm>,
    approval_reason: &'c [ApprovalReason],
    steps: Vec<CheckReportStep<'c>>,
    notes: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum ExecutionForm {
    Argv(Vec<Vec<String>>),
    Shell(String),
}

#[derive(Serialize)]
struct CheckReportStep<'c> {
    rule: &'static str,
    about: &'static str,
    effect: &'static str,
    explanation: &'c str,
}

/// A command to check.
struct CommandCheck<'a> {
    command: &'a str,
    options: &'a CheckOptions,
}

fn check_one(args: &CommandCheck<'_>, config: &Config, out: &mut Output) -> Result<ExitCode> {
    let here = std::env::current_dir().context("cannot determine the current directory")?;
    let root = ProjectRoot::open(&project_of(&here))?;
    let (rules, notes) = rules(config, root.path());
    let working_dir = args.options.working_dir.as_deref();
    let document = proposal_document(args.command, working_dir);
    let standing =
        effective_repair_settings::policy_context(config, &root, args.command, working_dir);
    let weighed = evaluate_proposal(document.to_string().as_bytes(), &root, &rules, &standing);
    let judgement = weighed.command_evaluation();
    if args.options.json {
        out.write_json(&check_report(args.command, &weighed, notes))?;
    } else {
        explain(args.command, judgement, &notes, out)?;
    }
    Ok(ExitCode::from(match judgement.verdict {
        CommandVerdict::Run(_) => 0,
        CommandVerdict::RequireApproval(_) => 3,
        CommandVerdict::Deny | CommandVerdict::RejectProposal => 1,
    }))
}

/// Returns the effective repair rules, with notes about them.
fn rules(config: &Config, project: &Path) -> (RepairPolicy, Vec<String>) {
    let Some(section) = config.repair_policy(project_trust::project_trust(config, project)) else {
        let note = "no [recovery] section, so every command needs approval";
        return (RepairPolicy::default(), vec![note.to_owned()]);
    };
    match section.rules() {
        Ok(rules) => (rules, Vec::new()),
        Err(error) => (
            RepairPolicy::default(),
            vec![error_verdict(&error.to_string())],
        ),
    }
}

/// Builds a proposal with only this command, so that it is evaluated like any other.
fn proposal_document(command: &str, working_dir: Option<&str>) -> Value {
    json!({
        "version": 1,
        "timestamp": "2026-01-01T00:00:00Z",
        "category": "environment",
        "severity": "blocking",
        "diagnosis": { "error_pattern": "", "root_cause": "", "evidence": [] },
        "recovery": { "command": command, "working_dir": working_dir, "expected_outcome": "", "confidence": "low" },
    })
}

fn check_report<'c>(
    command: &'c str,
    weighed: &'c ProposalEvaluation,
    notes: Vec<String>,
) -> CheckReport<'c> {
    let judgement = weighed.command_evaluation();
    let step = |step: &'c EvaluationStep| CheckReportStep {
        rule: step.rule,
        about: step.subject,
        effect: step.effect.name(),
        explanation: &step.finding,
    };
    CheckReport {
        verdict: judgement.verdict.name(),
        reason: &judgement.reason,
        command,
        directory: match weighed {
            ProposalEvaluation::Rejected(_) => None,
            ProposalEvaluation::Evaluated(judged) => {
                Some(judged.folder.relative().display().to_string())
            }
        },
        execution: match &judgement.verdict {
            CommandVerdict::Run(approved) => {
                Some(match DirectOrShell::for_text(approved.command_text()) {
                    DirectOrShell::Direct(commands) => ExecutionForm::Argv(commands),
                    DirectOrShell::Shell(text) => ExecutionForm::Shell(text),
                })
            }
            _ => None,
        },
        approval_reason: match &judgement.verdict {
            CommandVerdict::RequireApproval(whys) => whys,
            _ => &[],
        },
        steps: judgement.steps.iter().map(step).collect(),
        notes,
    }
}

fn explain(
    command: &str,
    judgement: &CommandEvaluation,
    notes: &[String],
    out: &mut Output,
) -> Result<()> {
    let (style, word) = match &judgement.verdict {
        CommandVerdict::Run(_) => (GREEN, "would run"),
        CommandVerdict::RequireApproval(_) => (YELLOW, "needs approval"),
        CommandVerdict::Deny => (RED, "denied"),
        CommandVerdict::RejectProposal => (RED, "rejected"),
    };
    let command = sanitize_command(command);
    writeln!(out, "{style}{word}{style:#}  {BOLD}{command}{BOLD:#}")?;
    writeln!(out, "  {DIM}{:<10}{DIM:#}{}", "because", judgement.reason)?;
    for step in &judgement.steps {
        // Untrusted rules are ignored, which is neutral for the command.
        let effect = match step.rule {
            "trust" => "ignored".to_owned(),
            _ => step.effect.name().replace('_', " "),
        };
        let about = step.subject;
        writeln!(
            out,
            "  {DIM}{about:<10}{DIM:#}{effect:<14} {} {DIM}({}){DIM:#}",
            step.finding, step.rule
        )?;
    }
    if let CommandVerdict::Run(approved) = &judgement.verdict {
        let how = match DirectOrShell::for_text(approved.command_text()) {
            DirectOrShell::Direct(_) => "without a shell",
            DirectOrShell::Shell(_) => "via /bin/sh -c",
        };
        writeln!(
            out,
            "  {DIM}{:<10}{DIM:#}{} ({how})",
            "runs",
            sanitize_command(approved.command_text())
        )?;
    }
    for note in notes {
        writeln!(out, "{YELLOW}note{YELLOW:#}: {note}")?;
    }
    Ok(())
}
