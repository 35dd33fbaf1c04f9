//! `unstuck token`: manages the tokens for the REST API and the dashboard.

use std::io::Write;
use std::net::SocketAddr;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use unstuck_store::StoreLocation;
use unstuck_web::auth::{PermissionScope, TokenStore, TokenStoreError, WebTokenRecord};

use crate::error_report::{error_with_hint, refusal};
use crate::output::{BOLD, DIM, Output};
use crate::redacted_stderr::RedactedStderr;
use crate::server_registry::{self, RunningServer};
use crate::{clock, escalation_answers, listen_address, web};

/// Create, list and revoke REST API tokens
///
/// Without a subcommand, lists the tokens. unstuck shows a token's secret only once, because it stores only the hash.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck token                                   (lists tokens)
  unstuck token create                            (creates one with scope answer)
  unstuck token create --scope admin --name laptop
  unstuck token link                              (prints a one-time dashboard login link)
  unstuck token list
  unstuck token revoke 3f9a2c81
  curl -H \"Authorization: Bearer $TOKEN\" -X POST http://127.0.0.1:4141/api/runs/RUN/stop

Exit codes: 0 success; 1 token not found, no server for the link, or inside a supervised agent; 2 unstuck error.")]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    command: Option<TokenCommand>,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Create a token and show its secret once
    #[command(after_help = "Example:\n  unstuck token create --scope answer --name phone")]
    Create(CreateArgs),
    /// List active tokens, without their secrets
    #[command(after_help = "Example:\n  unstuck token list")]
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Print a login link for the dashboard of an active server; it works once, within 10 minutes
    #[command(after_help = "Example:\n  unstuck token link --scope admin")]
    Link {
        /// Listen address of the server [default: the active server of this store]
        #[arg(long, value_name = "ADDR:PORT", value_parser = listen_address::parse_listen_address)]
        listen: Option<SocketAddr>,
        /// Scope of the login
        #[arg(long, value_enum, default_value_t, value_name = "SCOPE")]
        scope: ScopeArg,
    },
    /// Revoke a token
    #[command(after_help = "Example:\n  unstuck token revoke 3f9a2c81")]
    Revoke {
        /// Token id
        id: String,
    },
}

#[derive(Debug, Args)]
struct CreateArgs {
    /// Scope of the token
    #[arg(long, value_enum, default_value_t, value_name = "SCOPE")]
    scope: ScopeArg,

    /// Name recorded in the audit log [default: your user name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum ScopeArg {
    /// Read, including from other machines
    Read,
    /// Read; answer requests, retry, stop runs and switch models
    #[default]
    Answer,
    /// Do all of this, change policies and test webhooks
    Admin,
}

impl From<ScopeArg> for PermissionScope {
    fn from(allows: ScopeArg) -> Self {
        match allows {
            ScopeArg::Read => Self::Read,
            ScopeArg::Answer => Self::Answer,
            ScopeArg::Admin => Self::Admin,
        }
    }
}

impl TokenArgs {
    /// True if tokens are created or revoked, not only listed.
    pub(crate) fn changes_tokens(&self) -> bool {
        match &self.command {
            None | Some(TokenCommand::List { .. }) => false,
            Some(
                TokenCommand::Create(_) | TokenCommand::Link { .. } | TokenCommand::Revoke { .. },
            ) => true,
        }
    }
}

pub(crate) fn run(args: &TokenArgs, store: Option<&StoreLocation>, out: &mut Output) -> Result<()> {
    let tokens = web::token_store()?;
    match &args.command {
        None => {
            list(false, &tokens, out)?;
            out.finish()?;
            writeln!(
                RedactedStderr::auto(),
                "{DIM}`unstuck token create` creates one; see also `unstuck token --help`{DIM:#}"
            )?;
            Ok(())
        }
        Some(TokenCommand::Create(args)) => create(args, &tokens, out),
        Some(TokenCommand::List { json }) => list(*json, &tokens, out),
        Some(TokenCommand::Link { listen, scope }) => {
            let listen = link_server(*listen, store)?;
            let code = tokens.create_login_code((*scope).into(), clock::now().at);
            let code = code.map_err(with_hint)?;
            writeln!(out, "{}", unstuck_web::login_link(listen, &code))?;
            Ok(())
        }
        Some(TokenCommand::Revoke { id }) => revoke(id, &tokens, out),
    }
}

/// Returns the server address for a link; the secret is given only to an active server of this store.
fn link_server(asked: Option<SocketAddr>, store: Option<&StoreLocation>) -> Result<SocketAddr> {
    let running = store
        .map(server_registry::running_for_store)
        .unwrap_or_default();
    let is_meant =
        |one: &&RunningServer| asked.is_none_or(|asked| is_reached_by(one.listen, asked));
    let found: Vec<_> = running.iter().filter(is_meant).collect();
    match (found.as_slice(), asked) {
        ([one], _) => Ok(one.listen),
        ([], Some(asked)) => Err(refusal(
            format!("no server for this store is listening on {asked}"),
            format!("`unstuck serve --listen {asked}` starts one"),
        )),
        ([], None) => Err(refusal(
            "no server is running for this store",
            "`unstuck serve` starts one and prints a link",
        )),
        (several, _) => {
            let all: Vec<_> = several.iter().map(|one| one.listen.to_string()).collect();
            Err(refusal(
                format!(
                    "several servers are running for this store: {}",
                    all.join(", ")
                ),
                "select one with --listen",
            ))
        }
    }
}

/// True if a server listening at this address is reachable by the given one.
fn is_reached_by(listens: SocketAddr, asked: SocketAddr) -> bool {
    let is_everywhere = listens.ip().is_unspecified() || asked.ip().is_unspecified();
    listens == asked || is_everywhere && listens.port() == asked.port()
}

fn create(args: &CreateArgs, tokens: &TokenStore, out: &mut Output) -> Result<()> {
    let name = args
        .name
        .clone()
        .unwrap_or_else(escalation_answers::current_user);
    let now = clock::now().at;
    let (token, secret) = tokens
        .create(&name, args.scope.into(), now)
        .map_err(with_hint)?;
    if args.json {
        return out.write_json(&json!({
            "id": token.id,
            "scope": token.scope,
            "name": token.name,
            "created": token.created,
            "token": secret,
        }));
    }
    writeln!(out, "{secret}")?;
    out.finish()?;
    writeln!(
        RedactedStderr::auto(),
        "{DIM}token {} of {name} (scope {}). Save it now; it won't be shown again. Revoke it with `unstuck token revoke {}`.{DIM:#}",
        token.id,
        token.scope,
        token.id
    )?;
    Ok(())
}

fn list(json: bool, tokens: &TokenStore, out: &mut Output) -> Result<()> {
    let all = tokens.list().map_err(with_hint)?;
    if json {
        let all: Vec<_> = all.iter().map(token_json).collect();
        return out.write_json(&all);
    }
    if all.is_empty() {
        writeln!(out, "no tokens; `unstuck token create` creates one")?;
    }
    for token in all {
        let made = clock::format_time(token.created);
        writeln!(
            out,
            "{BOLD}{}{BOLD:#}  {:<6}  {DIM}created {made:<16}{DIM:#}  {}",
            token.id, token.scope, token.name
        )?;
    }
    Ok(())
}

fn token_json(token: &WebTokenRecord) -> serde_json::Value {
    json!({
        "id": token.id,
        "scope": token.scope,
        "name": token.name,
        "created": token.created,
    })
}

fn revoke(id: &str, tokens: &TokenStore, out: &mut Output) -> Result<()> {
    let token = tokens.revoke(id, clock::now().at).map_err(with_hint)?;
    writeln!(out, "revoked token {} of {}", token.id, token.name)?;
    Ok(())
}

fn with_hint(error: TokenStoreError) -> anyhow::Error {
    match &error {
        TokenStoreError::NotFound { .. } => {
            refusal(error.to_string(), "`unstuck token list` lists the ids")
        }
        TokenStoreError::InsecurePermissions { .. } => {
            error_with_hint(error.to_string(), "other users may have read it")
        }
        TokenStoreError::File { .. } => error_with_hint(
            error.to_string(),
            "make sure that you can write to the file and its directory",
        ),
        TokenStoreError::Randomness(_) => error.into(),
    }
}
