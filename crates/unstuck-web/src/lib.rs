//! The REST API, the event stream and the dashboard, based on the store that `exec` and `run` write to.
//!
//! [`router`] builds everything from a [`WebState`]: a store, the [commands](commands::Deeds) and the
//! [tokens](auth::TokenStore). The listener passes the address of each client as axum's `ConnectInfo`, and the owner of
//! its connection as an extension (`PeerOwner` of `unstuck-network`); without them a client is treated as remote and
//! needs a token even to read.
//!
//! ```no_run
//! use std::net::SocketAddr;
//! use std::sync::Arc;
//! use unstuck_core::redact::Redactor;
//! use unstuck_run::clock::Clock;
//! use unstuck_store::{Store, StoreLocation, StoreOptions};
//! use unstuck_web::auth::{WebRequestRateLimits, PermissionScope, TokenStore};
//! use unstuck_web::commands::Deeds;
//! use unstuck_web::{WebState, WebOptions, router};
//!
//! async fn serve(deeds: Arc<dyn Deeds>) -> Result<(), Box<dyn std::error::Error>> {
//!     let store = Store::open(&StoreLocation::file("unstuck.db"), StoreOptions::default()).await?;
//!     let listener = tokio::net::TcpListener::bind("127.0.0.1:4141").await?;
//!     let web = WebState::new(WebOptions {
//!         store,
//!         deeds,
//!         tokens: Arc::new(TokenStore::open("tokens.jsonl")),
//!         redactor: Arc::new(Redactor::new([])),
//!         clock: Clock::System,
//!         listen: listener.local_addr()?,
//!         hosts: Vec::new(),
//!         rates: WebRequestRateLimits::default(),
//!         version: "0.1.0".into(),
//!     });
//!     println!("the dashboard: {}", web.create_login_link(PermissionScope::Admin)?);
//!     let service = router(web).into_make_service_with_connect_info::<SocketAddr>();
//!     axum::serve(listener, service).await?;
//!     Ok(())
//! }
//! ```

mod api;
pub mod auth;
mod auth_middleware;
mod camel_case;
pub mod commands;
mod event_json_cache;
pub mod model;
mod pages;
pub mod queries;
mod response_redaction;
mod server_state;
mod session_states;

pub use api::{openapi, router};
pub use server_state::{WebOptions, WebState, login_link};
