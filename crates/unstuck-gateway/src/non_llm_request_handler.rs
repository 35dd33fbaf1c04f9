//! The handler for requests at the gateway's address that are not meant for LLM APIs, such as those of the dashboard.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::{Request, Response};
use unstuck_network::PeerOwner;

/// The other end of a connection, as it was when the connection was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionPeer {
    /// The address of the peer.
    pub address: SocketAddr,
    /// The owner of the peer.
    pub owner: PeerOwner,
}

/// The reason why a body broke off.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;
/// The body of a response to a request that is not meant for an LLM API.
pub type NonLlmHandlerBody = Pin<Box<dyn Body<Data = Bytes, Error = BodyError> + Send>>;
/// The future of a response to a request that is not meant for an LLM API.
pub type NonLlmResponseFuture = Pin<Box<dyn Future<Output = Response<NonLlmHandlerBody>> + Send>>;

/// Answers requests that are not meant for LLM APIs. It checks access itself: the gateway does not.
pub trait NonLlmRequestHandler: fmt::Debug + Send + Sync {
    /// Answers a request of this peer.
    fn handle(&self, request: Request<Incoming>, from: ConnectionPeer) -> NonLlmResponseFuture;
}
