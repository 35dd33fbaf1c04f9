//! Addresses to listen on, as people write them.

use std::net::SocketAddr;

/// `ADDR:PORT`, as a flag says it; `localhost` is this machine.
pub(crate) fn parse_listen_address(text: &str) -> Result<SocketAddr, String> {
    let numbers = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    numbers.parse().map_err(|_| {
        "it must be ADDR:PORT, such as 127.0.0.1:4141; port 0 takes a free one".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port_and_may_be_this_machine_by_name() {
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
