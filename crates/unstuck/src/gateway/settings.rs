//! Converts configuration to gateway settings.

use std::path::PathBuf;
use std::time::Duration;

use unstuck_config::section::{
    self, GatewayLoopLimits, GatewaySection, GatewayTimeouts, OnBudgetReached,
};
use unstuck_core::RetryPolicy;
use unstuck_gateway::loop_detection::LoopDetectionLimits;
use unstuck_gateway::{
    GatewayBudgetSettings, GatewaySettings, GatewayTimeLimits, LoopHandling, OnLoop,
    ProxyAndCertificateSettings, StreamMode, Upstream,
};

use crate::environment_variables::{network_probe, variable};

/// Lower bound, so that a project cannot cause a storm of probes.
const MIN_PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// Builds the gateway settings from the configuration.
pub(crate) fn gateway_settings(
    section: &GatewaySection,
    upstreams: Vec<Upstream>,
    policy: RetryPolicy,
) -> GatewaySettings {
    let mut settings = GatewaySettings::new(upstreams);
    settings.network = network_settings();
    settings.policy = policy;
    settings.limits = time_limits(&section.timeouts);
    settings.network_probe = network_probe();
    settings.probe_every = section.timeouts.probe.max(MIN_PROBE_INTERVAL);
    settings.max_request = usize::try_from(section.max_request).unwrap_or(usize::MAX);
    settings.route_around_refusals = section.route_around_refusals;
    settings.stream = stream_mode(section.stream);
    settings.retry_bad_output = section.retry_bad_output;
    settings.loop_rules = LoopHandling {
        limits: watch_limits(&section.watch),
        action: on_loop(section.on_loop),
        ..LoopHandling::default()
    };
    settings.budgets = GatewayBudgetSettings {
        session: section.budgets.session,
        day: section.budgets.day,
        escalates: section.budgets.on_reached == OnBudgetReached::Ask,
    };
    settings
}

/// Returns the network settings from the standard proxy and CA variables.
fn network_settings() -> ProxyAndCertificateSettings {
    let either = |upper: &str, lower: &str| variable(upper).or_else(|| variable(lower));
    let all = || either("ALL_PROXY", "all_proxy");
    let folders = variable("SSL_CERT_DIR").unwrap_or_default();
    let folders = std::env::split_paths(&folders).filter(|path| !path.as_os_str().is_empty());
    let file = variable("SSL_CERT_FILE").map(PathBuf::from);
    ProxyAndCertificateSettings {
        http_proxy: either("HTTP_PROXY", "http_proxy").or_else(all),
        https_proxy: either("HTTPS_PROXY", "https_proxy").or_else(all),
        no_proxy: either("NO_PROXY", "no_proxy").unwrap_or_default(),
        authorities: file.into_iter().chain(folders).collect(),
        extra_authorities: variable("NODE_EXTRA_CA_CERTS")
            .map(PathBuf::from)
            .into_iter()
            .collect(),
    }
}

fn time_limits(section: &GatewayTimeouts) -> GatewayTimeLimits {
    GatewayTimeLimits {
        connect: section.connect,
        response: section.response,
        whole: section.whole,
        first_content: section.first_content,
        stall: section.stall,
        hold: section.hold,
        keep_alive: section.keep_alive,
        fallback_after: section.fallback_after,
        fallback_silence: section.fallback_silence,
        request: section.request,
    }
}

fn watch_limits(section: &GatewayLoopLimits) -> LoopDetectionLimits {
    LoopDetectionLimits {
        repeats: section.repeats,
        repeats_in_window: section.repeats_in_window,
        window: section.window,
        slow_tool: section.slow_tool,
        slow_tool_repeats: section.slow_tool_repeats,
        empty_responses: section.empty_responses,
        failed_compactions: section.failed_compactions,
        compaction_window: section.compaction_window,
        min_context_tokens: section.min_context_tokens,
        no_progress_responses: section.no_progress_responses,
        conversation_storm: section.conversation_storm,
        conversation_storm_window: section.conversation_storm_window,
    }
}

/// Converts the stream mode of the configuration.
pub(super) fn stream_mode(section: section::StreamForwardingMode) -> StreamMode {
    match section {
        section::StreamForwardingMode::Direct => StreamMode::Direct,
        section::StreamForwardingMode::Buffered => StreamMode::Buffered,
    }
}

fn on_loop(section: section::OnLoop) -> OnLoop {
    match section {
        section::OnLoop::Warn => OnLoop::Warn,
        section::OnLoop::Note => OnLoop::Note,
        section::OnLoop::Hold => OnLoop::Hold,
        section::OnLoop::Stop => OnLoop::Stop,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The defaults of the configuration are those of the gateway.
    #[test]
    fn configuration_defaults_equal_gateway_defaults() {
        let section = GatewaySection::default();
        assert_eq!(time_limits(&section.timeouts), GatewayTimeLimits::default());
        assert_eq!(watch_limits(&section.watch), LoopDetectionLimits::default());
        let (own, of_section) = (
            GatewaySettings::new(Vec::new()),
            gateway_settings(&section, Vec::new(), RetryPolicy::default()),
        );
        assert_eq!(own.max_request, of_section.max_request);
        assert_eq!(own.probe_every, of_section.probe_every);
        assert_eq!(own.loop_rules.hold, of_section.loop_rules.hold);
        assert_eq!(own.loop_rules.action, of_section.loop_rules.action);
        assert_eq!(own.stream, of_section.stream);
        assert!(own.budgets.session.is_none() && of_section.budgets.session.is_none());
        assert!(own.budgets.day.is_none() && of_section.budgets.day.is_none());
    }
}
