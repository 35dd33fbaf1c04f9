//! What can go wrong with the gateway itself.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::protocol::Protocol;

/// Why the gateway could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// Whoever can reach the address could use it.
    #[error("{0} can be reached from other machines, and no token is set")]
    TokenRequired(SocketAddr),
    /// The address of an upstream is none.
    #[error("`{url}` is not the address of an upstream: {why}")]
    Upstream {
        /// What was given.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Nobody is there to be asked.
    #[error("there is no upstream for {}", .0.name())]
    NoUpstream(Protocol),
    /// Certificates that shall be believed cannot be read.
    #[error("the certificates of {} cannot be used: {why}", .path.display())]
    Certificates {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A proxy cannot be used.
    #[error("the proxy `{proxy}` cannot be used: {why}")]
    Proxy {
        /// Its address, without a password.
        proxy: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// TLS cannot be spoken at all.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
    /// There is no randomness.
    #[error("the system gives no random numbers: {0}")]
    Randomness(getrandom::Error),
}

/// An error with what caused it, in one line.
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
