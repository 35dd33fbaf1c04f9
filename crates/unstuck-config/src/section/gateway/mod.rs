//! `[gateway]`: what stands between agents and their LLM APIs.

mod limits;
mod upstream;

use std::net::{Ipv4Addr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{number, size};

pub use limits::{GatewayTimeouts, GatewayWatch};
pub use upstream::{GatewayUpstream, GatewayUpstreams, MissingCapability};

/// `[gateway]`: what stands between agents and their LLM APIs.
///
/// Of the project's file only `on_loop` and `budgets` count, where they are stricter than the user's, and `timeouts`.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct GatewaySection {
    /// Whether `exec` and `run` start one for their agents; true by default.
    pub enabled: bool,
    /// Where `unstuck serve` listens; `127.0.0.1:4141` by default.
    #[serde(deserialize_with = "address")]
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// What is done about an agent that is stuck in a loop; `warn` by default.
    #[serde(rename = "on_loop")]
    pub on_loop: OnLoop,
    /// When what comes of a stream is passed on; `direct` by default.
    pub stream: StreamMode,
    /// Whether output that cannot be used is asked for again, with what was wrong about it; false by default.
    pub retry_bad_output: bool,
    /// Whether a refusal by a safety policy may be tried at another upstream; false by default.
    pub route_around_refusals: bool,
    /// The longest request that is taken; `64MiB` by default.
    #[serde(deserialize_with = "size::read")]
    #[schemars(schema_with = "size::schema")]
    pub max_request: u64,
    /// How long is waited for what.
    pub timeouts: GatewayTimeouts,
    /// What may be spent.
    pub budgets: GatewayBudgets,
    /// Limits from which an agent counts as stuck in a loop.
    #[serde(rename = "loop_detection")]
    pub watch: GatewayWatch,
    /// Whom it asks, by protocol; the providers themselves where nothing is said. Only the user's own configuration
    /// can say so.
    pub upstreams: GatewayUpstreams,
}

impl GatewaySection {
    /// Where `unstuck serve` listens unless something else is said.
    pub const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 4141);
}

impl Default for GatewaySection {
    fn default() -> Self {
        Self {
            enabled: true,
            listen: Self::LISTEN,
            on_loop: OnLoop::default(),
            stream: StreamMode::default(),
            retry_bad_output: false,
            route_around_refusals: false,
            max_request: 64 << 20,
            timeouts: GatewayTimeouts::default(),
            budgets: GatewayBudgets::default(),
            watch: GatewayWatch::default(),
            upstreams: GatewayUpstreams::default(),
        }
    }
}

/// What is done about an agent that is stuck in a loop, the mildest first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OnLoop {
    /// It is told to whoever supervises the agent.
    #[default]
    Warn,
    /// A short note to the model is put into the next request.
    Note,
    /// The next requests are refused until a person lets them through.
    Hold,
    /// All further requests of the session are refused.
    Stop,
}

/// When what comes of a stream is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamMode {
    /// As it comes; an answer that breaks after its first words ends with an error.
    #[default]
    Direct,
    /// When all of it is here; an answer that breaks is tried again unseen, and nothing is seen of it before its end.
    Buffered,
}

/// `[gateway.budgets]`: what may be spent; no limit where left out.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct GatewayBudgets {
    /// By one session, in USD.
    #[serde(rename = "per_session", deserialize_with = "number::amount")]
    #[schemars(range(min = 0))]
    pub session: Option<f64>,
    /// By all sessions of one day (UTC), in USD.
    #[serde(rename = "per_day", deserialize_with = "number::amount")]
    #[schemars(range(min = 0))]
    pub day: Option<f64>,
    /// What is done when one is used up; `ask` by default.
    pub on_reached: OnReached,
}

/// What is done when a budget is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnReached {
    /// A person is asked; when they let it go on, the same may be spent again.
    #[default]
    Ask,
    /// The run ends.
    Stop,
}

fn address<'de, D: serde::Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map_err(|_| {
        let expected = "an address with a port, like \"127.0.0.1:4141\"";
        serde::de::Error::invalid_value(serde::de::Unexpected::Str(&text), &expected)
    })
}
