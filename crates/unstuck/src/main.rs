//! Command line of unstuck: parses the arguments and runs the subcommands.

mod agent_installation;
mod async_runtime;
mod call_rendering;
mod choice_prompt;
mod clock;
mod command_context;
mod command_groups;
mod commands;
mod completion_candidates;
mod config;
mod effective_repair_settings;
mod environment_variables;
mod error_report;
mod escalation_answers;
mod event_spill;
mod gateway;
mod human_only_commands;
mod input_file;
mod listen_address;
mod model_switch;
mod notifications;
mod output;
mod pipeline_from_config;
mod project_lookup;
mod project_setting_changes;
mod project_trust;
mod redacted_stderr;
mod repair_rendering;
mod run_history;
mod run_ref;
mod run_stop;
mod run_supervision;
mod run_title;
mod sanitized_text;
mod server_registry;
mod session_retry;
mod store;
mod terminal_filter;
mod text_columns;
mod unstuck_subprocess;
mod wait_state_text;
mod web;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
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
use crate::output::{ColorMode, Output};

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

    /// Also read this configuration file (UNSTUCK_CONFIG)
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "UNSTUCK_CONFIG",
        hide_env = true
    )]
    config: Option<PathBuf>,

    /// Database file (UNSTUCK_STORE) [default: ~/.local/state/unstuck/unstuck.db]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "UNSTUCK_STORE",
        hide_env = true
    )]
    store: Option<String>,

    /// When to use colors
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    color: ColorMode,
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
    #[command(after_help = answer::REJECT_HELP)]
    Reject(answer::AnswerArgs),
    /// Say that you fixed the cause, and retry
    #[command(after_help = answer::RESOLVE_HELP)]
    Resolve(answer::AnswerArgs),
    Retry(retry::RetryArgs),
    Escalate(escalate::EscalateArgs),
    /// Skip this step and continue
    #[command(after_help = answer::SKIP_HELP)]
    Skip(answer::AnswerArgs),
    Abort(answer::AbortArgs),
    /// Approve the request of a run (alias of `unstuck approve`)
    #[command(hide = true, after_help = answer::APPROVE_RECOVERY_HELP)]
    ApproveRecovery(answer::RecoveryAnswerArgs),
    /// Reject the request of a run (alias of `unstuck reject`)
    #[command(hide = true, after_help = answer::REJECT_RECOVERY_HELP)]
    RejectRecovery(answer::RecoveryAnswerArgs),
    /// Resolve the request of a run (alias of `unstuck resolve`)
    #[command(hide = true, after_help = answer::RESOLVE_RECOVERY_HELP)]
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
    let arguments = unstuck_subprocess::detach_if_requested(arguments);
    let wants_json = wants_json(&arguments);
    let is_quiet = is_quiet(&arguments);
    let parsed = command_groups::with_grouped_help(Cli::command()).try_get_matches_from(arguments);
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
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

/// Runs the command.
fn run(cli: &Cli, is_quiet: bool, out: &mut Output) -> anyhow::Result<ExitCode> {
    human_only_commands::refuse_for_agents(&cli.command)?;
    let start = Startup { cli, is_quiet };
    let ok = |()| ExitCode::SUCCESS;
    match &cli.command {
        // The output of these must not depend on the user's configuration.
        Command::Demo(args) => run_demo(cli, args, out),
        Command::Faults(args) => faults::run(args, out).map(ok),
        // These report configuration errors themselves.
        Command::Config(args) => {
            let store = store_location(cli).ok();
            config_command::run(args, start.sources(store.as_ref()), out).map(ok)
        }
        Command::Guard(args) => guard::run(args, cli.config.as_deref(), out),

        Command::Classify(args) => start.with_config(|config, _| classify::run(args, config, out)),
        Command::Plan(args) => start.with_config(|config, _| plan::run(args, config, out)),
        Command::Agents(args) => start.with_config(|config, _| agents::run(args, config, out)),
        Command::Kinds(args) => start.with_config(|config, _| kinds::run(args, config, out)),
        Command::Policy(args) => start.with_config(|config, _| policy::run(args, config, out)),
        Command::Trust(args) => start.with_config(|config, _| trust::run(args, config, out)),
        Command::Token(args) => start.with_config(|_, store| token::run(args, store, out)),

        Command::Exec(args) => start.with_store(|config, at| exec::run(args, config, at, out)),
        Command::Run(args) => {
            start.with_store(|config, at| run_command::run(args, config, at, out))
        }
        Command::Resume(args) => start.with_store(|_, at| resume::run(args, at, out)),
        Command::Stop(args) => start.with_history(|_, at| stop::run(args, at, out)),
        Command::Status(args) => start.with_history(|_, at| status::run(args, at, out)),
        Command::Preview(args) => start.with_store(|config, at| {
            let proposed = |id: &str| answer::proposed_command(id, at);
            preview::run(args, config, at, &proposed, out)
        }),
        Command::Serve(args) => start.with_store(|config, at| serve::run(args, config, at, out)),
        Command::Repair(args) => start.with_store(|config, at| repair::run(args, config, at, out)),
        Command::Inbox(args) => start.with_history(|_, at| inbox::run(args, at, out)),
        Command::Approve(args) => start.with_history(|_, at| answer::approve(args, at, out)),
        Command::Abort(args) => start.with_history(|_, at| answer::abort(args, at, out)),
        Command::Retry(args) => start.with_history(|_, at| retry::run(args, at, out)),
        Command::Escalate(args) => {
            start.with_store(|config, at| escalate::run(args, config, at, out))
        }
        Command::Propose(args) => start.with_store(|config, _| propose::run(args, config, out)),
        Command::Webhook(args) => {
            start.with_history(|config, at| webhook::run(args, config, at, out))
        }
        Command::Reject(args) => start.answer(EscalationAnswer::Reject, args, out),
        Command::Resolve(args) => start.answer(EscalationAnswer::Resolve, args, out),
        Command::Skip(args) => start.answer(EscalationAnswer::Skip, args, out),
        Command::ApproveRecovery(args) => {
            start.answer(EscalationAnswer::Approve, &args.into(), out)
        }
        Command::RejectRecovery(args) => start.answer(EscalationAnswer::Reject, &args.into(), out),
        Command::ResolveRecovery(args) => {
            start.answer(EscalationAnswer::Resolve, &args.into(), out)
        }

        Command::Runs(args) => start.with_history(|_, at| runs::run(args, at, out).map(ok)),
        Command::Show(args) => start.with_history(|_, at| show::run(args, at, out).map(ok)),
        Command::Logs(args) => start.with_history(|_, at| logs::run(args, at, out).map(ok)),
        Command::Cost(args) => start.with_history(|_, at| cost::run(args, at, out).map(ok)),
        Command::Diff(args) => start.with_history(|_, at| diff::run(args, at, out).map(ok)),
        Command::Explain(args) => start.with_history(|_, at| explain::run(args, at, out).map(ok)),
        Command::Store(args) => {
            start.with_history(|_, at| store_command::run(args, at.store, out).map(ok))
        }
    }
}

/// Loads what a command needs before it runs.
struct Startup<'a> {
    cli: &'a Cli,
    is_quiet: bool,
}

impl Startup<'_> {
    fn sources<'s>(&'s self, store: Option<&'s StoreLocation>) -> ConfigSources<'s> {
        ConfigSources {
            named: self.cli.config.as_deref(),
            store,
            ..ConfigSources::default()
        }
    }

    /// Loads the configuration; warns of renamed keys.
    fn config(&self, store: Option<&StoreLocation>) -> anyhow::Result<Config> {
        let config = config::load(self.sources(store))?;
        if !self.is_quiet {
            error_report::warn_about_deprecated_keys(&config, self.cli.color);
        }
        Ok(config)
    }

    /// Loads the configuration; if only the project's is invalid, warns and leaves it out.
    fn config_for_history(&self, store: Option<&StoreLocation>) -> anyhow::Result<Config> {
        let invalid = match self.config(store) {
            Ok(config) => return Ok(config),
            Err(error) => error,
        };
        let is_missing = |named: &PathBuf| !named.is_file();
        let here = std::env::current_dir().unwrap_or_default();
        match config::load_owners(&here, self.sources(store)) {
            Ok(config) if !self.cli.config.as_ref().is_some_and(is_missing) => {
                if !self.is_quiet {
                    error_report::warn_of_ignored_project(&invalid, self.cli.color);
                }
                Ok(config)
            }
            _ => Err(invalid),
        }
    }

    /// Runs a command that needs the configuration, and works without a store.
    fn with_config(
        &self,
        command: impl FnOnce(&Config, Option<&StoreLocation>) -> anyhow::Result<()>,
    ) -> anyhow::Result<ExitCode> {
        let store = store_location(self.cli).ok();
        command(&self.config(store.as_ref())?, store.as_ref()).map(|()| ExitCode::SUCCESS)
    }

    /// Runs a command that needs the configuration and the store.
    fn with_store(
        &self,
        command: impl FnOnce(&Config, &CommandContext<'_>) -> anyhow::Result<ExitCode>,
    ) -> anyhow::Result<ExitCode> {
        let store = store_location(self.cli);
        let config = self.config(store.as_ref().ok())?;
        self.with_context(&config, &store?, command)
    }

    /// Runs a command that reads the history or answers escalations: an agent cannot block it with an invalid project
    /// configuration.
    fn with_history(
        &self,
        command: impl FnOnce(&Config, &CommandContext<'_>) -> anyhow::Result<ExitCode>,
    ) -> anyhow::Result<ExitCode> {
        let store = store_location(self.cli);
        let config = self.config_for_history(store.as_ref().ok())?;
        self.with_context(&config, &store?, command)
    }

    fn with_context(
        &self,
        config: &Config,
        store: &StoreLocation,
        command: impl FnOnce(&Config, &CommandContext<'_>) -> anyhow::Result<ExitCode>,
    ) -> anyhow::Result<ExitCode> {
        let context = CommandContext {
            store,
            config: self.cli.config.as_deref(),
            color: self.cli.color,
        };
        command(config, &context)
    }

    /// Answers an escalation.
    fn answer(
        &self,
        answer: EscalationAnswer,
        args: &AnswerArgs,
        out: &mut Output,
    ) -> anyhow::Result<ExitCode> {
        self.with_history(|_, context| answer::answer(answer, args, context, out))
    }
}

/// Runs the demo, which has a run history of its own.
fn run_demo(cli: &Cli, args: &demo::DemoArgs, out: &mut Output) -> anyhow::Result<ExitCode> {
    // An explicit --store is used for the demo as well.
    let named = cli.store.clone().filter(|named| !named.is_empty());
    let store =
        match named.filter(|named| environment_variables::named_store().as_ref() != Some(named)) {
            Some(named) => StoreLocation::parse(&named).map_err(store::with_hint)?,
            None => environment_variables::demo_store()?,
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
        None => environment_variables::store_location(),
    }
}
