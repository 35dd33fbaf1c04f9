//! Strict parsing of the host in a `Host` header: a name that a lenient parser takes for this machine may be anybody's.

use std::net::{IpAddr, Ipv6Addr};

/// Returns the name or address in a host with or without a port, or `None` if it is malformed.
pub fn host_name(host: &str) -> Option<&str> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (name, port) = rest.split_once(']')?;
            name.parse::<Ipv6Addr>().ok()?;
            (name, port)
        }
        None => match host.find(':') {
            Some(colon) => host.split_at(colon),
            None => (host, ""),
        },
    };
    let is_port = match port.strip_prefix(':') {
        Some(port) => port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok(),
        None => port.is_empty(),
    };
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_~:".contains(&byte);
    (is_port && !name.is_empty() && name.bytes().all(fits)).then_some(name)
}

/// Returns the one host that a request names, or `None` if it names none, several, or conflicting ones in headers and
/// URL.
pub fn unambiguous_host<'a>(
    mut headers: impl Iterator<Item = Option<&'a str>>,
    authority: Option<&'a str>,
) -> Option<&'a str> {
    let host = match headers.next() {
        Some(host) => host?,
        None => return authority,
    };
    let is_only = headers.next().is_none();
    let agrees = authority.is_none_or(|authority| authority.eq_ignore_ascii_case(host));
    (is_only && agrees).then_some(host)
}

/// True if a name or address as returned by [`host_name`] always means this machine.
pub fn is_loopback_name(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name
            .parse::<IpAddr>()
            .is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_name_accepts_names_and_addresses_with_or_without_a_port() {
        for (host, name) in [
            ("127.0.0.1:4141", "127.0.0.1"),
            ("localhost", "localhost"),
            ("[::1]:80", "::1"),
            ("[::1]", "::1"),
            ("box_1.lan:65535", "box_1.lan"),
        ] {
            assert_eq!(host_name(host), Some(name), "{host}");
        }
    }

    #[test]
    fn host_name_rejects_malformed_hosts() {
        for host in [
            "",
            ":80",
            "[::1].evil.example",
            "[::1]evil.example:80",
            "[::1]:80.evil.example",
            "[127.0.0.1]",
            "[::1",
            "::1",
            "127.0.0.1:1@evil.example",
            "127.0.0.1@evil.example",
            "127.0.0.1:80:80",
            "127.0.0.1:",
            "127.0.0.1:65536",
            "127.0.0.1:+80",
            "127.0.0.1/evil",
            "localhost evil",
            "localhost,evil.example",
            "localhost\\@evil",
        ] {
            assert_eq!(host_name(host), None, "{host}");
        }
    }

    #[test]
    fn ambiguous_hosts_are_rejected() {
        let only = |headers: &[&'static str], authority| {
            unambiguous_host(headers.iter().copied().map(Some), authority)
        };
        assert_eq!(only(&["localhost"], None), Some("localhost"));
        assert_eq!(only(&[], Some("localhost:1")), Some("localhost:1"));
        assert_eq!(only(&["LOCALHOST"], Some("localhost")), Some("LOCALHOST"));
        assert_eq!(only(&["localhost", "localhost"], None), None);
        assert_eq!(only(&["localhost", "evil.example"], None), None);
        assert_eq!(only(&["localhost"], Some("evil.example")), None);
        assert_eq!(only(&[], None), None);
    }
}
