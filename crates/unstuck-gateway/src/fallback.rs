//! Whoever else listens at the address of a gateway: it answers all that is not meant for LLM APIs.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::{Request, Response};
use unstuck_network::PeerOwner;

/// The other end of a connection, as it was when the connection came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its address.
    pub address: SocketAddr,
    /// Its owner.
    pub owner: PeerOwner,
}

/// Why an answer broke off.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;
/// What is answered.
pub type FallbackBody = Pin<Box<dyn Body<Data = Bytes, Error = BodyError> + Send>>;
/// What is being answered.
pub type FallbackFuture = Pin<Box<dyn Future<Output = Response<FallbackBody>> + Send>>;

/// Answers what is not meant for LLM APIs. Who may ask for what is its own business: the gateway has not looked.
pub trait FallbackHandler: fmt::Debug + Send + Sync {
    /// Answers a request of this peer.
    fn handle(&self, request: Request<Incoming>, from: Peer) -> FallbackFuture;
}
