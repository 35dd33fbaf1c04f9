//! unstuck keeps AI agents working.

mod clock;
mod commands;
mod output;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use output::Output;

/// Keeps AI agents working
#[derive(Debug, Parser)]
#[command(name = "unstuck", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Classify(commands::classify::ClassifyArgs),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = Output::new();
    let done = match &cli.command {
        Command::Classify(args) => commands::classify::run(args, &mut out),
    };
    let done = done.and_then(|()| out.flush().map_err(Into::into));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::from(2)
        }
    }
}
