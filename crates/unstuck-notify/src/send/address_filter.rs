//! Address filter: this machine and private networks are blocked unless the user allows them.
//!
//! The checked addresses are the ones connected to, so a DNS name that changes its address in between gains nothing.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

/// A blocked private address.
#[derive(Debug, thiserror::Error)]
#[error("{} an address of this machine or of a private network", describe_address(host, *address))]
pub(super) struct PrivateAddressError {
    host: String,
    address: IpAddr,
}

fn describe_address(host: &str, address: IpAddr) -> String {
    if host.parse() == Ok(address) {
        format!("{address} is")
    } else {
        format!("{host} resolves to {address},")
    }
}

/// Connects to allowed addresses only.
#[derive(Debug, Clone, Copy)]
pub(super) struct FilteringConnector {
    pub(super) allow_private: bool,
}

impl Service<Uri> for FilteringConnector {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let allow_private = self.allow_private;
        Box::pin(async move { connect(&uri, allow_private).await.map(TokioIo::new) })
    }
}

async fn connect(uri: &Uri, allow_private: bool) -> io::Result<TcpStream> {
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let usual = if uri.scheme_str() == Some("https") {
        443
    } else {
        80
    };
    let port = uri.port_u16().unwrap_or(usual);
    let found: Vec<SocketAddr> = tokio::net::lookup_host((host, port)).await?.collect();
    let may = |address: &&SocketAddr| allow_private || !is_private(address.ip());
    let reachable: Vec<SocketAddr> = found.iter().filter(may).copied().collect();
    match found.first() {
        Some(first) if reachable.is_empty() => Err(io::Error::other(PrivateAddressError {
            host: host.to_owned(),
            address: first.ip(),
        })),
        _ => TcpStream::connect(&*reachable).await,
    }
}

/// Returns whether an address is local, private or reserved.
pub fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => is_private_v6(address),
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_link_local() // also where clouds keep what a machine knows about itself
        || address.is_broadcast()
        || address.is_multicast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b)) // shared by the customers of a provider
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (b == 18 || b == 19))
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = embedded_ipv4(address) {
        return is_private_v4(inner);
    }
    let first = address.segments()[0];
    let second = address.segments()[1];
    address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || first & 0xfe00 == 0xfc00 // unique local
        || first & 0xffc0 == 0xfe80 // link-local
        || first & 0xffc0 == 0xfec0 // site-local, of old
        || (first == 0x2001 && second < 0x0200) // tunnels and tests
        || (first == 0x2001 && second == 0x0db8) // documentation
        || (first == 0x0064 && second == 0xff9b) // translation within one network
        || first == 0x0100
}

/// Returns the IPv4 address embedded in an IPv6 address, in any known encoding.
fn embedded_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bytes = address.octets();
    let from = |at: usize| Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]);
    let segments = address.segments();
    let is_translated = segments[..6] == [0x64, 0xff9b, 0, 0, 0, 0];
    let is_compatible =
        segments[..6] == [0; 6] && !address.is_loopback() && !address.is_unspecified();
    match address.to_ipv4_mapped() {
        Some(mapped) => Some(mapped),
        None if segments[0] == 0x2002 => Some(from(2)),
        None if is_translated || is_compatible => Some(from(12)),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_detected_in_every_encoding() {
        for address in [
            "127.0.0.1",
            "127.8.9.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.127.255.255",
            "0.0.0.0",
            "0.1.2.3",
            "255.255.255.255",
            "224.0.0.1",
            "198.18.0.1",
            "192.0.0.192",
            "240.0.0.1",
            "::1",
            "::",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:c0a8:101::1",
            "2001::1",
            "2001:db8::1",
        ] {
            assert!(is_private(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn public_addresses_are_not_private() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.0.1",
            "100.128.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "2606:4700::1111",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
        ] {
            assert!(!is_private(address.parse().unwrap()), "{address}");
        }
    }
}
