//! Command line of unstuck: parses the arguments and runs the subcommands.

mod agent_installation;
mod agent_restrictions;
mod call_rendering;
mod child_process;
mod choice_prompt;
mod clock;
mod command_context;
mod commands;
mod completion;
mod config;
mod environment;
mod error_report;
mod escalation_answers;
mod event_spill;
mod gateway;
mod listen_address;
mod model_switch;
mod notifications;
mod output;
mod paths;
mod pipeline_from_config;
mod project_changes;
mod project_trust;
mod redacted_stderr;
mod repair_rendering;
mod repair_terms;
mod run_history;
mod run_ref;
mod run_rendering;
mod run_session;
mod run_stop;
mod runtime;
mod server_registry;
mod session_retry;
mod session_state_text;
mod store;
mod terminal_filter;
mod text_columns;
mod text_display;
mod web;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use unstuck_core::escalation::EscalationAnswer;
use unstuck_store::StoreLocation;

use crate::command_context::CommandContext;
use crate::commands::answer::AnswerArgs;
use crate::commands::config as config_command;
use crate::commands::store as store_command;
use crate::commands::{
    agents, answer, classify, cost, demo, diff, escalate, exec, explain, faults, guard, inbox,
    kinds, logs, plan, policy, preview, propose, repair, resume, retry, run as run_command, runs,
    serve, show, status, stop, token, trust, webhook,
};
use crate::config::{Config, ConfigSources};
use crate::output::{Color, Output};

/// Keeps AI agents running: detects failures and recovers automatically
#[derive(Debug, Parser)]
#[command(
    name = "unstuck",
    version,
    arg_required_else_help = true,
    propagate_version = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// Read this configuration file in addition to the user's and the project's
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "UNSTUCK_CONFIG",
        hide_env_values = true
    )]
    config: Option<PathBuf>,

    /// Use this database file for the run history [default: ~/.local/state/unstuck/unstuck.db]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "UNSTUCK_STORE",
        hide_env_values = true
    )]
    store: Option<String>,

    /// When to use colors
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    color: Color,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::DemoArgs),
    Exec(Box<exec::ExecArgs>),
    Run(Box<run_command::RunArgs>),
    Resume(resume::ResumeArgs),
    Stop(stop::StopArgs),
    Status(status::StatusArgs),
    Repair(repair::RepairArgs),
    Serve(serve::ServeArgs),
    Inbox(inbox::InboxArgs),
    Approve(answer::ApproveArgs),
    /// Reject the proposed action and continue without it
    Reject(answer::AnswerArgs),
    /// Mark as fixed manually and retry
    Resolve(answer::AnswerArgs),
    Retry(retry::RetryArgs),
    Escalate(escalate::EscalateArgs),
    /// Skip this step and continue
    Skip(answer::AnswerArgs),
    Abort(answer::AbortArgs),
    #[command(hide = true)]
    ApproveRecovery(answer::RecoveryAnswerArgs),
    #[command(hide = true)]
    RejectRecovery(answer::RecoveryAnswerArgs),
    #[command(hide = true)]
    ResolveRecovery(answer::RecoveryAnswerArgs),
    Propose(propose::ProposeArgs),
    Runs(runs::RunsArgs),
    Show(show::ShowArgs),
    Logs(logs::LogsArgs),
    Cost(cost::CostArgs),
    Diff(diff::DiffArgs),
    Explain(explain::ExplainArgs),
    Store(store_command::StoreArgs),
    Agents(agents::AgentsArgs),
    Classify(Box<classify::ClassifyArgs>),
    Plan(Box<plan::PlanArgs>),
    Kinds(kinds::KindsArgs),
    Policy(policy::PolicyArgs),
    Preview(preview::PreviewArgs),
    Guard(guard::GuardArgs),
    Config(config_command::ConfigArgs),
    Trust(trust::TrustArgs),
    Token(token::TokenArgs),
    Webhook(webhook::WebhookArgs),
    Faults(faults::FaultsArgs),
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    // Helper processes that unstuck starts itself read no configuration and take no options.
    if let Some(code) = unstuck_run::reaper::run_if_called(&arguments) {
        return ExitCode::from(code);
    }
    if let Some(code) = unstuck_repair::sandbox::run_if_called(&arguments) {
        return ExitCode::from(code);
    }
    if let Some(code) = demo::agent_called(&arguments) {
        return ExitCode::from(code);
    }
    clap_complete::CompleteEnv::with_factory(Cli::command).complete();
    let arguments = child_process::detach_if_asked(arguments);
    let wants_json = wants_json(&arguments);
    let is_quiet = is_quiet(&arguments);
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return report_usage_error(&error),
    };
    let mut out = Output::new(cli.color);
    let done = run(&cli, is_quiet, &mut out).and_then(|code| out.finish().map(|()| code));
    match done {
        Ok(code) => code,
        // The reader closed our output (broken pipe): not an error.
        Err(error) if error_report::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // A list of errors is already the JSON result; a second document after it would break parsers.
            if wants_json && !out.has_written() {
                error_report::print_error_json(&error);
            }
            error_report::print_error(&error, cli.color)
        }
    }
}

/// Reports a usage error or prints the requested help; very long arguments are truncated when echoed.
fn report_usage_error(error: &clap::Error) -> ExitCode {
    let text = error.render();
    let longest = text.to_string().split_whitespace().map(str::len).max();
    let is_short = longest.is_none_or(|longest| longest < 1000);
    if is_short && !error.use_stderr() {
        error.exit();
    }
    let mut to = redacted_stderr::RedactedStderr::auto();
    // If writing to stderr fails too, nothing is left to try.
    let _ = if is_short {
        write!(to, "{}", text.ansi())
    } else {
        writeln!(to, "{}", error_report::shorten_words(&text.to_string()))
    };
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// True if `--json` was given before `--`; arguments after `--` belong to the supervised command.
fn wants_json(arguments: &[OsString]) -> bool {
    let own = arguments.iter().take_while(|word| *word != "--");
    own.into_iter().any(|word| word == "--json")
}

/// True if unstuck's own messages are suppressed; arguments after `--` belong to the supervised command.
fn is_quiet(arguments: &[OsString]) -> bool {
    let own = arguments.iter().take_while(|word| *word != "--");
    own.into_iter()
        .any(|word| word == "--quiet" || word == "-q")
}

fn run(cli: &Cli, is_quiet: bool, out: &mut Output) -> anyhow::Result<ExitCode> {
    agent_restrictions::refuse_for_agents(&cli.command)?;
    // The output must not depend on the user's configuration.
    if let Command::Demo(args) = &cli.command {
        return run_demo(cli, args, out);
    }
    // A test server must not depend on the user's configuration either.
    if let Command::Faults(args) = &cli.command {
        return faults::run(args, out).map(|()| ExitCode::SUCCESS);
    }
    // This command reports configuration errors itself.
    if let Command::Config(args) = &cli.command {
        return run_config(cli, args, out);
    }
    if let Command::Guard(args) = &cli.command {
        return guard::run(args, cli.config.as_deref(), out);
    }
    let store = store_location(cli).ok();
    let sources = ConfigSources {
        named: cli.config.as_deref(),
        store: store.as_ref(),
        ..ConfigSources::default()
    };
    let config = config::load(sources)?;
    if !is_quiet {
        error_report::warn_of_old_names(&config, cli.color);
    }
    let done = match &cli.command {
        Command::Classify(args) => classify::run(args, &config, out),
        Command::Plan(args) => plan::run(args, &config, out),
        Command::Agents(args) => agents::run(args, &config, out),
        Command::Kinds(args) => kinds::run(args, &config, out),
        Command::Policy(args) => policy::run(args, &config, out),
        Command::Trust(args) => trust::run(args, &config, out),
        Command::Token(args) => token::run(args, store.as_ref(), out),
        other => return run_with_store(cli, other, &config, out),
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// Runs the commands that show or check configuration.
fn run_config(
    cli: &Cli,
    args: &config_command::ConfigArgs,
    out: &mut Output,
) -> anyhow::Result<ExitCode> {
    let store = store_location(cli).ok();
    let sources = ConfigSources {
        named: cli.config.as_deref(),
        store: store.as_ref(),
        ..ConfigSources::default()
    };
    config_command::run(args, sources, out).map(|()| ExitCode::SUCCESS)
}

/// Runs the commands that need the store.
fn run_with_store(
    cli: &Cli,
    command: &Command,
    config: &Config,
    out: &mut Output,
) -> anyhow::Result<ExitCode> {
    let store = store_location(cli)?;
    let session = CommandContext {
        store: &store,
        config: cli.config.as_deref(),
        color: cli.color,
    };
    let done = match command {
        Command::Exec(args) => return exec::run(args, config, &session, out),
        Command::Run(args) => return run_command::run(args, config, &session, out),
        Command::Resume(args) => return resume::run(args, config, &session, out),
        Command::Stop(args) => return stop::run(args, &session, out),
        Command::Status(args) => return status::run(args, &session, out),
        Command::Preview(args) => {
            let waiting = |id: &str| answer::proposed_command(id, &session);
            return preview::run(args, config, &session, &waiting, out);
        }
        Command::Serve(args) => return serve::run(args, config, &session, out),
        Command::Repair(args) => return repair::run(args, config, &session, out),
        Command::Inbox(args) => return inbox::run(args, config, &session, out),
        Command::Approve(args) => return answer::approve(args, config, &session, out),
        Command::Abort(args) => return answer::abort(args, config, &session, out),
        Command::Retry(args) => return retry::run(args, config, &session, out),
        Command::Escalate(args) => return escalate::run(args, config, &session, out),
        Command::Propose(args) => return propose::run(args, config, out),
        Command::Webhook(args) => return webhook::run(args, config, &session, out),
        other => match answer_args(other) {
            Some((said, args)) => return answer::answer(said, &args, config, &session, out),
            None => run_read_only(other, &session, out),
        },
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// Returns the answer and its arguments if the command answers an escalation.
fn answer_args(command: &Command) -> Option<(EscalationAnswer, AnswerArgs)> {
    Some(match command {
        Command::Reject(args) => (EscalationAnswer::Reject, args.clone()),
        Command::Resolve(args) => (EscalationAnswer::Resolve, args.clone()),
        Command::Skip(args) => (EscalationAnswer::Skip, args.clone()),
        Command::ApproveRecovery(args) => (EscalationAnswer::Approve, args.into()),
        Command::RejectRecovery(args) => (EscalationAnswer::Reject, args.into()),
        Command::ResolveRecovery(args) => (EscalationAnswer::Resolve, args.into()),
        _ => return None,
    })
}

/// Runs the commands that only read the store.
fn run_read_only(
    command: &Command,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> anyhow::Result<()> {
    match command {
        Command::Runs(args) => runs::run(args, session, out),
        Command::Show(args) => show::run(args, session, out),
        Command::Logs(args) => logs::run(args, session, out),
        Command::Cost(args) => cost::run(args, session, out),
        Command::Diff(args) => diff::run(args, session, out),
        Command::Explain(args) => explain::run(args, session, out),
        Command::Store(args) => store_command::run(args, session.store, out),
        _ => Ok(()),
    }
}

/// Runs the demo, which has a run history of its own.
fn run_demo(cli: &Cli, args: &demo::DemoArgs, out: &mut Output) -> anyhow::Result<ExitCode> {
    // An explicit --store is used for the demo as well.
    let named = cli.store.clone().filter(|named| !named.is_empty());
    let store = match named.filter(|named| environment::named_store().as_ref() != Some(named)) {
        Some(named) => StoreLocation::parse(&named).map_err(store::with_hint)?,
        None => environment::demo_store()?,
    };
    let session = CommandContext {
        store: &store,
        config: cli.config.as_deref(),
        color: cli.color,
    };
    demo::run(args, &session, out)
}

/// Returns the location of the store.
fn store_location(cli: &Cli) -> anyhow::Result<StoreLocation> {
    match cli.store.as_deref().filter(|named| !named.is_empty()) {
        Some(named) => StoreLocation::parse(named).map_err(store::with_hint),
        None => environment::store_location(),
    }
}
