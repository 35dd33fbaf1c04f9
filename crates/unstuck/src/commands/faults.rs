//! `unstuck faults`: a fault-injecting LLM API for testing agents.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, Subcommand};
use unstuck_core::nearest;
use unstuck_faults::examples::ExampleFaultScript;
use unstuck_faults::{
    FaultScript, FaultServer, FaultServerError, FaultServerOptions, FaultServerStats, examples,
    reply_catalog,
};

use crate::error_report::error_with_hint;
use crate::listen_address;
use crate::output::{BOLD, DIM, Output};
use crate::redacted_stderr::RedactedStderr;

/// Serve an LLM API that fails on purpose, to test agents and clients
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck faults example flaky > flaky.toml
  unstuck faults serve flaky.toml --listen 127.0.0.1:8089
  ANTHROPIC_BASE_URL=http://127.0.0.1:8089 claude -p \"Say hello\"
  unstuck faults list")]
pub(crate) struct FaultsArgs {
    #[command(subcommand)]
    command: FaultsCommand,
}

#[derive(Debug, Subcommand)]
enum FaultsCommand {
    Serve(ServeArgs),
    List(ListArgs),
    Example(ExampleArgs),
}

/// Serve a fault script until interrupted, then print statistics
///
/// Supports Anthropic Messages, OpenAI Chat Completions and Responses, and Gemini, including streams, over HTTP/1.1 and
/// HTTP/2. Set the base URL of clients to http://127.0.0.1:PORT for Anthropic and Gemini, or http://127.0.0.1:PORT/v1
/// for OpenAI. The server accepts any API key. GET /__faults/stats returns the statistics, POST /__faults/restart
/// restarts the script.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck faults serve flaky.toml
  unstuck faults serve flaky.toml --listen 127.0.0.1:8089 --log requests.jsonl
  unstuck faults serve flaky.toml --port-file port &
  curl http://127.0.0.1:$(cat port)/__faults/stats

A script:
  [[step]]
  rate_limit = { retry_after = 2 }

  [[step]]
  answer = { text = \"Done\" }
  times = \"always\"

Exit codes: 0 interrupted; 2 invalid script, or the address is in use.")]
struct ServeArgs {
    /// Script of responses, a TOML file
    script: PathBuf,

    /// Listen address; port 0 picks a free port
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0", value_parser = listen_address::parse_listen_address)]
    listen: SocketAddr,

    /// Write the port to this file once the server listens
    #[arg(long, value_name = "FILE")]
    port_file: Option<PathBuf>,

    /// Append every request to this file as a line of JSON
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// Print the statistics as JSON
    #[arg(long)]
    json: bool,
}

/// List all faults, one per line
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck faults list
  unstuck faults list cut_at
  unstuck faults list --json | jq -r '.[].id'")]
struct ListArgs {
    /// Only this fault, in the form of a script step
    fault: Option<String>,

    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Print an example script, or list all examples
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck faults example
  unstuck faults example brownout > brownout.toml")]
struct ExampleArgs {
    /// Name of the script
    name: Option<String>,
}

pub(crate) fn run(args: &FaultsArgs, out: &mut Output) -> Result<()> {
    match &args.command {
        FaultsCommand::Serve(args) => serve(args, out),
        FaultsCommand::List(args) => list(args, out),
        FaultsCommand::Example(args) => example(args, out),
    }
}

fn serve(args: &ServeArgs, out: &mut Output) -> Result<()> {
    let script =
        FaultScript::from_file(&args.script).map_err(|error| script_error(error, &args.script))?;
    let options = FaultServerOptions {
        listen: Some(args.listen),
        log: args.log.clone(),
        ..FaultServerOptions::default()
    };
    let stats = unstuck_faults::serve(script, &options, args.port_file.as_deref(), announce)
        .map_err(|error| serve_error(error, args))?;
    if args.json {
        return out.write_json(&stats);
    }
    print_summary(&stats, out)
}

/// Prints the server address on standard error; standard output is reserved for the statistics.
fn announce(server: &FaultServer) {
    // The terminal is gone: nothing is left to try.
    let mut to = RedactedStderr::auto();
    let _ = writeln!(to, "listening on {}; press Ctrl-C to stop", server.url());
    if let Some(url) = server.tls_url() {
        let _ = writeln!(to, "TLS: {url}");
    }
    if !server.address().ip().is_loopback() {
        let _ = writeln!(to, "warning: reachable from other machines");
    }
}

/// Describes why a valid script cannot be served.
fn serve_error(error: FaultServerError, args: &ServeArgs) -> anyhow::Error {
    let is = |path: &Path, named: &Option<PathBuf>| named.as_deref() == Some(path);
    let (said, hint) = match &error {
        FaultServerError::File { path, source } if is(path, &args.port_file) => (
            format!("cannot write the port to {}: {source}", path.display()),
            "--port-file expects a file path in an existing, writable directory",
        ),
        FaultServerError::File { path, source } if is(path, &args.log) => (
            format!("cannot write requests to {}: {source}", path.display()),
            "--log expects a file path in an existing, writable directory",
        ),
        FaultServerError::Start(source) => (
            format!("cannot listen on {}: {source}", args.listen),
            "--listen 127.0.0.1:0 picks a free port",
        ),
        _ => return script_error(error, &args.script),
    };
    error_with_hint(said, hint)
}

fn script_error(error: FaultServerError, script: &Path) -> anyhow::Error {
    let hint = match &error {
        FaultServerError::File { path, source }
            if source.kind() == std::io::ErrorKind::IsADirectory =>
        {
            return error_with_hint(
                format!("{} is a directory, not a script", path.display()),
                "`unstuck faults example flaky` prints an example script",
            );
        }
        FaultServerError::File { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            let named = script.file_stem().and_then(|name| name.to_str());
            let known = named.and_then(examples::find).map(|example| example.name);
            format!(
                "`unstuck faults example {}` prints an example script",
                known.unwrap_or("flaky")
            )
        }
        FaultServerError::Script(_) | FaultServerError::ScriptFile { .. } => {
            "`unstuck faults list NAME` shows the syntax of a fault".to_owned()
        }
        _ => return anyhow::Error::new(error),
    };
    error_with_hint(error.to_string(), hint)
}

fn print_summary(stats: &FaultServerStats, out: &mut Output) -> Result<()> {
    let FaultServerStats {
        requests,
        connections,
        most_in_flight,
        abandoned,
        ..
    } = stats;
    let peak = stats.per_second.iter().max().copied().unwrap_or_default();
    let (a, b) = (plural_suffix(*requests), plural_suffix(*connections));
    writeln!(
        out,
        "{BOLD}{requests} request{a}{BOLD:#} on {connections} connection{b}; at most {peak} per second, {most_in_flight} concurrent; \
         {abandoned} abandoned"
    )?;
    table("reply", stats.by_reply.iter(), out)?;
    let name = |status: &u16| match status {
        0 => "none".to_owned(),
        status => status.to_string(),
    };
    let statuses: Vec<_> = stats
        .by_status
        .iter()
        .map(|(status, count)| (name(status), *count))
        .collect();
    table("status", statuses.iter().map(|(a, b)| (a, b)), out)?;
    table("path", stats.by_path.iter(), out)
}

fn plural_suffix(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn table<'a>(
    title: &str,
    counts: impl Iterator<Item = (&'a String, &'a u64)>,
    out: &mut Output,
) -> Result<()> {
    let mut counts: Vec<_> = counts.collect();
    counts.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), (*name).clone()));
    if counts.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{BOLD}by {title}{BOLD:#}")?;
    for (name, count) in counts {
        writeln!(out, "{count:>8}  {name}")?;
    }
    Ok(())
}

fn list(args: &ListArgs, out: &mut Output) -> Result<()> {
    let wanted = args.fault.as_deref();
    let faults: Vec<_> = reply_catalog::faults()
        .iter()
        .filter(|fault| wanted.is_none_or(|wanted| wanted == fault.name))
        .collect();
    if faults.is_empty() {
        let all = reply_catalog::faults().iter();
        let known = all.map(|fault| (fault.name.as_str(), fault.name.as_str()));
        let wanted = wanted.unwrap_or_default();
        let hint = match nearest(wanted, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`unstuck faults list` lists all faults".to_owned(),
        };
        return Err(error_with_hint(format!("unknown fault `{wanted}`"), hint));
    }
    if args.json {
        let json = |fault: &&reply_catalog::FaultReplyDescription| serde_json::json!({"id": fault.name, "about": fault.summary, "step": fault.step});
        return out.write_json(&faults.iter().map(json).collect::<Vec<_>>());
    }
    if wanted.is_some() {
        for fault in faults {
            writeln!(out, "{}\n\n[[step]]\n{}", fault.summary, fault.step)?;
        }
        return Ok(());
    }
    let width = faults.iter().map(|fault| fault.name.len()).max();
    for fault in faults {
        let width = width.unwrap_or_default();
        writeln!(
            out,
            "{BOLD}{:<width$}{BOLD:#}  {}",
            fault.name, fault.summary
        )?;
    }
    writeln!(
        out,
        "\n{DIM}`unstuck faults list NAME` shows the syntax of a fault; `unstuck faults example` lists example scripts.{DIM:#}"
    )?;
    Ok(())
}

fn example(args: &ExampleArgs, out: &mut Output) -> Result<()> {
    let Some(name) = args.name.as_deref() else {
        for example in examples::all() {
            writeln!(
                out,
                "{BOLD}{:<12}{BOLD:#}  {}",
                example.name,
                example.summary()
            )?;
        }
        return Ok(());
    };
    let Some(ExampleFaultScript { text, .. }) = examples::find(name) else {
        let all: Vec<_> = examples::all().iter().map(|one| one.name).collect();
        return Err(error_with_hint(
            format!("unknown example `{name}`"),
            format!("available examples: {}", all.join(", ")),
        ));
    };
    Ok(write!(out, "{text}")?)
}
