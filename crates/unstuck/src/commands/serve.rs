//! `unstuck serve`: a gateway for all agents of this machine, with REST API and dashboard at one address.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state directory, which agents cannot access"
)]

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use unstuck_core::{RetryPolicy, money};
use unstuck_gateway::protocol::Protocol;
use unstuck_gateway::{
    Gateway, GatewayError, GatewaySessionEvent, GatewaySettings, OnLoop, Secret, Upstream,
};
use unstuck_run::process::AttemptStopRequest;
use unstuck_web::WebState;
use unstuck_web::auth::{PermissionScope, RejectedTokenReport};

use super::exec::gateway_policy;
use crate::command_context::CommandContext;
use crate::config::Config;
use crate::environment_variables;
use crate::error_report::error_with_hint;
use crate::gateway::{
    CountingRecorder, GatewayKnowledge, follow_decisions, follow_spending, from_config, from_flag,
    gateway_settings, notice_line, session_label, store_recorder,
};
use crate::listen_address;
use crate::notifications::{ConfiguredNotifier, NotificationDeliveryTask};
use crate::output::{BOLD, DIM, Output};
use crate::project_trust;
use crate::redacted_stderr::RedactedStderr;
use crate::run_supervision::listen;
use crate::server_registry;
use crate::web::{self, GatewayPolicyLoader, RouterBridge, WebParts};

/// Environment variable with the token if no file is given.
const TOKEN_VARIABLE: &str = "UNSTUCK_TOKEN";

/// Delay before pending calls are reported at shutdown.
const SHUTDOWN_NOTICE_DELAY: Duration = Duration::from_millis(200);

/// Serve the dashboard, the REST API, and a gateway that retries failed LLM API calls
///
/// Open the printed link to see active runs and pending requests. To use the gateway, set the base URL of a program
/// to one of the printed URLs; `unstuck exec` and `unstuck run` start their own gateway automatically.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck serve                       (open the printed link; it logs you in once)
  unstuck token create                (for the REST API: send it as a bearer token)
  curl http://127.0.0.1:4141/api/runs                           (reads need no token locally)
  export ANTHROPIC_BASE_URL=http://127.0.0.1:4141/anthropic     (in the agent's terminal)

  unstuck serve --upstream anthropic=https://spare.example
  unstuck serve --listen 127.0.0.1:0 --port-file /tmp/port --quiet
  unstuck serve --listen 0.0.0.0:4141 --token-file ~/.config/unstuck/token
                                      (clients send it in the header x-unstuck-token)

Exit codes:
  0    stopped by Ctrl-C or SIGTERM
  2    unstuck error: port in use, invalid address, invalid configuration")]
pub(crate) struct ServeArgs {
    /// Listen address; port 0 picks a free port [default: 127.0.0.1:4141]
    #[arg(long, value_name = "ADDR:PORT", value_parser = listen_address::parse_listen_address)]
    listen: Option<SocketAddr>,

    /// Write the port to this file once the server listens
    #[arg(long, value_name = "FILE")]
    port_file: Option<PathBuf>,

    /// Upstream API: anthropic=URL, openai=URL (including /v1) or gemini=URL; several URLs for one protocol are
    /// fallbacks, in order [default: from the configuration, otherwise the provider's URL]
    #[arg(long, value_name = "PROTOCOL=URL", value_parser = from_flag)]
    upstream: Vec<Upstream>,

    /// File with the token that clients must send (or set UNSTUCK_TOKEN); required for addresses other than loopback
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Host name that browsers use for this server (repeatable)
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,

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

    /// Suppress unstuck's own output
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(
    args: &ServeArgs,
    config: &Config,
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<ExitCode> {
    config.prepare()?;
    let policy = policy_loader(args)(config)?;
    let settings = serve_settings(args, config, policy)?;
    let knowledge = GatewayKnowledge::new(config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers())
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let notifying = ConfiguredNotifier::new(config, session);
    runtime.block_on(serve(args, settings, (knowledge, notifying), session, out))?;
    // After a second Ctrl-C, aborted calls are not awaited.
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

fn workers() -> usize {
    let there = std::thread::available_parallelism();
    there.map_or(2, usize::from).max(2)
}

fn serve_settings(
    args: &ServeArgs,
    config: &Config,
    policy: RetryPolicy,
) -> Result<GatewaySettings> {
    let section = config.gateway();
    let mut upstreams = numbered_upstreams(&args.upstream);
    if let Some(file) = config.ignored_upstreams().filter(|_| upstreams.is_empty()) {
        return Err(error_with_hint(
            format!(
                "{} {}, so its [gateway.upstreams] are ignored and keys would be sent to other addresses",
                file.file.display(),
                file.reason
            ),
            "start it in another directory, such as /, or set the upstreams with --upstream PROTOCOL=URL",
        ));
    }
    for protocol in Protocol::ALL {
        if upstreams.iter().all(|one| one.protocol != protocol) {
            upstreams.extend(from_config(section, protocol)?);
        }
    }
    let mut settings = gateway_settings(section, upstreams, policy);
    settings.listen = args.listen.unwrap_or(section.listen);
    settings.token = token(args.token_file.as_deref())?;
    // These agents are unsupervised: by default, requests of a looping agent are blocked.
    if config.origin("gateway.on_loop").is_none() {
        settings.loop_rules.action = OnLoop::Hold;
    }
    Ok(settings)
}

/// Loads the gateway policy from the configuration, with flags taking precedence.
fn policy_loader(args: &ServeArgs) -> GatewayPolicyLoader {
    let (name, retries) = (args.policy.clone(), args.retries);
    Box::new(move |config| gateway_policy(name.as_deref(), retries, config))
}

/// Numbers upstreams of one protocol, so that their names are unique.
fn numbered_upstreams(upstreams: &[Upstream]) -> Vec<Upstream> {
    let mut named: Vec<Upstream> = Vec::new();
    for upstream in upstreams {
        let same = named.iter().filter(|one| one.protocol == upstream.protocol);
        let name = match same.count() {
            0 => upstream.protocol.name().to_owned(),
            before => format!("{}-{}", upstream.protocol.name(), before + 1),
        };
        named.push(Upstream {
            name,
            ..upstream.clone()
        });
    }
    named
}

fn token(file: Option<&Path>) -> Result<Option<Secret>> {
    let Some(file) = file else {
        return Ok(environment_variables::variable(TOKEN_VARIABLE).map(Secret::new));
    };
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let text = text.trim();
    if text.len() < 16 || text.contains(char::is_whitespace) {
        return Err(error_with_hint(
            format!("{} does not contain a valid token", file.display()),
            "a token is one line of at least 16 characters; `openssl rand -hex 32` generates one",
        ));
    }
    Ok(Some(Secret::new(text)))
}

async fn serve(
    args: &ServeArgs,
    mut settings: GatewaySettings,
    (knowledge, notifying): (GatewayKnowledge, Option<ConfiguredNotifier>),
    session: &CommandContext<'_>,
    out: &mut Output,
) -> Result<()> {
    let needs_token = settings.token.is_some();
    let redactor = Arc::new(environment_variables::redactor());
    let store = crate::store::open(session.store, Arc::clone(&redactor)).await?;
    let door = Arc::new(RouterBridge::default());
    settings.fallback = Some(Arc::clone(&door) as _);
    let courier = notifying
        .is_some()
        .then(|| NotificationDeliveryTask::start(&store));
    let books = store_recorder(store.clone(), String::new(), notifying);
    let counting = Arc::new(CountingRecorder::new(Arc::clone(&books) as _));
    let started = Gateway::start(settings, Arc::new(knowledge), Arc::clone(&counting) as _).await;
    let gateway = started.map_err(with_hint)?;
    follow_spending(&gateway, &store).await;
    let web = web::build_web(WebParts {
        store: store.clone(),
        session,
        redactor,
        listen: gateway.address(),
        hosts: args.host.clone(),
        gateway: gateway.handle(),
        policy: policy_loader(args),
    })?;
    // Subscribed before the first request can arrive.
    let mut rejected = web.rejected_tokens();
    door.set_router(unstuck_web::router(Arc::clone(&web)));
    let (stop, mut stopped) = watch::channel(AttemptStopRequest::Continue);
    listen(stop, None)?;
    let listening = server_registry::register(gateway.address(), session.store);
    if let Some(file) = &args.port_file {
        write_port(file, gateway.address().port())?;
    }
    if !args.quiet {
        welcome(&gateway, &web, needs_token, out)?;
        out.finish()?;
    }
    let mut teller = ServeLog::new(session, args.quiet);
    let mut notices = gateway.subscribe();
    let telling = async {
        loop {
            tokio::select! {
                notice = next_notice(&mut notices) => teller.report_notice(&notice),
                tokens = next_notice(&mut rejected) => teller.report_rejected(&tokens),
            }
        }
    };
    tokio::select! {
        _ = stopped.wait_for(|stop| *stop != AttemptStopRequest::Continue) => {}
        () = follow_decisions(&gateway, &store) => {}
        () = telling => {}
    }
    // The last messages are being sent.
    while let Ok(notice) = notices.try_recv() {
        teller.report_notice(&notice);
    }
    while let Ok(tokens) = rejected.try_recv() {
        teller.report_rejected(&tokens);
    }
    // Event streams never end by themselves and would block the shutdown.
    web.close_streams();
    let in_a_hurry = async {
        tokio::select! {
            _ = stopped.wait_for(|stop| matches!(stop, AttemptStopRequest::Kill(_))) => return,
            () = tokio::time::sleep(SHUTDOWN_NOTICE_DELAY) => {}
        }
        teller.line("waiting up to 5 s for active calls; press Ctrl-C to abort them");
        // Cannot fail: the signal listener lives as long as this function.
        let _ = stopped
            .wait_for(|stop| matches!(stop, AttemptStopRequest::Kill(_)))
            .await;
    };
    drop(listening);
    gateway.stop_or_abort(in_a_hurry).await;
    if let Some(file) = &args.port_file {
        // A client that finds the file would connect to a closed port.
        let _ = fs::remove_file(file);
    }
    books.close().await;
    if let Some(courier) = courier {
        courier.flush_and_stop().await;
    }
    teller.report_totals(&counting);
    store.close().await.map_err(crate::store::with_hint)
}

async fn next_notice<T: Clone>(notices: &mut Receiver<T>) -> T {
    loop {
        match notices.recv().await {
            Ok(notice) => return notice,
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// Writes the port file atomically.
fn write_port(file: &Path, port: u16) -> Result<()> {
    let beside = file.with_extension(format!("{}.new", std::process::id()));
    let written = fs::write(&beside, format!("{port}\n")).and_then(|()| fs::rename(&beside, file));
    written.map_err(|error| {
        let _ = fs::remove_file(&beside);
        error_with_hint(
            format!("cannot write the port to {}: {error}", file.display()),
            "--port-file expects a file path in an existing, writable directory",
        )
    })
}

/// Prints the base URLs and links.
fn welcome(gateway: &Gateway, web: &WebState, needs_token: bool, out: &mut Output) -> Result<()> {
    let url = |protocol| gateway.base_url(protocol, None);
    // A server started by an agent must not hand out a login link.
    if project_trust::agent_evidence().is_none() {
        writeln!(
            out,
            "{BOLD}dashboard{BOLD:#}  {}",
            web.create_login_link(PermissionScope::Admin)?
        )?;
        writeln!(out, "{DIM}The link works once, within 10 minutes.{DIM:#}")?;
    }
    writeln!(
        out,
        "{BOLD}unstuck gateway{BOLD:#} on http://{}. Point your agents at it:",
        gateway.address()
    )?;
    let variables = [
        ("ANTHROPIC_BASE_URL", Protocol::Anthropic),
        ("OPENAI_BASE_URL", Protocol::OpenAi),
        ("GOOGLE_GEMINI_BASE_URL", Protocol::Gemini),
    ];
    for (name, protocol) in variables {
        writeln!(out, "  export {name}={}", url(protocol))?;
    }
    if needs_token {
        writeln!(out, "  and send the token in the header x-unstuck-token")?;
    }
    writeln!(out, "{DIM}Press Ctrl-C to stop.{DIM:#}")?;
    Ok(())
}

/// Log with one line per event.
struct ServeLog {
    stderr: RedactedStderr,
    quiet: bool,
}

impl ServeLog {
    fn new(session: &CommandContext<'_>, quiet: bool) -> Self {
        Self {
            stderr: RedactedStderr::new(session.color),
            quiet,
        }
    }

    fn line(&mut self, line: &str) {
        if !self.quiet {
            // If standard error is closed, nothing is left to try.
            let _ = writeln!(self.stderr, "{DIM}unstuck:{DIM:#} {line}");
        }
    }

    fn report_notice(&mut self, notice: &GatewaySessionEvent) {
        let name = session_label(&notice.session);
        self.line(&format!("{name}: {}", notice_line(&notice.kind)));
    }

    /// Reports rejected tokens: harmless, but the operator should know.
    fn report_rejected(&mut self, tokens: &RejectedTokenReport) {
        let from = tokens.address.map(|address| format!(" from {address}"));
        let requests = match tokens.count {
            1 => "a request".to_owned(),
            count => format!("{count} requests"),
        };
        self.line(&format!(
            "rejected {requests} with an invalid token{}; valid tokens still work (unstuck token list)",
            from.unwrap_or_default()
        ));
    }

    fn report_totals(&mut self, counting: &CountingRecorder) {
        let counts = counting.totals();
        let calls = match counts.calls {
            1 => "1 call".to_owned(),
            calls => format!("{calls} calls"),
        };
        let refused = match counts.refused {
            0 => String::new(),
            refused => format!(", {refused} refused"),
        };
        self.line(&format!(
            "{calls}, {} recovered, {} failed{refused}, {}",
            counts.recovered,
            counts.failed,
            money::format_cost(counts.cost, counts.unpriced > 0)
        ));
    }
}

/// Adds a hint to a gateway error.
fn with_hint(error: GatewayError) -> anyhow::Error {
    let hint = match &error {
        GatewayError::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
            "the port is in use (by another `unstuck serve`?); --listen 127.0.0.1:0 picks a free port"
        }
        GatewayError::Listen { .. } => {
            "--listen expects an address of this machine, such as 127.0.0.1:4141"
        }
        GatewayError::TokenRequired(_) => {
            "set one with --token-file FILE or UNSTUCK_TOKEN; 127.0.0.1 needs none"
        }
        GatewayError::Upstream { .. } | GatewayError::NoUpstream(_) => {
            "--upstream expects PROTOCOL=URL, such as anthropic=https://api.anthropic.com"
        }
        GatewayError::Certificates { .. } => {
            "SSL_CERT_FILE, SSL_CERT_DIR and NODE_EXTRA_CA_CERTS must point to PEM certificates; unset the invalid one"
        }
        GatewayError::Proxy { .. } => {
            "check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY; NO_PROXY lists the hosts to reach directly"
        }
        GatewayError::Tls(_) | GatewayError::Randomness(_) => return error.into(),
    };
    error_with_hint(error.to_string(), hint)
}
