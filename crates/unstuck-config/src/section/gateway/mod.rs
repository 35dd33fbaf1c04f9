//! `[gateway]`: the gateway between agents and their LLM APIs.

mod timeouts_and_loop_limits;
mod upstream;

use std::net::{Ipv4Addr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{number, size};

pub use timeouts_and_loop_limits::{GatewayLoopLimits, GatewayTimeouts};
pub use upstream::{GatewayUpstreamSection, GatewayUpstreams, MissingUpstreamFeature};

/// `[gateway]`: the gateway between agents and their LLM APIs.
///
/// In a project's file only `on_loop` and `budgets`, where they are stricter than the user's, and `timeouts` apply.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct GatewaySection {
    /// If true, `exec` and `run` start a gateway for their agents; true by default.
    pub enabled: bool,
    /// Listen address of `unstuck serve`; `127.0.0.1:4141` by default.
    #[serde(deserialize_with = "address")]
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// Action for an agent that is stuck in a loop; `warn` by default.
    #[serde(rename = "on_loop")]
    pub on_loop: OnLoop,
    /// Streaming mode; `direct` by default.
    pub stream: StreamForwardingMode,
    /// If true, unusable output is requested again with a note about the error; false by default.
    pub retry_bad_output: bool,
    /// If true, a request refused by a safety policy may be sent to another upstream; false by default.
    pub route_around_refusals: bool,
    /// Maximum request size; `64MiB` by default.
    #[serde(deserialize_with = "size::read")]
    #[schemars(schema_with = "size::schema")]
    pub max_request: u64,
    /// Timeouts.
    pub timeouts: GatewayTimeouts,
    /// Spending limits.
    pub budgets: GatewayBudgetsSection,
    /// Limits of loop detection.
    #[serde(rename = "loop_detection")]
    pub watch: GatewayLoopLimits,
    /// Upstreams by protocol; the providers themselves by default. Only allowed in the user's own configuration.
    pub upstreams: GatewayUpstreams,
}

impl GatewaySection {
    /// The default listen address of `unstuck serve`.
    pub const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 4141);
}

impl Default for GatewaySection {
    fn default() -> Self {
        Self {
            enabled: true,
            listen: Self::LISTEN,
            on_loop: OnLoop::default(),
            stream: StreamForwardingMode::default(),
            retry_bad_output: false,
            route_around_refusals: false,
            max_request: 64 << 20,
            timeouts: GatewayTimeouts::default(),
            budgets: GatewayBudgetsSection::default(),
            watch: GatewayLoopLimits::default(),
            upstreams: GatewayUpstreams::default(),
        }
    }
}

/// The action for an agent that is stuck in a loop, mildest first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OnLoop {
    /// Report the loop to the supervisor of the agent.
    #[default]
    Warn,
    /// Add a short note for the model to the next request.
    Note,
    /// Block the next requests until a human approves them.
    Hold,
    /// Reject all further requests of the session.
    Stop,
}

/// The streaming mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamForwardingMode {
    /// Forward chunks as they arrive; a stream that breaks after its first content ends with an error.
    #[default]
    Direct,
    /// Forward the response once it is complete; a broken stream is retried transparently, and nothing is visible
    /// before the end.
    Buffered,
}

/// `[gateway.budgets]`: spending limits; unlimited if unset.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct GatewayBudgetsSection {
    /// Limit for one session, in USD.
    #[serde(rename = "per_session", deserialize_with = "number::amount")]
    #[schemars(range(min = 0))]
    pub session: Option<f64>,
    /// Limit for all sessions of one day (UTC), in USD.
    #[serde(rename = "per_day", deserialize_with = "number::amount")]
    #[schemars(range(min = 0))]
    pub day: Option<f64>,
    /// Action when a limit is reached; `ask` by default.
    pub on_reached: OnBudgetReached,
}

/// The action when a budget is exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnBudgetReached {
    /// Ask a human; approval grants the same amount again.
    #[default]
    Ask,
    /// Stop the run.
    Stop,
}

fn address<'de, D: serde::Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(|_| {
        let expected = "an address with a port, like \"127.0.0.1:4141\"";
        serde::de::Error::invalid_value(serde::de::Unexpected::Str(&text), &expected)
    })
}
