//! Errors of the gateway itself.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::protocol::Protocol;

/// An error of the gateway itself.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The gateway cannot listen on the address.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The address is reachable for others and needs a token.
    #[error("{0} is reachable from other machines, but no token is set")]
    TokenRequired(SocketAddr),
    /// The URL of an upstream is invalid.
    #[error("`{url}` is not a valid upstream URL: {why}")]
    Upstream {
        /// The configured URL.
        url: String,
        /// The problem.
        why: &'static str,
    },
    /// No upstream is configured for the protocol.
    #[error("no upstream configured for {}", .0.name())]
    NoUpstream(Protocol),
    /// The additional CA certificates cannot be read.
    #[error("cannot use the certificates in {}: {why}", .path.display())]
    Certificates {
        /// The file or directory.
        path: PathBuf,
        /// The problem.
        why: String,
    },
    /// The proxy cannot be used.
    #[error("cannot use the proxy `{proxy}`: {why}")]
    Proxy {
        /// The URL of the proxy, without a password.
        proxy: String,
        /// The problem.
        why: &'static str,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
    /// The system provides no random numbers.
    #[error("cannot get random numbers from the system: {0}")]
    Randomness(getrandom::Error),
}

/// Returns an error with its causes in one line.
pub(crate) fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
