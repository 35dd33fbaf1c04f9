//! The fault-injecting LLM API and the scripted agent, for tests in any language.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use unstuck_faults::scripted_agent::{self, ScriptedAgentArgs};
use unstuck_faults::{FaultScript, FaultServerError, FaultServerOptions};

/// A scripted LLM API with failures, and an agent that calls it
#[derive(Debug, Parser)]
#[command(name = "unstuck-faults", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(ServeArgs),
    Agent(ScriptedAgentArgs),
}

/// Serve a script until interrupted
#[derive(Debug, Args)]
struct ServeArgs {
    /// Script to play, a TOML file of steps
    #[arg(long, value_name = "FILE")]
    script: PathBuf,

    /// File to write the port to once the server listens
    #[arg(long, value_name = "FILE")]
    port_file: Option<PathBuf>,

    /// Port on 127.0.0.1 to listen on; 0 for a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,

    /// File to append every request to, one line of JSON each
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Agent(args) => {
            let code = u8::try_from(scripted_agent::run(&args));
            code.map_or(ExitCode::FAILURE, ExitCode::from)
        }
        Command::Serve(args) => match serve(&args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                // A write error is ignored: the terminal is gone.
                let _ = writeln!(stderr(), "error: {error}");
                ExitCode::from(2)
            }
        },
    }
}

fn serve(args: &ServeArgs) -> Result<(), FaultServerError> {
    let options = FaultServerOptions {
        port: args.port,
        log: args.log.clone(),
        ..FaultServerOptions::default()
    };
    let script = FaultScript::from_file(&args.script)?;
    unstuck_faults::serve(script, &options, args.port_file.as_deref(), |server| {
        let _ = writeln!(stderr(), "listening on {}", server.url());
    })?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a standalone program")]
fn stderr() -> std::io::Stderr {
    std::io::stderr()
}
