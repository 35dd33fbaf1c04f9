//! Upstreams of a gateway: from a flag, the user's environment, the configuration, or the defaults.

use std::collections::BTreeMap;

use anyhow::Result;
use unstuck_config::section::{GatewaySection, GatewayUpstreamSection, MissingUpstreamFeature};
use unstuck_core::agent::{Agent, Agents};
use unstuck_gateway::protocol::Protocol;
use unstuck_gateway::{GatewayError, Secret, Upstream, UpstreamUnsupportedFeatures};

use super::settings::stream_mode;
use crate::environment_variables;
use crate::error_report::error_with_hint;

/// Parses the flag value `PROTOCOL=URL`.
pub(crate) fn from_flag(text: &str) -> Result<Upstream, String> {
    let known = Protocol::ALL.map(Protocol::name).join(", ");
    let (name, url) = text.split_once('=').ok_or_else(|| {
        "expected PROTOCOL=URL, such as anthropic=https://api.anthropic.com".to_owned()
    })?;
    let protocol = Protocol::from_name(name)
        .ok_or_else(|| format!("unknown protocol `{name}`, expected one of {known}"))?;
    Upstream::new(name, protocol, url).map_err(|error| error.to_string())
}

/// Returns the configured upstreams of a protocol, or the provider's own API.
pub(crate) fn from_config(section: &GatewaySection, protocol: Protocol) -> Result<Vec<Upstream>> {
    let lists = section.upstreams.lists();
    let list = lists.iter().find(|(name, _)| *name == protocol.name());
    let list = list.map_or(&[][..], |(_, list)| *list);
    if list.is_empty() {
        return Ok(vec![Upstream::for_provider(protocol)]);
    }
    let numbered = list.iter().enumerate();
    numbered
        .map(|(at, one)| configured_upstream(protocol, at, one))
        .collect()
}

fn configured_upstream(
    protocol: Protocol,
    at: usize,
    one: &GatewayUpstreamSection,
) -> Result<Upstream> {
    let usual = match at {
        0 => protocol.name().to_owned(),
        _ => format!("{}-{}", protocol.name(), at + 1),
    };
    let name = one.name.as_deref().unwrap_or(&usual);
    let mut upstream = Upstream::new(name, protocol, &one.url)?;
    if let Some(variable) = &one.key_env {
        let key = environment_variables::variable(variable).ok_or_else(|| {
            error_with_hint(
                format!("missing key for upstream {name}: {variable} is not set"),
                format!("set {variable}, or remove `key_env` to pass through the agent's own key"),
            )
        })?;
        upstream.key = Some(Secret::new(key));
    }
    upstream.models.clone_from(&one.models);
    upstream.missing = UpstreamUnsupportedFeatures {
        tools: one.missing.contains(&MissingUpstreamFeature::Tools),
        vision: one.missing.contains(&MissingUpstreamFeature::Vision),
        prefill: one.missing.contains(&MissingUpstreamFeature::Prefill),
    };
    upstream.context = one.context;
    upstream.stream = one.stream.map(stream_mode);
    Ok(upstream)
}

/// An environment variable that sets the address of an API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ApiAddressVariable {
    pub(super) name: String,
    pub(super) protocol: Protocol,
    /// Path to append to its value to get a base URL.
    path_suffix: &'static str,
}

impl ApiAddressVariable {
    /// Returns the variables of an agent that hold nothing but a URL.
    pub(super) fn of_agent(agent: &Agent) -> impl Iterator<Item = Self> {
        let env = agent.file().call.base_url.env.iter();
        env.filter_map(|(name, value)| {
            let path = value.strip_prefix("{url}")?;
            let (protocol, missing) = Protocol::ALL.into_iter().find_map(|protocol| {
                let missing = protocol.prefix().strip_prefix(path)?;
                (!path.is_empty()).then_some((protocol, missing))
            })?;
            Some(Self {
                name: name.clone(),
                protocol,
                path_suffix: missing,
            })
        })
    }

    /// Returns the variables of this agent, followed by those of all others.
    pub(super) fn all(first: Option<&Agent>, agents: &Agents) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        let own = first.into_iter().flat_map(Self::of_agent);
        let rest = agents.get("command").into_iter().chain(agents.iter());
        for one in own.chain(rest.flat_map(Self::of_agent)) {
            if !found.contains(&one) {
                found.push(one);
            }
        }
        found
    }

    /// Returns the base URL for a value of the variable.
    fn base_url(&self, value: &str) -> String {
        let value = value.trim_end_matches('/');
        if value.ends_with(self.path_suffix) {
            value.to_owned()
        } else {
            format!("{value}{}", self.path_suffix)
        }
    }
}

/// Returns the upstreams of a private gateway; the user's own environment takes precedence.
pub(super) fn from_environment(
    section: &GatewaySection,
    variables: &[ApiAddressVariable],
    env: &BTreeMap<String, String>,
) -> Result<Vec<Upstream>> {
    let mut upstreams = Vec::new();
    for protocol in Protocol::ALL {
        let mut own = variables.iter().filter(|one| one.protocol == protocol);
        let own = own.find_map(|one| Some(one.base_url(env.get(&one.name)?)));
        match own {
            Some(url) => upstreams.push(own_upstream(protocol, &url)?),
            None => upstreams.extend(from_config(section, protocol)?),
        }
    }
    Ok(upstreams)
}

fn own_upstream(protocol: Protocol, url: &str) -> Result<Upstream, GatewayError> {
    Upstream::new(protocol.name(), protocol, url)
}

/// True if a URL belongs to one of our gateways.
pub(super) fn is_own_gateway(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else {
        return false;
    };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    let is_here = matches!(host, "127.0.0.1" | "localhost" | "[::1]");
    let path = format!("/{}", path.trim_end_matches('/'));
    let is_prefix = |protocol: Protocol| {
        path == protocol.prefix() || protocol == Protocol::OpenAi && path == "/openai"
    };
    is_here && (path.starts_with("/s/") || Protocol::ALL.into_iter().any(is_prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flag_has_protocol_and_url() {
        let upstream = from_flag("openai=http://127.0.0.1:9/v1/").unwrap();
        assert_eq!(upstream.protocol, Protocol::OpenAi);
        assert_eq!(upstream.base.to_string(), "http://127.0.0.1:9/v1");
        assert!(from_flag("http://x").unwrap_err().contains("PROTOCOL=URL"));
        assert!(
            from_flag("bedrock=http://x")
                .unwrap_err()
                .contains("anthropic, openai, gemini")
        );
        assert!(from_flag("openai=ftp://x").unwrap_err().contains("http://"));
    }

    /// The user's setting selects the upstream, in any form that the agent accepts.
    #[test]
    fn environment_variables_select_the_upstream() {
        let agents = Agents::built_in();
        let env = |pairs: &[(&str, &str)]| {
            let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            pairs.iter().map(own).collect::<BTreeMap<_, _>>()
        };
        let asked = |agent: &str, pairs: &[(&str, &str)]| {
            let variables = ApiAddressVariable::all(agents.get(agent), agents);
            let found = from_environment(&GatewaySection::default(), &variables, &env(pairs));
            let urls = found.unwrap().into_iter().map(|one| one.base.to_string());
            urls.map(|url| url.trim_end_matches('/').to_owned())
                .collect::<Vec<_>>()
        };
        let usual = [
            "https://api.anthropic.com",
            "https://api.openai.com/v1",
            "https://generativelanguage.googleapis.com",
        ];
        assert_eq!(asked("claude", &[]), usual);
        assert_eq!(
            asked("claude", &[("ANTHROPIC_BASE_URL", "http://a/x/")])[0],
            "http://a/x"
        );
        assert_eq!(
            asked("goose", &[("OPENAI_HOST", "http://o")])[1],
            "http://o/v1"
        );
        assert_eq!(
            asked("aider", &[("OPENAI_API_BASE", "http://o/v1")])[1],
            "http://o/v1"
        );
        let both = [
            ("OPENAI_HOST", "http://g"),
            ("OPENAI_BASE_URL", "http://o/v1"),
        ];
        assert_eq!(asked("goose", &both)[1], "http://g/v1");
        assert_eq!(asked("command", &both)[1], "http://o/v1");
    }

    #[test]
    fn own_gateway_is_recognized_by_its_url() {
        for url in [
            "http://127.0.0.1:4141/anthropic",
            "http://127.0.0.1:9/s/abc-1/openai/v1",
            "http://localhost:4141/openai/v1/",
            "http://[::1]:4141/gemini",
        ] {
            assert!(is_own_gateway(url), "{url}");
        }
        for url in [
            "http://127.0.0.1:4000",
            "https://api.anthropic.com",
            "http://evil.example/s/x/anthropic",
            "",
        ] {
            assert!(!is_own_gateway(url), "{url}");
        }
    }
}
