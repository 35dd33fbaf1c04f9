//! `unstuck exec`: runs a command and recovers from its failures.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use unstuck_config::section::OnFailedAttempt;
use unstuck_core::agent::ParsedAgentCommandLine;
use unstuck_core::decision::{DEFAULT_TEMPLATE, default_template};
use unstuck_core::{Category, FailureKind, RetryPolicy, duration};
use unstuck_run::answer_expectations::{
    AnswerExpectations, ExpectedPattern, ExpectedSchema, JsonExpectation,
};
use unstuck_run::nested_run_detection::is_retried_by_outer;
use unstuck_run::runner::{
    RequestedRepairMode, RunAttemptOptions, RunRequest, escape, resolve_target,
};

use super::run_result::{JsonResultDestination, report_result};
use crate::command_context::CommandContext;
use crate::config::Config;
use crate::effective_repair_settings::{self, RepairModeArg};
use crate::environment_variables;
use crate::error_report::error_with_hint;
use crate::gateway::PrivateGatewayMode;
use crate::input_file::read_input;
use crate::output::Output;
use crate::pipeline_from_config::nonzero_limit;
use crate::project_lookup::project_of;
use crate::run_supervision::{self, Verbosity};

/// Run a command and recover from failures automatically
///
/// Put `unstuck exec --` before the command line of an agent. Its output is passed through unchanged; unstuck reports
/// its own actions on standard error, one line each.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck exec -- claude -p \"fix the failing tests\"
  unstuck exec --timeout 30m --idle-timeout 5m -- codex exec \"write the docs\"
  unstuck exec --expect-section '# Review' --check 'npm test' -- claude -p \"review the change\"
  unstuck exec -o review.json --expect-json -- claude -p \"review it, as JSON\" >log
  unstuck exec --json=end.json -- make test       (result as JSON, for scripts)
  unstuck exec --keep-trying 8h -- claude -p \"migrate the tests\"
  unstuck exec --retries 5 -- sh -c 'curl -fsS https://example.com/health'
  unstuck exec --repair auto -- npm test          (runs allowed fixes, then retries)
  unstuck exec --policy off -- make deploy        (only supervises and records)

Exit codes:
  0    success, including after recovery
  2    unstuck error (usage, configuration, database)
  3    needs your input (takes precedence); `unstuck resume` continues
  124  timed out (only with --policy off, otherwise 3)
  127  command not found (only with --policy off, otherwise 3)
  130  interrupted; 128+n ended by signal n
  otherwise, the command's own exit code")]
pub(crate) struct ExecArgs {
    /// Agent type, if unstuck cannot infer it from the command: claude, codex, gemini, …
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Allocate a pseudo-terminal
    #[arg(long)]
    tty: bool,

    /// Keep waiting for human input instead of exiting
    #[arg(long)]
    wait: bool,

    /// Do not run a gateway between the agent and its API
    #[arg(long)]
    no_gateway: bool,

    /// Repair the environment if it caused the failure: auto runs the fixes that your `[recovery]` allows, ask asks
    /// before each fix, off disables repairs [default: auto if the configuration has `[recovery]`, otherwise off]
    #[arg(long, value_name = "WHEN", value_enum)]
    repair: Option<RepairModeArg>,

    /// Suppress unstuck's own output
    #[arg(long, short)]
    quiet: bool,

    /// Print a JSON summary of the run as the last line, or write it to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    json: Option<String>,

    /// Write the accepted output to FILE, atomically and only on success
    #[arg(long, short, value_name = "FILE")]
    output: Option<String>,

    /// Command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,

    // Last, because help headings apply to all following options.
    #[command(flatten)]
    limits: RetryLimitArgs,

    #[command(flatten)]
    expected: ExpectationArgs,
}

/// Retry limits of a command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
struct RetryLimitArgs {
    /// Retry policy: resilient, standard, patient, critical, thrifty, pipeline, off, or a custom one
    #[arg(
        long,
        value_name = "NAME",
        env = "UNSTUCK_POLICY",
        hide_env_values = true
    )]
    policy: Option<String>,

    /// Maximum retries for each retryable kind of failure
    #[arg(long, value_name = "N")]
    retries: Option<u32>,

    /// Retry transient failures without progress for this long, such as 8h [default: 30m]
    #[arg(long, value_name = "TIME", value_parser = duration::parse, conflicts_with = "retries")]
    keep_trying: Option<Duration>,

    /// Timeout of one attempt, such as 30m; 0s disables it
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,

    /// Maximum time without output before an attempt counts as hung; 0s disables it
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    idle_timeout: Option<Duration>,

    /// Time that the command has to exit before unstuck kills it
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "5s")]
    grace: Duration,

    /// Longest wait for a stated reset; for a longer wait, unstuck asks for your input
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    max_wait: Option<Duration>,
}

/// Success criteria of a command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Success criteria")]
struct ExpectationArgs {
    /// Require this section in the output (repeatable)
    #[arg(long, value_name = "LINE")]
    expect_section: Vec<String>,

    /// Require JSON output, valid against the JSON Schema in FILE if given
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    expect_json: Option<String>,

    /// Require a parsable unified diff in the output
    #[arg(long)]
    expect_diff: bool,

    /// Require output that matches this regular expression (repeatable)
    #[arg(long, value_name = "REGEX")]
    expect_match: Vec<ExpectedPattern>,

    /// Require that this shell command succeeds afterwards
    #[arg(long, value_name = "CMD")]
    check: Option<String>,

    /// Treat empty output as a failure (default for agents)
    #[arg(long, overrides_with = "allow_empty")]
    forbid_empty: bool,

    /// Accept empty output, even from agents
    #[arg(long)]
    allow_empty: bool,
}

pub(crate) fn run(
    args: &ExecArgs,
    config: &Config,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    let request = request(args, config)?;
    let json = JsonResultDestination::from_flag(args.json.as_deref());
    let json = match json {
        JsonResultDestination::File(path) => {
            check_writable("--json", &path)?;
            let resolved = resolve_target(&path);
            let resolved = resolved.with_context(|| format!("--json {}", path.display()))?;
            JsonResultDestination::File(resolved)
        }
        other => other,
    };
    let told = if args.quiet {
        Verbosity::Quiet
    } else {
        Verbosity::All
    };
    let repairs = effective_repair_settings::repair_setup(
        config,
        &request.project,
        request.options.repair,
        !args.quiet,
    )?;
    let gateway = PrivateGatewayMode::from_flag(args.no_gateway);
    let supervised =
        run_supervision::run_command(session, config, request, told, repairs, gateway)?;
    report_result(&supervised, &json, out)
}

fn request(args: &ExecArgs, config: &Config) -> Result<RunRequest> {
    if args.command.first().is_none_or(|word| word.is_empty()) {
        return Err(error_with_hint(
            "the command is empty",
            "usage: unstuck exec -- COMMAND; in a script, check for an empty variable",
        ));
    }
    let agents = config.recognized_agents();
    if let Some(name) = &args.agent
        && agents.get(name).is_none()
    {
        if config.agents().get(name).is_some() {
            return Err(error_with_hint(
                format!("agent `{name}` is defined by the project and available only to its roles"),
                "move [agents] to ~/.config/unstuck/config.toml, or omit --agent",
            ));
        }
        let known: Vec<_> = agents.iter().map(|agent| agent.id()).collect();
        return Err(error_with_hint(
            format!("unknown agent `{name}`"),
            format!(
                "available agents: {}; omit --agent for other commands",
                known.join(", ")
            ),
        ));
    }
    let cwd = std::env::current_dir().context("cannot determine the current directory")?;
    let (mut policy, mut origins) = effective_policy(&args.limits, config)?;
    let nested = args.limits.leaves_retries_to_outer_run();
    if nested {
        policy.enabled = false;
        origins.insert("enabled".into(), "an enclosing unstuck run".into());
    }
    let (command, escaped) = escape_command(&args.command);
    let agent = match &args.agent {
        Some(name) => agents.get(name),
        None => agents.recognize(&command),
    };
    let headless =
        agent.is_some_and(|agent| ParsedAgentCommandLine::parse(agent, &command).is_headless());
    let interactive = agent.is_some() && !headless && is_on_terminal();
    let tty = args.tty || interactive;
    Ok(RunRequest {
        command,
        project: project_of(&cwd),
        cwd,
        agent: args.agent.clone(),
        policy,
        origins,
        timeout: nonzero_limit(args.limits.timeout),
        idle_timeout: nonzero_limit(args.limits.idle_timeout),
        options: RunAttemptOptions {
            expect: args.expected.expectations(headless && !tty)?,
            check: args.expected.check.clone(),
            tty,
            grace_ms: duration::to_millis(args.limits.grace),
            wait: args.wait,
            max_attempts: max_attempts(args.limits.retries),
            repair: RepairModeArg::resolve(args.repair),
            no_gateway: args.no_gateway,
            output: args.output.as_deref().map(output_path).transpose()?,
            snapshots: agent.is_some() && config.run().snapshots,
            rollback: agent.is_some()
                && config.run().on_failed_attempt == OnFailedAttempt::Rollback,
            interactive,
            nested,
            escaped,
            parks_when_stalled: agent.is_some() && !environment_variables::is_ci(),
            project_settings: None,
        },
    })
}

/// Returns the command line as text, with the arguments that are not UTF-8 and had to be escaped.
fn escape_command(command: &[OsString]) -> (Vec<String>, Vec<String>) {
    let mut escaped = Vec::new();
    let words = command.iter().map(|word| match word.to_str() {
        Some(word) => word.to_owned(),
        None => {
            let text = escape(word);
            escaped.push(text.clone());
            text
        }
    });
    (words.collect(), escaped)
}

/// True if run from a terminal: interactive agents need one.
fn is_on_terminal() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

impl RetryLimitArgs {
    /// True if an outer unstuck already retries this command and no retries were requested here.
    fn leaves_retries_to_outer_run(&self) -> bool {
        let is_policy_inherited = self.policy == environment_variables::variable("UNSTUCK_POLICY");
        self.retries.is_none() && is_policy_inherited && is_retried_by_outer()
    }
}

/// Returns the `--output` file as an absolute path.
fn output_path(file: &str) -> Result<String> {
    let path = Path::new(file);
    check_writable("--output", path)?;
    let path = resolve_target(path).with_context(|| format!("--output {file}"))?;
    path.into_os_string().into_string().map_err(|path| {
        error_with_hint(
            format!("--output {}: the path is not valid UTF-8", path.display()),
            "choose a path in UTF-8",
        )
    })
}

/// Checks before the run that a file can be written at its end.
fn check_writable(flag: &str, path: &Path) -> Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if path.is_dir() || folder.is_some_and(|folder| !folder.is_dir()) {
        return Err(error_with_hint(
            format!(
                "{flag} {}: the directory does not exist, or the path is a directory",
                path.display()
            ),
            "choose a file in an existing directory",
        ));
    }
    Ok(())
}

/// Builds the request for a check that is executed unchanged and repeated only after a repair.
pub(crate) fn check_request(
    command: Vec<String>,
    config: &Config,
    repair: RequestedRepairMode,
) -> Result<RunRequest> {
    let cwd = std::env::current_dir().context("cannot determine the current directory")?;
    let far = RetryLimitArgs {
        policy: None,
        retries: Some(0),
        keep_trying: None,
        timeout: None,
        idle_timeout: None,
        grace: RunAttemptOptions::default().grace(),
        max_wait: None,
    };
    let (policy, origins) = effective_policy(&far, config)?;
    Ok(RunRequest {
        command,
        project: project_of(&cwd),
        cwd,
        agent: None,
        policy,
        origins,
        timeout: None,
        idle_timeout: None,
        options: RunAttemptOptions {
            repair,
            ..RunAttemptOptions::default()
        },
    })
}

/// Returns the maximum number of executions: the default, or enough for the requested retries.
fn max_attempts(retries: Option<u32>) -> u32 {
    let usual = RunAttemptOptions::default().max_attempts;
    // Retries run unchanged first, then with changes.
    retries.map_or(usual, |retries| {
        retries.saturating_mul(2).saturating_add(1).max(usual)
    })
}

impl ExpectationArgs {
    fn expectations(&self, is_agent: bool) -> Result<AnswerExpectations> {
        let json = match &self.expect_json {
            None => None,
            Some(path) if path.is_empty() => Some(JsonExpectation::Any),
            Some(path) => Some(JsonExpectation::Schema(read_schema(Path::new(path))?)),
        };
        Ok(AnswerExpectations {
            sections: self.expect_section.clone(),
            json,
            diff: self.expect_diff,
            matches: self.expect_match.clone(),
            not_empty: self.forbid_empty || (is_agent && !self.allow_empty),
        })
    }
}

fn read_schema(path: &Path) -> Result<ExpectedSchema> {
    let text = read_input(path)?;
    serde_json::from_str(&text).map_err(|error| {
        error_with_hint(
            format!("{}: {error}", path.display()),
            "--expect-json=FILE expects a JSON Schema; --expect-json alone accepts any JSON",
        )
    })
}

/// Returns the gateway policy for unsupervised agent calls.
pub(crate) fn gateway_policy(
    name: Option<&str>,
    retries: Option<u32>,
    config: &Config,
) -> Result<RetryPolicy> {
    let far = RetryLimitArgs {
        policy: name.map(str::to_owned),
        retries,
        keep_trying: None,
        timeout: None,
        idle_timeout: None,
        grace: RunAttemptOptions::default().grace(),
        max_wait: None,
    };
    effective_policy(&far, config).map(|(policy, _)| policy)
}

/// Returns the effective policy and the source of its values.
fn effective_policy(
    far: &RetryLimitArgs,
    config: &Config,
) -> Result<(RetryPolicy, BTreeMap<String, String>)> {
    let (mut policy, from) = match &far.policy {
        Some(name) => (find_policy(name, config)?, format!("--policy {name}")),
        None => match config.policy() {
            Some(policy) => (policy.clone(), config.policy_origin()),
            None => (default_template(), format!("template `{DEFAULT_TEMPLATE}`")),
        },
    };
    let mut origins = BTreeMap::from([("policy".to_owned(), from)]);
    if let Some(wait) = far.max_wait {
        policy.max_wait = Some(wait);
        origins.insert("maxWait".into(), "--max-wait".into());
    }
    if let Some(retries) = far.retries.filter(|_| policy.enabled) {
        policy.max_retries = retries;
        policy.give_up_after = None;
        origins.insert("maxRetries".into(), "--retries".into());
        for kind in retryable_kinds() {
            policy.kinds.entry(kind).or_default().max_retries = Some(retries);
            origins.insert(format!("kinds.{kind}"), "--retries".into());
        }
    }
    if let Some(time) = far.keep_trying.filter(|_| policy.enabled) {
        policy.extend_give_up_after(time);
        origins.insert("giveUpAfter".into(), "--keep-trying".into());
    }
    Ok((policy, origins))
}

fn find_policy(name: &str, config: &Config) -> Result<RetryPolicy> {
    let found = config.policies().find(|policy| policy.id == name);
    found.cloned().ok_or_else(|| {
        let known: Vec<_> = config.policies().map(|policy| policy.id.as_str()).collect();
        error_with_hint(
            format!("unknown policy `{name}`"),
            format!("available policies: {}", known.join(", ")),
        )
    })
}

/// Returns the kinds that a retry can help; an explicit number of retries applies to these.
fn retryable_kinds() -> impl Iterator<Item = FailureKind> {
    let helped = |kind: &FailureKind| {
        matches!(
            kind.category(),
            Category::Transient | Category::Systematic | Category::Unknown
        )
    };
    FailureKind::ALL.iter().copied().filter(helped)
}
