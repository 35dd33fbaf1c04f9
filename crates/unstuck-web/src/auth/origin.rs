//! Checks the host name and the origin of requests, against web pages that attack local servers.

use std::net::IpAddr;

use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, Uri, header};
use unstuck_network::{host_name, unambiguous_host};

/// Headers that show that a request was forwarded, so that its peer address means nothing.
const FORWARDING_HEADERS: [&str; 4] = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

/// Returns the requested host with its port, or `None` if there is not exactly one.
pub(crate) fn request_host(parts: &Parts) -> Option<&str> {
    let hosts = parts.headers.get_all(header::HOST).iter();
    let hosts = hosts.map(|host| host.to_str().ok());
    let host = unambiguous_host(hosts, parts.uri.authority().map(Authority::as_str));
    host.filter(|host| host_name(host).is_some())
}

/// Returns true if the host is an address or one of our own names, which nobody else can point here.
pub(crate) fn is_allowed_host(host: &str, names: &[String]) -> bool {
    let Some(name) = host_name(host) else {
        return false;
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok()
        || names.iter().any(|ours| ours.eq_ignore_ascii_case(name))
}

/// Returns true if the request was forwarded by a proxy.
pub(crate) fn is_forwarded(headers: &HeaderMap) -> bool {
    FORWARDING_HEADERS
        .iter()
        .any(|name| headers.contains_key(*name))
}

/// Returns true if the browser reports that the request comes from a page of another origin.
pub(crate) fn is_cross_origin(parts: &Parts, host: &str) -> bool {
    let text = |name: &str| {
        let value = parts.headers.get(name)?;
        Some(value.to_str().unwrap_or_default())
    };
    if let Some(origin) = text(header::ORIGIN.as_str()) {
        return !is_same_origin(origin, host);
    }
    // Links from other origins may lead here; other cross-origin requests are rejected.
    let follows_link = parts.method == Method::GET && text("sec-fetch-mode") == Some("navigate");
    matches!(text("sec-fetch-site"), Some("cross-site" | "same-site")) && !follows_link
}

/// Returns true if the browser reports that the request comes from a page of this origin.
pub(crate) fn is_from_own_page(parts: &Parts, host: &str) -> bool {
    let origin = parts.headers.get(header::ORIGIN);
    let origin = origin.and_then(|origin| origin.to_str().ok());
    origin.is_some_and(|origin| is_same_origin(origin, host))
}

fn is_same_origin(origin: &str, host: &str) -> bool {
    let Ok(uri) = origin.parse::<Uri>() else {
        return false;
    };
    let is_web = matches!(uri.scheme_str(), Some("http" | "https"));
    let same = uri.authority().map(Authority::as_str);
    is_web && same.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_of_others_are_rejected() {
        let names = ["box.lan".to_owned()];
        for host in [
            "127.0.0.1:4141",
            "localhost",
            "LOCALHOST:1",
            "[::1]:80",
            "192.0.2.7",
            "box.lan:1",
        ] {
            assert!(is_allowed_host(host, &names), "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example:4141",
            "localhost.evil:80",
            "",
            ":80",
            "[::1].evil.example",
            "127.0.0.1:1@evil.example",
        ] {
            assert!(!is_allowed_host(host, &names), "{host}");
        }
    }

    #[test]
    fn only_the_same_origin_is_accepted() {
        assert!(is_same_origin("http://127.0.0.1:4141", "127.0.0.1:4141"));
        for origin in [
            "http://127.0.0.1:3000",
            "http://localhost:4141",
            "null",
            "",
            "http://evil.example",
            "http://127.0.0.1:4141.evil.example",
            "file://127.0.0.1:4141",
        ] {
            assert!(!is_same_origin(origin, "127.0.0.1:4141"), "{origin}");
        }
    }
}
