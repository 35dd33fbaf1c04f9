//! `unstuck propose`: lets an agent propose a repair without writing JSON by hand.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use unstuck_core::command_policy::{Proposal, sanitize};
use unstuck_repair::evaluate_proposal;
use unstuck_repair::project_dir::ProjectRoot;
use unstuck_repair::proposal_file::ProposalFile;

use crate::config::Config;
use crate::environment_variables;
use crate::error_report::{error_with_hint, refusal};
use crate::output::{BOLD, Output};
use crate::project_lookup::project_of;
use crate::{clock, effective_repair_settings};

/// Propose a repair of the environment; for agents whose tests cannot run
///
/// Runs nothing. Inside a supervised agent, stores the proposal; unstuck evaluates it by the owner's rules when the
/// agent ends. Elsewhere, only checks the proposal and prints the verdict.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  unstuck propose --command 'npm ci' --category dependency --root-cause 'no node_modules' \\
    --pattern 'Cannot find module' --evidence \"test.log:12: Cannot find module 'is-odd'\" \\
    --confidence high
  unstuck propose recovery.json
  unstuck propose - < recovery.json

Exit codes: 0 stored for evaluation, or would run; 3 needs approval; 1 denied or rejected."
)]
pub(crate) struct ProposeArgs {
    /// Proposal as JSON; `-` for standard input
    #[arg(
        value_name = "FILE",
        conflicts_with = "command",
        required_unless_present = "command"
    )]
    file: Option<PathBuf>,

    /// Command that fixes the failure
    #[arg(long, value_name = "CMD", requires_all = ["root_cause", "evidence"])]
    command: Option<String>,

    /// Category of the failure
    #[arg(
        long,
        value_enum,
        default_value = "dependency",
        value_name = "CATEGORY"
    )]
    category: Category,

    /// Root cause of the failure
    #[arg(long, value_name = "TEXT")]
    root_cause: Option<String>,

    /// Evidence, such as test.log:12: … (repeatable)
    #[arg(long, value_name = "TEXT")]
    evidence: Vec<String>,

    /// Regular expression that matches the failure text
    #[arg(
        long,
        value_name = "REGEX",
        default_value = "",
        hide_default_value = true
    )]
    pattern: String,

    /// Expected outcome
    #[arg(long, value_name = "TEXT", default_value = "the tests can run")]
    expected: String,

    /// Confidence: high for an exact known pattern, low for a guess
    #[arg(long, value_enum, default_value = "medium", value_name = "LEVEL")]
    confidence: ConfidenceArg,

    /// Working directory, relative to the project root
    #[arg(long, value_name = "DIR")]
    working_dir: Option<String>,

    /// Timeout in seconds
    #[arg(long, value_name = "N", default_value_t = 120)]
    timeout: u32,

    /// Fallback command
    #[arg(long, value_name = "CMD")]
    fallback: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Category {
    Dependency,
    Config,
    Environment,
    Permissions,
    Network,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ConfidenceArg {
    High,
    Medium,
    Low,
}

pub(crate) fn run(args: &ProposeArgs, config: &Config, out: &mut Output) -> Result<ExitCode> {
    let bytes = proposal_document(args)?;
    let proposal = Proposal::parse(&bytes).map_err(|error| {
        refusal(
            format!("invalid proposal: {error}"),
            "`unstuck propose --help` shows a valid one",
        )
    })?;
    if let Some(path) = environment_variables::variable("UNSTUCK_RECOVERY_FILE") {
        write_atomically(Path::new(&path), &bytes)?;
        writeln!(
            out,
            "proposed: {BOLD}{}{BOLD:#}; unstuck evaluates it when you exit",
            sanitize(&proposal.recovery.command)
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let here = std::env::current_dir().context("cannot determine the current directory")?;
    let root = ProjectRoot::open(&project_of(&here))?;
    let rules = effective_repair_settings::command_rules(config, root.path())?;
    let file = ProposalFile::from_bytes(bytes);
    let (command, folder) = (&proposal.recovery.command, &proposal.recovery.working_dir);
    let standing =
        effective_repair_settings::policy_context(config, &root, command, folder.as_deref());
    let weighed = evaluate_proposal(&file.bytes, &root, &rules, &standing);
    let judged = weighed.command_evaluation();
    writeln!(
        out,
        "{BOLD}{}{BOLD:#}: {}",
        judged.verdict.name(),
        judged.reason
    )?;
    writeln!(
        out,
        "nothing was run; `unstuck repair -- CHECK` runs a check and applies allowed fixes"
    )?;
    Ok(effective_repair_settings::verdict_exit_code(
        &judged.verdict,
    ))
}

fn proposal_document(args: &ProposeArgs) -> Result<Vec<u8>> {
    match (&args.file, &args.command) {
        (Some(path), _) if path.as_os_str() == "-" => {
            let mut bytes = Vec::new();
            let most = unstuck_core::command_policy::MAX_BYTES as u64 + 1;
            let read = std::io::stdin().take(most).read_to_end(&mut bytes);
            read.context("cannot read standard input")?;
            Ok(bytes)
        }
        (Some(path), _) => match ProposalFile::read(path) {
            Ok(Some(file)) => Ok(file.bytes),
            Ok(None) => Err(error_with_hint(
                format!("{} not found", path.display()),
                "pass a proposal file, or --command, --root-cause and --evidence",
            )),
            Err(error) => Err(refusal(
                format!("{}: {error}", path.display()),
                "`unstuck propose --help` shows a valid one",
            )),
        },
        (None, Some(command)) => Ok(serde_json::to_vec_pretty(&proposal_from_flags(
            args, command,
        ))?),
        (None, None) => Err(error_with_hint(
            "nothing to propose",
            "see `unstuck propose --help`",
        )),
    }
}

fn proposal_from_flags(args: &ProposeArgs, command: &str) -> Value {
    let category = match args.category {
        Category::Dependency => "dependency",
        Category::Config => "config",
        Category::Environment => "environment",
        Category::Permissions => "permissions",
        Category::Network => "network",
    };
    let confidence = match args.confidence {
        ConfidenceArg::High => "high",
        ConfidenceArg::Medium => "medium",
        ConfidenceArg::Low => "low",
    };
    let mut recovery = json!({
        "command": command,
        "timeout_seconds": args.timeout,
        "expected_outcome": args.expected,
        "confidence": confidence,
    });
    if let Some(folder) = &args.working_dir {
        recovery["working_dir"] = json!(folder);
    }
    let mut document = json!({
        "version": 1,
        "timestamp": clock::now().at,
        "category": category,
        "severity": "blocking",
        "diagnosis": {
            "error_pattern": args.pattern,
            "root_cause": args.root_cause,
            "evidence": args.evidence,
        },
        "recovery": recovery,
    });
    if let Some(command) = &args.fallback {
        document["fallback"] = json!({ "command": command, "confidence": "low" });
    }
    document
}

/// Writes the proposal file atomically.
#[expect(
    clippy::disallowed_methods,
    reason = "the agent itself calls this command, in its own sandbox"
)]
fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let beside = path.with_extension("json.new");
    let done = fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    done.with_context(|| format!("cannot write {}", path.display()))
}
