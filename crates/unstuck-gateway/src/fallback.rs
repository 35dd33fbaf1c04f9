//! The fallback handler at the gateway's address: it answers requests that are not meant for LLM APIs.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::{Request, Response};
use unstuck_network::PeerOwner;

/// The other end of a connection, as it was when the connection was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The address of the peer.
    pub address: SocketAddr,
    /// The owner of the peer.
    pub owner: PeerOwner,
}

/// The reason why a body broke off.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;
/// The body of a fallback response.
pub type FallbackBody = Pin<Box<dyn Body<Data = Bytes, Error = BodyError> + Send>>;
/// The future of a fallback response.
pub type FallbackFuture = Pin<Box<dyn Future<Output = Response<FallbackBody>> + Send>>;

/// Answers requests that are not meant for LLM APIs. It checks access itself: the gateway does not.
pub trait FallbackHandler: fmt::Debug + Send + Sync {
    /// Answers a request of this peer.
    fn handle(&self, request: Request<Incoming>, from: Peer) -> FallbackFuture;
}
