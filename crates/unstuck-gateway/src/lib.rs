//! A proxy in front of LLM APIs in which every call recovers, for any agent, without changing it.
//!
//! [`Gateway`] listens on this machine and passes calls on to upstreams. What fails is diagnosed and decided upon by
//! [`unstuck_core`]; what happens is written down by a [`Ledger`] and told to whoever supervises the session.
//! [`protocol`] reads and writes what the APIs say, [`watch`] sees an agent go in circles: both are pure.
//!
//! ```
//! use std::sync::Arc;
//! use unstuck_gateway::protocol::Protocol;
//! use unstuck_gateway::{BuiltIn, Forgetful, Gateway, Settings, Upstream};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), unstuck_gateway::GatewayError> {
//! let upstream = Upstream::new("ours", Protocol::Anthropic, "https://llm.example")?;
//! let spare = Upstream::of_provider(Protocol::Anthropic);
//! let settings = Settings::new(vec![upstream, spare]);
//! let gateway = Gateway::start(settings, Arc::new(BuiltIn::default()), Arc::new(Forgetful)).await?;
//! let url = gateway.base_url(Protocol::Anthropic, Some("my-session"));
//! assert!(url.starts_with("http://127.0.0.1:") && url.ends_with("/s/my-session/anthropic"));
//! gateway.stop().await;
//! # Ok(())
//! # }
//! ```

mod answer;
mod books;
mod call;
mod clock;
mod counted;
mod elsewhere;
mod ending;
mod error;
mod gateway;
mod health;
mod identity;
mod lanes;
mod ledger;
mod offline;
pub mod protocol;
mod quiet;
mod run_purse;
mod server;
mod session;
mod settings;
mod shared;
mod spending;
mod upstream;
pub mod watch;

pub use books::{Announce, BooksOptions, StoreLedger};
pub use counted::Counted;
pub use elsewhere::{Answering, Elsewhere, Page, PageError, Peer};
pub use error::GatewayError;
pub use gateway::{Gateway, Handle};
pub use ledger::{Forgetful, Ledger, Lookup, Notice, Noticed};
pub use run_purse::RunPurse;
pub use session::{Session, SessionSetup};
pub use settings::{
    Budgets, Lacks, Network, OnCircles, Secret, Settings, StreamMode, TimeLimits, Upstream,
    WatchRules,
};
pub use shared::{BuiltIn, Knows};
