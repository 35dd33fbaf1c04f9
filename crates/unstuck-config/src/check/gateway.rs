//! Checks of gateway upstreams and timeouts.

use super::ConfigChecker;
use super::webhooks::is_variable_name;
use crate::section::GatewayUpstreamSection;

impl ConfigChecker<'_> {
    pub(super) fn check_gateway(&mut self) {
        let gateway = self.config.gateway();
        for (protocol, list) in gateway.upstreams.lists() {
            for (at, upstream) in list.iter().enumerate() {
                let place = format!("gateway.upstreams.{protocol}.{}", at + 1);
                self.check_upstream(&place, upstream);
            }
        }
        let times = &gateway.timeouts;
        let needed = [
            ("connect", times.connect),
            ("response_headers", times.response),
            ("full_response", times.whole),
            ("first_content", times.first_content),
            ("stall", times.stall),
            ("client_wait", times.hold),
            ("client_request", times.request),
        ];
        for (key, time) in needed {
            if time.is_zero() {
                self.report(&format!("gateway.timeouts.{key}"), "must be greater than 0");
            }
        }
    }

    fn check_upstream(&mut self, place: &str, upstream: &GatewayUpstreamSection) {
        let at = format!("{place}.url");
        if !self.config.is_unreadable(&at)
            && let Some(why) = url_problem(&upstream.url)
        {
            self.report(&at, why);
        }
        let key = upstream.key_env.as_deref();
        if key.is_some_and(|name| !is_variable_name(name) || name.starts_with("sk-")) {
            // The value may be the key itself: do not repeat it.
            let told = "must be the name of an environment variable, such as WORK_API_KEY, not the key itself";
            self.report(&format!("{place}.key_env"), told);
        }
        if upstream.context == Some(0) {
            self.report(&format!("{place}.context"), "must be 1 or more");
        }
    }
}

/// Returns the problem with an upstream URL.
fn url_problem(url: &str) -> Option<&'static str> {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest else {
        return Some("must begin with https:// or http://");
    };
    let host = rest.split('/').next().unwrap_or_default();
    if host.contains('@') {
        return Some(
            "must not contain a password; put the key in an environment variable and set `key_env` to its name",
        );
    }
    if rest.contains(['?', '#']) {
        return Some("must not contain a query or fragment");
    }
    let plain = |c: char| c.is_ascii_graphic();
    (host.is_empty() || !url.chars().all(plain)).then_some("invalid URL")
}
