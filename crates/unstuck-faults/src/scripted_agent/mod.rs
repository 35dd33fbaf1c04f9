//! A small agent CLI: one prompt, one request, one answer, no retry.
//!
//! It speaks Anthropic Messages over plain HTTP, prints answers and failures like Claude Code, and exits with 0 or 1.
//! It runs no commands: if the script says `tool_failure`, it prints that text to standard error and exits with that
//! code. It keeps no conversation; `--resume` only keeps the session id.

mod args;
mod client;
mod outcome;
mod report;
mod response_parser;

pub use args::{ScriptedAgentArgs, ScriptedAgentOutputFormat};

use std::ffi::OsString;
use std::io::Write;

use clap::Parser;

use self::outcome::{AgentFailure, ModelAnswer};
use self::report::AgentReport;
use crate::clock;

/// The tool whose call the agent reports as a failure.
pub(crate) const FAILING_TOOL: &str = "scripted_failure";

/// Runs the agent with these arguments (without a program name) and returns its exit code: 0 for an answer, 1 for a
/// failure, 2 for wrong arguments, and the scripted code for a failed tool.
///
/// It has its own runtime, so async code must call it from a blocking thread.
pub fn main(args: impl IntoIterator<Item = impl Into<OsString>>) -> i32 {
    let args = args.into_iter().map(Into::into);
    match ScriptedAgentArgs::try_parse_from([OsString::from("agent")].into_iter().chain(args)) {
        Ok(args) => run(&args),
        Err(error) => {
            // A write error is ignored: the terminal is gone.
            let _ = error.print();
            error.exit_code()
        }
    }
}

/// Runs the agent and returns its exit code.
pub fn run(args: &ScriptedAgentArgs) -> i32 {
    let session = args.resume.clone().unwrap_or_else(new_session_id);
    let outcome = ask(args, &session);
    let report = AgentReport::new(&outcome, &session);
    let (stdout, stderr) = match args.output_format {
        ScriptedAgentOutputFormat::Text => (report.text(), report.stderr()),
        ScriptedAgentOutputFormat::Json => (report.json(), report.stderr()),
    };
    // A closed pipe is not an error.
    let _ = std::io::stdout().write_all(stdout.as_bytes());
    let _ = own_stderr().write_all(stderr.as_bytes());
    report.exit_code()
}

#[expect(clippy::disallowed_methods, reason = "a standalone program")]
fn own_stderr() -> std::io::Stderr {
    std::io::stderr()
}

fn ask(args: &ScriptedAgentArgs, session: &str) -> Result<ModelAnswer, AgentFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| AgentFailure::Unreachable(error.to_string()))?;
    runtime.block_on(async {
        let answered = tokio::time::timeout(args.timeout(), client::send(args, session));
        let response = answered.await.map_err(|_| AgentFailure::TimedOut)??;
        response_parser::parse_response(&response)
    })
}

/// Returns an id in the format of a UUID, derived from the clock and the process id.
fn new_session_id() -> String {
    let millis = clock::now().millis();
    let (high, low) = (millis >> 16, millis & 0xffff);
    format!("{high:08x}-{low:04x}-4000-8000-{:012x}", std::process::id())
}
