//! unstuck keeps AI agents working: it knows every failure, and what to do about it.

mod clock;
mod commands;
mod config;
mod environment;
mod output;
mod report;
mod runtime;
mod store;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::commands::{classify, kinds, plan, policy, store as store_command};
use crate::config::Config;
use crate::output::{Color, Output};

/// Keeps AI agents working: tells what failed, why, and what to do about it
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

    /// Keep the history in this file
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
    Classify(Box<classify::ClassifyArgs>),
    Plan(Box<plan::PlanArgs>),
    Kinds(kinds::KindsArgs),
    Policy(policy::PolicyArgs),
    Store(store_command::StoreArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = Output::new(cli.color);
    match run(&cli, &mut out).and_then(|()| out.finish()) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough.
        Err(error) if report::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => report::show(&error, cli.color),
    }
}

fn run(cli: &Cli, out: &mut Output) -> anyhow::Result<()> {
    let config = Config::load(cli.config.as_deref())?;
    match &cli.command {
        Command::Classify(args) => classify::run(args, &config, out),
        Command::Plan(args) => plan::run(args, &config, out),
        Command::Kinds(args) => kinds::run(args, &config, out),
        Command::Policy(args) => policy::run(args, &config, out),
        Command::Store(args) => store_command::run(args, cli.store.as_deref(), out),
    }
}
