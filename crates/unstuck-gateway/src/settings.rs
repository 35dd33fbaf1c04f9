//! What a gateway is told before it starts.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use unstuck_core::RetryPolicy;
use unstuck_core::admission::AdmissionSettings;
use unstuck_core::agent::ClientRetries;
use unstuck_network::NetworkProbe;

use crate::error::GatewayError;
use crate::fallback::FallbackHandler;
use crate::loop_detection::WatchLimits;
use crate::protocol::Protocol;

/// What a gateway is told before it starts.
#[derive(Debug, Clone)]
pub struct GatewaySettings {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// What every request must bring along; needed where others than this machine can reach it.
    pub token: Option<Secret>,
    /// Whether only the agents of one run are to use it: where the owner of a connection cannot be known, it must then name a
    /// session that there is.
    pub is_private: bool,
    /// Whom it asks; of one protocol the first that can serve a request counts, the others stand in for it.
    pub upstreams: Vec<Upstream>,
    /// How it gets there.
    pub network: NetworkSettings,
    /// Tells whether this machine has a network at all.
    pub network_probe: NetworkProbe,
    /// How far it goes for a session that has no policy of its own.
    pub policy: RetryPolicy,
    /// How long it waits for what.
    pub limits: TimeLimits,
    /// How clients try by themselves of which nothing is known.
    pub client_retries: ClientRetries,
    /// How often an upstream that is down is asked on behalf of all who wait for it, once their clients would have given up.
    pub probe_every: Duration,
    /// How the sessions share an upstream.
    pub lanes: AdmissionSettings,
    /// The longest request that is taken, in bytes.
    pub max_request: usize,
    /// Whether a refusal by a safety policy may be tried at another upstream.
    pub route_around_refusals: bool,
    /// When what comes of a stream is passed on.
    pub stream: StreamMode,
    /// Whether output that cannot be used is asked for again, with what was wrong about it.
    pub retry_bad_output: bool,
    /// From which point on an agent goes in circles, and what is done about it.
    pub loop_rules: LoopRules,
    /// What may be spent.
    pub budgets: Budgets,
    /// Who answers what is not meant for LLM APIs; where it is nobody, the gateway says so.
    pub fallback: Option<Arc<dyn FallbackHandler>>,
}

impl GatewaySettings {
    /// A gateway on a free port of this machine, in front of these upstreams.
    pub fn new(upstreams: Vec<Upstream>) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            token: None,
            is_private: false,
            upstreams,
            network: NetworkSettings::default(),
            network_probe: NetworkProbe::System { has_proxy: false },
            policy: RetryPolicy::default(),
            limits: TimeLimits::default(),
            client_retries: ClientRetries::default(),
            probe_every: Duration::from_secs(60),
            lanes: AdmissionSettings::default(),
            max_request: 64 << 20,
            route_around_refusals: false,
            stream: StreamMode::default(),
            retry_bad_output: false,
            loop_rules: LoopRules::default(),
            budgets: Budgets::default(),
            fallback: None,
        }
    }
}

/// Keeps the keys of clients from upstreams that they are not meant for.
pub(crate) fn restrict_client_keys(upstreams: &mut [Upstream]) {
    for at in 0..upstreams.len() {
        let (before, rest) = upstreams.split_at_mut(at);
        let Some(one) = rest.first_mut() else {
            continue;
        };
        let first = before.iter().find(|first| first.protocol == one.protocol);
        one.takes_client_key &= first.is_none_or(|first| one.is_at_same_address(first));
    }
}

/// How the gateway gets to its upstreams; what is empty here is as this machine has it.
#[derive(Clone, Default)]
pub struct NetworkSettings {
    /// The proxy for addresses that begin with http://.
    pub http_proxy: Option<String>,
    /// The proxy for addresses that begin with https://.
    pub https_proxy: Option<String>,
    /// What is reached without a proxy: names and addresses, with commas between them.
    pub no_proxy: String,
    /// Files and folders of certificates that are believed in the place of this machine's own.
    pub authorities: Vec<PathBuf>,
    /// Files of certificates that are believed as well.
    pub extra_authorities: Vec<PathBuf>,
}

impl fmt::Debug for NetworkSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Addresses of proxies may hold passwords.
        f.debug_struct("Network")
            .field("no_proxy", &self.no_proxy)
            .field("authorities", &self.authorities)
            .field("more_authorities", &self.extra_authorities)
            .finish_non_exhaustive()
    }
}

/// Whom the gateway asks.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// What it is called.
    pub name: String,
    /// What it speaks.
    pub protocol: Protocol,
    /// What takes the place of the base URL that a client would be given.
    pub base: Uri,
    /// The key that is used instead of the client's.
    pub key: Option<Secret>,
    /// Whether the client's own key is passed on where there is no other. A gateway takes this back for all but the first
    /// upstream of a protocol and those at the same address: a client's key is for whom the client would ask.
    pub takes_client_key: bool,
    /// What models are called there: the client's name and its own.
    pub models: BTreeMap<String, String>,
    /// What it cannot do.
    pub missing: MissingCapabilities,
    /// How many tokens fit into its context, where that is less than what the model has.
    pub context: Option<u64>,
    /// When what comes of its streams is passed on, where that differs from [`GatewaySettings::stream`].
    pub stream: Option<StreamMode>,
    /// Whether it is on this machine or in the same private network, where models may be slow.
    pub is_nearby: bool,
}

/// When what comes of a stream is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamMode {
    /// As it comes: what breaks after content ends with an error.
    #[default]
    Direct,
    /// When all of it is here: whatever breaks is tried again, and the client waits with signs of life only.
    Buffered,
}

impl Upstream {
    /// An upstream at an address.
    pub fn new(name: &str, protocol: Protocol, url: &str) -> Result<Self, GatewayError> {
        // What stands before an `@` is a secret.
        let shown = url.rsplit('@').next().unwrap_or_default().to_owned();
        let wrong = |why| GatewayError::Upstream {
            url: shown.clone(),
            why,
        };
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        if !matches!(scheme, "http" | "https") {
            return Err(wrong("it must begin with http:// or https://"));
        }
        if rest.trim_end_matches('/').is_empty() {
            return Err(wrong("it names no host"));
        }
        let base: Uri = url
            .trim_end_matches('/')
            .parse()
            .map_err(|_| wrong("it is no URL"))?;
        if base
            .authority()
            .is_some_and(|one| one.as_str().contains('@'))
        {
            return Err(wrong(
                "it must hold no name and no password; `key_env` in [gateway.upstreams] names the variable with a key",
            ));
        }
        if base.host().is_none_or(str::is_empty) {
            return Err(wrong("it names no host"));
        }
        if base.query().is_some() {
            return Err(wrong("it must not have a query"));
        }
        let is_nearby = base.host().is_some_and(is_nearby);
        Ok(Self {
            name: name.to_owned(),
            protocol,
            base,
            key: None,
            takes_client_key: true,
            models: BTreeMap::new(),
            missing: MissingCapabilities::default(),
            context: None,
            stream: None,
            is_nearby,
        })
    }

    /// The provider's own address.
    pub fn of_provider(protocol: Protocol) -> Self {
        let base = Uri::from_static(match protocol {
            Protocol::Anthropic => "https://api.anthropic.com",
            Protocol::OpenAi => "https://api.openai.com/v1",
            Protocol::Gemini => "https://generativelanguage.googleapis.com",
        });
        Self {
            name: protocol.name().to_owned(),
            protocol,
            base,
            key: None,
            takes_client_key: true,
            models: BTreeMap::new(),
            missing: MissingCapabilities::default(),
            context: None,
            stream: None,
            is_nearby: false,
        }
    }

    /// Whether both are at the same host and port, and asked in the same way.
    fn is_at_same_address(&self, other: &Self) -> bool {
        let address = |one: &Self| {
            let host = one.base.host().unwrap_or_default().to_ascii_lowercase();
            let usual = if one.base.scheme_str() == Some("http") {
                80
            } else {
                443
            };
            (host, one.base.port_u16().unwrap_or(usual))
        };
        self.base.scheme() == other.base.scheme() && address(self) == address(other)
    }

    /// What a model is called there.
    pub(crate) fn model<'a>(&'a self, asked: &'a str) -> &'a str {
        self.models.get(asked).map_or(asked, String::as_str)
    }
}

/// Whether a host is this machine, or one of a private network.
fn is_nearby(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.parse() {
        Ok(IpAddr::V4(address)) => {
            address.is_loopback()
                || address.is_private()
                || address.is_link_local()
                || address.is_unspecified()
        }
        Ok(IpAddr::V6(address)) => {
            address.is_loopback()
                || address.is_unique_local()
                || address.is_unicast_link_local()
                || address.is_unspecified()
        }
        Err(_) => {
            let host = host.trim_end_matches('.').to_ascii_lowercase();
            let ends = [".local", ".localhost", ".internal", ".lan", ".home.arpa"];
            !host.contains('.') || ends.iter().any(|end| host.ends_with(end))
        }
    }
}

/// What an upstream cannot do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MissingCapabilities {
    /// It calls no tools.
    pub tools: bool,
    /// It sees no images.
    pub vision: bool,
    /// It does not go on with an answer that was begun for it.
    pub prefill: bool,
}

/// How long the gateway waits for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLimits {
    /// For a connection.
    pub connect: Duration,
    /// For the head of an answer that comes in pieces.
    pub response: Duration,
    /// For a whole answer that does not come in pieces, at most; see `call/silence.rs`.
    pub whole: Duration,
    /// For the first content of a stream, from its head on; pings do not count.
    pub first_content: Duration,
    /// For the next piece of a stream; pings do not count.
    pub stall: Duration,
    /// How long a client is held at most, all tries and waits included, where it does not say how long it waits.
    pub hold: Duration,
    /// After what time a held client is sent signs of life, where its parser allows them.
    pub keep_alive: Duration,
    /// A fallback is not kept for later if the wait that was stated is longer than this.
    pub fallback_after: Duration,
    /// A silent upstream is left for the next one after this time, where there is one. Long prompts get more, and so does a
    /// model that was asked to think.
    pub fallback_silence: Duration,
    /// For the request itself to arrive.
    pub request: Duration,
}

impl Default for TimeLimits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connect: seconds(10),
            response: seconds(120),
            whole: seconds(600),
            first_content: seconds(120),
            stall: seconds(90),
            hold: seconds(580),
            keep_alive: seconds(15),
            fallback_after: seconds(5),
            fallback_silence: seconds(10),
            request: seconds(60),
        }
    }
}

/// What is done about an agent that goes in circles.
#[derive(Debug, Clone)]
pub struct LoopRules {
    /// From which point on.
    pub limits: WatchLimits,
    /// What is done then.
    pub action: OnLoop,
    /// How long a conversation is held at most while nobody answers; then it goes on.
    pub hold: Duration,
}

impl Default for LoopRules {
    fn default() -> Self {
        Self {
            limits: WatchLimits::default(),
            action: OnLoop::default(),
            hold: Duration::from_secs(600),
        }
    }
}

/// What is done about an agent that goes in circles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLoop {
    /// It is told to whoever supervises the agent, and nothing else.
    #[default]
    Warn,
    /// A short note to the model is put into the next request.
    Note,
    /// A conversation that repeats the same call with the same result is held until a person lets it go on, or nobody answers
    /// in time.
    Hold,
    /// All further requests of the session are refused.
    Stop,
}

/// What may be spent, in USD; none where that does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Budgets {
    /// By one session.
    pub session: Option<f64>,
    /// By all sessions of one day (UTC).
    pub day: Option<f64>,
    /// Whether a person is asked when a session has used its own up.
    pub escalates: bool,
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one who needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L3: by address, whatever the names are.
    #[test]
    fn a_clients_key_is_for_the_first_upstream_and_its_address_only() {
        let one = |protocol, url: &str| Upstream::new("same", protocol, url).unwrap();
        let mut upstreams = [
            one(Protocol::Anthropic, "https://api.anthropic.com"),
            one(Protocol::OpenAi, "https://api.openai.com/v1"),
            one(Protocol::Anthropic, "https://API.anthropic.com:443/other"),
            one(Protocol::Anthropic, "http://api.anthropic.com"),
            one(
                Protocol::Anthropic,
                "https://api.anthropic.com.evil.example",
            ),
            one(Protocol::OpenAi, "https://openrouter.ai/api/v1"),
            one(Protocol::OpenAi, "https://api.openai.com:8443/v1"),
        ];
        restrict_client_keys(&mut upstreams);
        let takes = upstreams.map(|one| one.takes_client_key);
        assert_eq!(takes, [true, true, true, false, false, false, false]);
    }

    #[test]
    fn hosts_of_this_machine_and_of_private_networks_are_nearby() {
        for host in [
            "localhost",
            "127.0.0.1",
            "[::1]",
            "192.168.1.7",
            "[fd00::1]",
            "ollama",
            "gpu.local",
            "llm.corp.internal",
        ] {
            assert!(is_nearby(host), "{host}");
        }
        for host in [
            "api.anthropic.com",
            "8.8.8.8",
            "[2606:4700::1]",
            "local.example",
        ] {
            assert!(!is_nearby(host), "{host}");
        }
    }
}
