//! The settings of a gateway.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use unstuck_core::RetryPolicy;
use unstuck_core::admission::ApiAdmissionSettings;
use unstuck_core::agent::ClientRetryBehavior;
use unstuck_network::NetworkProbe;

use crate::error::GatewayError;
use crate::loop_detection::LoopDetectionLimits;
use crate::non_llm_request_handler::NonLlmRequestHandler;
use crate::protocol::Protocol;

/// The settings of a gateway.
#[derive(Debug, Clone)]
pub struct GatewaySettings {
    /// The listening address; port 0 picks a free one.
    pub listen: SocketAddr,
    /// The token that every request must carry; required if other machines can reach the address.
    pub token: Option<Secret>,
    /// If set, only the agents of one run may use the gateway: connections of unknown owner must name an existing
    /// session.
    pub is_private: bool,
    /// The upstreams; the first that can serve a request is used, the others are its fallbacks.
    pub upstreams: Vec<Upstream>,
    /// The network settings for upstream connections.
    pub network: ProxyAndCertificateSettings,
    /// The probe that detects a missing network.
    pub network_probe: NetworkProbe,
    /// The retry policy of sessions without their own.
    pub policy: RetryPolicy,
    /// The time limits.
    pub limits: GatewayTimeLimits,
    /// The assumed retry policy of unknown clients.
    pub client_retries: ClientRetryBehavior,
    /// The interval for probing an upstream that is down, on behalf of all waiting calls, once their clients would have
    /// given up.
    pub probe_every: Duration,
    /// The admission settings for sharing an upstream.
    pub lanes: ApiAdmissionSettings,
    /// The maximum request size, in bytes.
    pub max_request: usize,
    /// If set, a refusal by a safety policy may be retried at another upstream.
    pub route_around_refusals: bool,
    /// The time at which streamed data is passed on.
    pub stream: StreamMode,
    /// If set, unusable output is requested again with the validation error.
    pub retry_bad_output: bool,
    /// The loop limits and the action for a looping agent.
    pub loop_rules: LoopHandling,
    /// The budgets.
    pub budgets: GatewayBudgetSettings,
    /// The handler for requests that are not meant for LLM APIs; without it they get an error.
    pub fallback: Option<Arc<dyn NonLlmRequestHandler>>,
}

impl GatewaySettings {
    /// Returns the settings of a gateway on a free port of this machine, in front of these upstreams.
    pub fn new(upstreams: Vec<Upstream>) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            token: None,
            is_private: false,
            upstreams,
            network: ProxyAndCertificateSettings::default(),
            network_probe: NetworkProbe::System { has_proxy: false },
            policy: RetryPolicy::default(),
            limits: GatewayTimeLimits::default(),
            client_retries: ClientRetryBehavior::default(),
            probe_every: Duration::from_secs(60),
            lanes: ApiAdmissionSettings::default(),
            max_request: 64 << 20,
            route_around_refusals: false,
            stream: StreamMode::default(),
            retry_bad_output: false,
            loop_rules: LoopHandling::default(),
            budgets: GatewayBudgetSettings::default(),
            fallback: None,
        }
    }
}

/// Keeps client keys from upstreams that they are not meant for.
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

/// Network settings for upstream connections; empty fields use the defaults of this machine.
#[derive(Clone, Default)]
pub struct ProxyAndCertificateSettings {
    /// The proxy for http:// URLs.
    pub http_proxy: Option<String>,
    /// The proxy for https:// URLs.
    pub https_proxy: Option<String>,
    /// The names and addresses reached without a proxy, separated by commas.
    pub no_proxy: String,
    /// Files and directories of CA certificates that replace those of this machine.
    pub authorities: Vec<PathBuf>,
    /// Files of additional CA certificates.
    pub extra_authorities: Vec<PathBuf>,
}

impl fmt::Debug for ProxyAndCertificateSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Proxy URLs may contain passwords.
        f.debug_struct("Network")
            .field("no_proxy", &self.no_proxy)
            .field("authorities", &self.authorities)
            .field("more_authorities", &self.extra_authorities)
            .finish_non_exhaustive()
    }
}

/// An upstream: an LLM API that the gateway calls.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// The name.
    pub name: String,
    /// The protocol.
    pub protocol: Protocol,
    /// The base URL, in place of the one that a client would be configured with.
    pub base: Uri,
    /// The key that replaces the client's.
    pub key: Option<Secret>,
    /// If set, the client's own key is forwarded where there is no other. A gateway clears this for all but the first
    /// upstream of a protocol and those at the same address: a client's key is meant for the API that the client would
    /// use.
    pub takes_client_key: bool,
    /// The model names: the client's name and the upstream's.
    pub models: BTreeMap<String, String>,
    /// The missing capabilities.
    pub missing: UpstreamUnsupportedFeatures,
    /// The context size in tokens, if smaller than the model's.
    pub context: Option<u64>,
    /// The stream mode, if it differs from [`GatewaySettings::stream`].
    pub stream: Option<StreamMode>,
    /// If set, the upstream is on this machine or in the same private network, where models may be slow.
    pub is_nearby: bool,
}

/// The time at which streamed data is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamMode {
    /// Immediately: a stream that breaks after content ends with an error.
    #[default]
    Direct,
    /// When the stream is complete: a broken stream is retried, and the client gets only keep-alive bytes meanwhile.
    Buffered,
}

impl Upstream {
    /// Returns an upstream at a URL.
    pub fn new(name: &str, protocol: Protocol, url: &str) -> Result<Self, GatewayError> {
        // The part before an `@` is a secret.
        let shown = url.rsplit('@').next().unwrap_or_default().to_owned();
        let wrong = |why| GatewayError::Upstream {
            url: shown.clone(),
            why,
        };
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        if !matches!(scheme, "http" | "https") {
            return Err(wrong("must start with http:// or https://"));
        }
        if rest.trim_end_matches('/').is_empty() {
            return Err(wrong("has no host"));
        }
        let base: Uri = url
            .trim_end_matches('/')
            .parse()
            .map_err(|_| wrong("cannot be parsed"))?;
        if base
            .authority()
            .is_some_and(|one| one.as_str().contains('@'))
        {
            return Err(wrong(
                "must not contain credentials; set `key_env` in [gateway.upstreams] to the variable that holds the key",
            ));
        }
        if base.host().is_none_or(str::is_empty) {
            return Err(wrong("has no host"));
        }
        if base.query().is_some() {
            return Err(wrong("must not contain a query"));
        }
        let is_nearby = base.host().is_some_and(is_nearby);
        Ok(Self {
            name: name.to_owned(),
            protocol,
            base,
            key: None,
            takes_client_key: true,
            models: BTreeMap::new(),
            missing: UpstreamUnsupportedFeatures::default(),
            context: None,
            stream: None,
            is_nearby,
        })
    }

    /// Returns an upstream at the provider's own address.
    pub fn for_provider(protocol: Protocol) -> Self {
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
            missing: UpstreamUnsupportedFeatures::default(),
            context: None,
            stream: None,
            is_nearby: false,
        }
    }

    /// Returns true if both have the same scheme, host and port.
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

    /// Returns the upstream's name of a model.
    pub(crate) fn model<'a>(&'a self, asked: &'a str) -> &'a str {
        self.models.get(asked).map_or(asked, String::as_str)
    }
}

/// Returns true if a host is this machine or in a private network.
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

/// The request features that an upstream does not support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UpstreamUnsupportedFeatures {
    /// No tool calls.
    pub tools: bool,
    /// No image input.
    pub vision: bool,
    /// No continuation of a prefilled response.
    pub prefill: bool,
}

/// The time limits of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatewayTimeLimits {
    /// The limit for connecting.
    pub connect: Duration,
    /// The limit for the head of a streamed response.
    pub response: Duration,
    /// The maximum for a complete response that is not streamed; see `call/response_timeout.rs`.
    pub whole: Duration,
    /// The limit for the first content of a stream after its head; pings are ignored.
    pub first_content: Duration,
    /// The limit for the next piece of a stream; pings are ignored.
    pub stall: Duration,
    /// The longest hold of a client that states no limit, including all attempts and waits.
    pub hold: Duration,
    /// The delay before a held client gets keep-alive bytes, if its parser accepts them.
    pub keep_alive: Duration,
    /// The longest stated wait that is waited out before a fallback is used.
    pub fallback_after: Duration,
    /// The time after which a silent upstream is left for its fallback. Long prompts get more, and so does a model that
    /// was asked to think.
    pub fallback_silence: Duration,
    /// The limit for receiving the request.
    pub request: Duration,
}

impl Default for GatewayTimeLimits {
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

/// The handling of a looping agent: detection limits, action and longest hold.
#[derive(Debug, Clone)]
pub struct LoopHandling {
    /// The detection limits.
    pub limits: LoopDetectionLimits,
    /// The action.
    pub action: OnLoop,
    /// The longest hold of a conversation without an answer; then it continues.
    pub hold: Duration,
}

impl Default for LoopHandling {
    fn default() -> Self {
        Self {
            limits: LoopDetectionLimits::default(),
            action: OnLoop::default(),
            hold: Duration::from_secs(600),
        }
    }
}

/// The action for a looping agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLoop {
    /// Reports the loop to the agent's supervisor, and nothing else.
    #[default]
    Warn,
    /// Adds a short note for the model to the next request.
    Note,
    /// Holds a conversation that repeats the same call with the same result until a human releases it or the deadline
    /// passes.
    Hold,
    /// Rejects all further requests of the session.
    Stop,
}

/// The budgets in USD; `None` means unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GatewayBudgetSettings {
    /// The budget of one session.
    pub session: Option<f64>,
    /// The budget of all sessions of one day (UTC).
    pub day: Option<f64>,
    /// If set, a spent session budget creates an escalation.
    pub escalates: bool,
}

/// A secret, such as an API key, whose text is never displayed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text itself.
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
    fn client_key_is_limited_to_the_first_upstream_and_its_address() {
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
    fn local_and_private_hosts_are_nearby() {
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
