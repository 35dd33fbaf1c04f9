//! Serves the API on a store with a short history, to try it out or to test a client.
//!
//! `cargo run -p unstuck-web --example serve -- DIR` keeps everything in that directory and writes there its port
//! (`port`) and an admin token (`token`). It runs until the process ends.
#![expect(
    clippy::disallowed_methods,
    reason = "writes only to the directory that the user names"
)]

#[expect(clippy::unwrap_used, reason = "it is a part of the tests")]
#[path = "../tests/it/doer.rs"]
mod doer;
#[expect(clippy::unwrap_used, reason = "it is a part of the tests")]
#[path = "../tests/it/samples.rs"]
mod samples;

use std::error::Error;
use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use unstuck_core::redact::Redactor;
use unstuck_run::clock::Clock;
use unstuck_store::{RunFilter, Store, StoreLocation, StoreOptions};
use unstuck_web::auth::{PermissionScope, TokenStore, WebClientRateLimit, WebRequestRateLimits};
use unstuck_web::{WebOptions, WebState, router};

use doer::Doer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1);
    let folder = PathBuf::from(folder.ok_or("which folder? serve FOLDER")?);
    fs::create_dir_all(&folder)?;
    let location = StoreLocation::file(folder.join("unstuck.db"));
    let store = Store::open(&location, StoreOptions::default()).await?;
    fill(&store).await?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let tokens = Arc::new(TokenStore::open(folder.join("tokens.jsonl")));
    let (_, secret) =
        tokens.create("example", PermissionScope::Admin, Clock::System.timestamp())?;
    let often = WebClientRateLimit {
        burst: 1_000_000,
        per_second: 1_000_000.0,
    };
    let web = WebState::new(WebOptions {
        deeds: Arc::new(Doer::new(store.clone(), || Clock::System.timestamp())),
        store,
        tokens,
        redactor: Arc::new(Redactor::new([])),
        clock: Clock::System,
        listen: address,
        hosts: Vec::new(),
        // Client tests send many requests, including invalid ones on purpose.
        rates: WebRequestRateLimits {
            here: often,
            elsewhere: often,
            wrong: often,
        },
        version: env!("CARGO_PKG_VERSION").into(),
    });
    fs::write(folder.join("token"), secret)?;
    fs::write(folder.join("port"), address.port().to_string())?;
    writeln!(
        std::io::stdout(),
        "{}",
        web.create_login_link(PermissionScope::Admin)?
    )?;
    let service = router(web)
        .layer(axum::Extension(unstuck_network::PeerOwner::SameUser))
        .into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).await?;
    Ok(())
}

/// Writes a short history, once.
async fn fill(store: &Store) -> Result<(), Box<dyn Error>> {
    if !store.runs(&RunFilter::default()).await?.is_empty() {
        return Ok(());
    }
    let (one, two, three) = (samples::run(1), samples::run(2), samples::run(3));
    samples::write(store, &one, samples::recovered(&one, "/home/me/shop")).await;
    samples::write(store, &two, samples::asking(&two, "/home/me/shop")).await;
    samples::write(store, &three, samples::running(&three, "/home/me/blog")).await;
    Ok(())
}
