//! unstuck keeps AI agents working: it knows every failure, and what to do about it.

mod address;
mod answering;
mod call_words;
mod choosing;
mod clock;
mod columns;
mod commands;
mod completion;
mod config;
mod environment;
mod gateway;
mod history;
mod inside;
mod installed;
mod messages;
mod moving;
mod named;
mod notifying;
mod output;
mod pipeline_plan;
mod place;
mod project_changes;
mod repair_words;
mod repairs;
mod report;
mod retrying;
mod run_words;
mod runtime;
mod servers;
mod session;
mod show_text;
mod started;
mod state_text;
mod stopping;
mod store;
mod supervise;
mod terminal_text;
mod trusting;
mod unrecorded;
mod web;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use unstuck_core::question::Answer;
use unstuck_store::Location;

use crate::commands::answer::AnswerArgs;
use crate::commands::config as config_command;
use crate::commands::store as store_command;
use crate::commands::{
    agents, answer, classify, cost, demo, diff, escalate, exec, explain, faults, guard, inbox,
    kinds, logs, plan, policy, preview, propose, repair, resume, retry, run as run_command, runs,
    serve, show, status, stop, token, trust, webhook,
};
use crate::config::{Config, Sources};
use crate::output::{Color, Output};
use crate::session::Session;

/// Keeps AI agents working: runs them, sees every failure, and does what helps
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

    /// Read this configuration too, after the user's and the project's
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "UNSTUCK_CONFIG",
        hide_env_values = true
    )]
    config: Option<PathBuf>,

    /// Keep the history in this file [default: ~/.local/state/unstuck/unstuck.db]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "UNSTUCK_STORE",
        hide_env_values = true
    )]
    store: Option<String>,

    /// When to use colours
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
    ApproveRecovery(answer::LoopArgs),
    #[command(hide = true)]
    RejectRecovery(answer::LoopArgs),
    #[command(hide = true)]
    ResolveRecovery(answer::LoopArgs),
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
    // The small processes that unstuck starts of itself read no configuration and know no options.
    if let Some(code) = unstuck_run::reaper::called(&arguments) {
        return ExitCode::from(code);
    }
    if let Some(code) = unstuck_repair::sandbox::called(&arguments) {
        return ExitCode::from(code);
    }
    if let Some(code) = demo::agent_called(&arguments) {
        return ExitCode::from(code);
    }
    clap_complete::CompleteEnv::with_factory(Cli::command).complete();
    let arguments = started::detached(arguments);
    let wants_json = wants_json(&arguments);
    let is_quiet = is_quiet(&arguments);
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return refused_usage(&error),
    };
    let mut out = Output::new(cli.color);
    let done = run(&cli, is_quiet, &mut out).and_then(|code| out.finish().map(|()| code));
    match done {
        Ok(code) => code,
        // Whoever read our output has seen enough.
        Err(error) if report::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // A listing that tells what is wrong is the answer; a second document behind it could not be read.
            if wants_json && !out.has_written() {
                report::show_json(&error);
            }
            report::show(&error, cli.color)
        }
    }
}

/// What is wrong with the arguments, or the help that was asked for; what is echoed of very long words is cut.
fn refused_usage(error: &clap::Error) -> ExitCode {
    let text = error.render();
    let longest = text.to_string().split_whitespace().map(str::len).max();
    let is_short = longest.is_none_or(|longest| longest < 1000);
    if is_short && !error.use_stderr() {
        error.exit();
    }
    let mut to = messages::Messages::auto();
    // Nothing can be done if not even this can be written.
    let _ = match is_short {
        true => write!(to, "{}", text.ansi()),
        false => writeln!(to, "{}", report::shortened(&text.to_string())),
    };
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Whether results are asked for as JSON on standard output; what follows `--` is another program's.
fn wants_json(arguments: &[OsString]) -> bool {
    let own = arguments.iter().take_while(|word| *word != "--");
    own.into_iter().any(|word| word == "--json")
}

/// Returns whether unstuck's own messages are suppressed; what follows `--` is another program's.
fn is_quiet(arguments: &[OsString]) -> bool {
    let own = arguments.iter().take_while(|word| *word != "--");
    own.into_iter()
        .any(|word| word == "--quiet" || word == "-q")
}

fn run(cli: &Cli, is_quiet: bool, out: &mut Output) -> anyhow::Result<ExitCode> {
    inside::refuse_for_agents(&cli.command)?;
    // What is shown must not depend on what the user has configured.
    if let Command::Demo(args) = &cli.command {
        return play(cli, args, out);
    }
    // A server for tests must not depend on what the user has configured either.
    if let Command::Faults(args) = &cli.command {
        return faults::run(args, out).map(|()| ExitCode::SUCCESS);
    }
    // What is wrong with a configuration is the business of this command.
    if let Command::Config(args) = &cli.command {
        return configure(cli, args, out);
    }
    if let Command::Guard(args) = &cli.command {
        return guard::run(args, cli.config.as_deref(), out);
    }
    let store = location(cli).ok();
    let sources = Sources {
        named: cli.config.as_deref(),
        store: store.as_ref(),
        ..Sources::default()
    };
    let config = config::load(sources)?;
    if !is_quiet {
        report::warn_of_old_names(&config, cli.color);
    }
    let done = match &cli.command {
        Command::Classify(args) => classify::run(args, &config, out),
        Command::Plan(args) => plan::run(args, &config, out),
        Command::Agents(args) => agents::run(args, &config, out),
        Command::Kinds(args) => kinds::run(args, &config, out),
        Command::Policy(args) => policy::run(args, &config, out),
        Command::Trust(args) => trust::run(args, &config, out),
        Command::Token(args) => token::run(args, store.as_ref(), out),
        other => return with_store(cli, other, &config, out),
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// What is wrong with a configuration, or counts.
fn configure(
    cli: &Cli,
    args: &config_command::ConfigArgs,
    out: &mut Output,
) -> anyhow::Result<ExitCode> {
    let store = location(cli).ok();
    let sources = Sources {
        named: cli.config.as_deref(),
        store: store.as_ref(),
        ..Sources::default()
    };
    config_command::run(args, sources, out).map(|()| ExitCode::SUCCESS)
}

/// The commands that run something or look at what ran.
fn with_store(
    cli: &Cli,
    command: &Command,
    config: &Config,
    out: &mut Output,
) -> anyhow::Result<ExitCode> {
    let store = location(cli)?;
    let session = Session {
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
            let waiting = |id: &str| answer::waiting(id, &session);
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
        other => match answered(other) {
            Some((said, args)) => return answer::answer(said, &args, config, &session, out),
            None => look(other, &session, out),
        },
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// The answers to what runs ask for.
fn answered(command: &Command) -> Option<(Answer, AnswerArgs)> {
    Some(match command {
        Command::Reject(args) => (Answer::Reject, args.clone()),
        Command::Resolve(args) => (Answer::Resolve, args.clone()),
        Command::Skip(args) => (Answer::Skip, args.clone()),
        Command::ApproveRecovery(args) => (Answer::Approve, args.into()),
        Command::RejectRecovery(args) => (Answer::Reject, args.into()),
        Command::ResolveRecovery(args) => (Answer::Resolve, args.into()),
        _ => return None,
    })
}

/// The commands that look at what ran.
fn look(command: &Command, session: &Session<'_>, out: &mut Output) -> anyhow::Result<()> {
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

/// The demo, whose history is its own.
fn play(cli: &Cli, args: &demo::DemoArgs, out: &mut Output) -> anyhow::Result<ExitCode> {
    // Whoever names a store for all commands has their own history in it.
    let named = cli.store.clone().filter(|named| !named.is_empty());
    let store = match named.filter(|named| environment::named_store().as_ref() != Some(named)) {
        Some(named) => Location::parse(&named).map_err(store::explained)?,
        None => environment::demo_store()?,
    };
    let session = Session {
        store: &store,
        config: cli.config.as_deref(),
        color: cli.color,
    };
    demo::run(args, &session, out)
}

/// Where the history is kept.
fn location(cli: &Cli) -> anyhow::Result<Location> {
    match cli.store.as_deref().filter(|named| !named.is_empty()) {
        Some(named) => Location::parse(named).map_err(store::explained),
        None => environment::store_location(),
    }
}
