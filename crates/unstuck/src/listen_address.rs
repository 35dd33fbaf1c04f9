//! Parsing of listen addresses.

use std::net::SocketAddr;

/// Parses `ADDR:PORT`; `localhost` is accepted as the loopback address.
pub(crate) fn parse_listen_address(text: &str) -> Result<SocketAddr, String> {
    let numbers = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    numbers.parse().map_err(|_| {
        "expected ADDR:PORT, such as 127.0.0.1:4141; port 0 selects a free port".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listen_address_needs_a_port_and_accepts_localhost() {
        assert_eq!(
            parse_listen_address("localhost:80").unwrap().to_string(),
            "127.0.0.1:80"
        );
        assert_eq!(
            parse_listen_address("[::1]:0").unwrap().to_string(),
            "[::1]:0"
        );
        for wrong in ["localhost", "127.0.0.1", "127.0.0.1:99999", ":80", ""] {
            assert!(
                parse_listen_address(wrong)
                    .unwrap_err()
                    .contains("ADDR:PORT"),
                "{wrong}"
            );
        }
    }
}
