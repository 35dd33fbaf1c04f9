//! A proxy in front of LLM APIs that recovers failed calls, for any agent, without changing it.
//!
//! [`Gateway`] listens on this machine and forwards calls to upstreams. [`unstuck_core`] diagnoses failures and decides
//! on the recovery; a [`GatewayRecorder`] stores the events, which the session's supervisor receives too. [`protocol`] reads
//! and writes the formats of the APIs, [`loop_detection`] detects looping agents: both are pure.
//!
//! ```
//! use std::sync::Arc;
//! use unstuck_gateway::protocol::Protocol;
//! use unstuck_gateway::{BuiltInKnowledge, NullRecorder, Gateway, GatewaySettings, Upstream};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), unstuck_gateway::GatewayError> {
//! let upstream = Upstream::new("ours", Protocol::Anthropic, "https://llm.example")?;
//! let spare = Upstream::for_provider(Protocol::Anthropic);
//! let settings = GatewaySettings::new(vec![upstream, spare]);
//! let gateway = Gateway::start(settings, Arc::new(BuiltInKnowledge::default()), Arc::new(NullRecorder)).await?;
//! let url = gateway.base_url(Protocol::Anthropic, Some("my-session"));
//! assert!(url.starts_with("http://127.0.0.1:") && url.ends_with("/s/my-session/anthropic"));
//! gateway.stop().await;
//! # Ok(())
//! # }
//! ```

mod admission_queue;
mod call;
mod call_waits;
mod client_response_body;
mod coalescing_waker;
mod connectivity;
mod error;
mod gateway;
mod id_generation;
pub mod loop_detection;
mod non_llm_request_handler;
pub mod protocol;
mod recorder;
mod run_budget;
mod server;
mod session;
mod settings;
mod shutdown_cutoff;
mod spending;
mod state;
mod store_recorder;
mod system_clock;
mod upstream;
mod upstream_health;
mod usage;

pub use error::GatewayError;
pub use gateway::{Gateway, GatewayHandle};
pub use non_llm_request_handler::{
    BodyError, ConnectionPeer, NonLlmHandlerBody, NonLlmRequestHandler, NonLlmResponseFuture,
};
pub use recorder::{
    GatewayRecorder, GatewaySessionEvent, GatewaySessionEventKind, NullRecorder,
    RecorderLookupFuture,
};
pub use run_budget::RemainingRunBudget;
pub use session::{GatewaySession, GatewaySessionSetup};
pub use settings::{
    GatewayBudgetSettings, GatewaySettings, GatewayTimeLimits, LoopHandling, OnLoop,
    ProxyAndCertificateSettings, Secret, StreamMode, Upstream, UpstreamUnsupportedFeatures,
};
pub use state::{BuiltInKnowledge, GatewayKnowledgeProvider};
pub use store_recorder::{NotificationBuilderFn, StoreRecorder, StoreRecorderOptions};
pub use usage::CallUsage;
